"""What a rank allocates on its GPUs: peaks of the whole launch and of the timed window, and the allocator's retries."""

from __future__ import annotations

from collections.abc import Sequence

import torch


class DeviceMemory:
    """Reads the allocator's counters at a window's edges and at a launch's end; on the host, and waits for nothing.

    Memory is in bytes, each by device (``cuda:0``), and nothing on a CPU, where nobody counts what torch allocates.

    Parameters
    ----------
    devices
        A rank's GPUs; empty on a CPU.

    Attributes
    ----------
    window_peak
        Largest allocation inside the window. That of a whole launch holds the first steps too, in which
        DistributedDataParallel makes its buckets anew and cuDNN's search takes work space.
    retries
        How often the allocator freed its cache inside the window, since it found no room.
    """

    def __init__(self, devices: Sequence[torch.device]) -> None:
        self._devices = devices
        self._peak: dict[str, int] = {}
        self._reserved: dict[str, int] = {}
        self._retries_at_opening: dict[str, int] = {}
        self.window_peak: dict[str, int] = {}
        self.retries: dict[str, int] = {}

    def window(self, opens: bool) -> None:
        """Note that the window opens or closes; stretches of an interrupted one add up."""
        if opens:
            self.peaks()
        for device in self._devices:
            name, retries = str(device), int(torch.cuda.memory_stats(device).get("num_alloc_retries", 0))
            if opens:
                # A loader that is drained alone may have nothing on the device, and then CUDA is not there yet.
                if torch.cuda.is_initialized():
                    torch.cuda.reset_peak_memory_stats(device)
                self._retries_at_opening[name] = retries
                continue
            inside = int(torch.cuda.max_memory_allocated(device))
            self.window_peak[name] = max(inside, self.window_peak.get(name, 0))
            self.retries[name] = self.retries.get(name, 0) + retries - self._retries_at_opening[name]

    def peaks(self) -> tuple[dict[str, int], dict[str, int]]:
        """Return the largest allocation and the largest reservation of the launch so far."""
        for found, read in (
            (self._peak, torch.cuda.max_memory_allocated),
            (self._reserved, torch.cuda.max_memory_reserved),
        ):
            for device in self._devices:
                found[str(device)] = max(int(read(device)), found.get(str(device), 0))
        return dict(self._peak), dict(self._reserved)
