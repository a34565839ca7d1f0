"""The command as a whole: what it ends with."""

from __future__ import annotations

from perf.cluster import __main__ as command


def test_ctrl_c_where_no_job_is_followed_is_status_2(monkeypatch, capsys):
    """As where jobs are followed, which cancels them; one line and no traceback."""

    def interrupted():
        raise KeyboardInterrupt

    monkeypatch.setattr(command, "main", interrupted)

    assert 2 == command._interruptible()
    assert "stackproof: interrupted\n" == capsys.readouterr().err
