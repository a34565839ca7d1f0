from __future__ import annotations

from pathlib import Path

from perf.contract import EpochRecord
from perf.report.tensorboard import EVENT_FILE, scalars, write


def test_a_launch_gives_steps_rates_losses_and_epochs(launch):
    """Step times of every rank, the slowest's throughput, losses at both ends, and epochs with their validation."""
    epoch = EpochRecord(0, 2.0, 10, 640, True, 0.1, validation_loss=0.5)
    found = list(scalars(launch(samples=256, epoch_seconds=[2.0], epochs=[[epoch], [epoch]])))
    tags = {tag for _, _, tag, _ in found}
    assert {
        "step_seconds/rank_0",
        "step_seconds/rank_1",
        "samples_per_second/all_ranks",
        "loss/first_and_last_tenth",
        "epoch/seconds",
        "epoch/validation_loss",
    } == tags
    assert [(0, 128 / 0.0752), (1, 128 / 0.0751)] == [
        (s, v) for _, s, t, v in found if t.startswith("samples")
    ]
    assert [(0, 2.3), (22, 1.9)] == [(s, v) for _, s, t, v in found if t.startswith("loss")]


def test_what_was_not_had_is_no_point(launch):
    """Null losses and no steps leave nothing behind."""
    assert [] == list(scalars(launch(loss_first=None, loss_last=None, step_seconds=[[], []])))


def test_each_launch_has_a_folder(tmp_path, launch):
    """By group, variant with plan, and launch; names that lead elsewhere are made harmless; a second time replaces."""
    records = [launch(), launch(group="..", variant="../../x", launch=".", plan="audit")]
    for _ in range(2):
        assert 2 == write(records, tmp_path / "tb")
    files = sorted(p.relative_to(tmp_path / "tb") for p in tmp_path.rglob("*") if p.is_file())
    assert [
        Path("%2E%2E", "..%2F..%2Fx+audit", "%2E", EVENT_FILE),
        Path("mnist", launch().variant, "launch-001", EVENT_FILE),
    ] == files
