"""TCP ports of this machine."""

from __future__ import annotations

import socket


def free_ports(count: int) -> list[int]:
    """Return TCP ports of 127.0.0.1 that were free a moment ago, all different."""
    sockets = [socket.socket() for _ in range(count)]
    try:
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in sockets]
    finally:
        for each in sockets:
            each.close()


def listens(port: int) -> bool:
    """Say whether something takes connections on a port of 127.0.0.1."""
    with socket.socket() as client:
        client.settimeout(1.0)
        return client.connect_ex(("127.0.0.1", port)) == 0
