"""pynvml with answers such as two H100 cards give, in NVML's own units. Calls named in `broken` raise as NVML does."""

from __future__ import annotations

from types import SimpleNamespace as Values


class NVMLError(Exception):
    def __str__(self):
        return self.words

    words = "Unknown Error"


class NVMLError_NotSupported(NVMLError):  # noqa: N801 - NVML's name
    words = "Not Supported"


class NVMLError_FunctionNotFound(NVMLError):  # noqa: N801 - NVML's name
    words = "Function Not Found"


class NVMLError_LibraryNotFound(NVMLError):  # noqa: N801 - NVML's name
    words = "NVML Shared Library Not Found"


class NVMLError_DriverNotLoaded(NVMLError):  # noqa: N801 - NVML's name
    words = "Driver Not Loaded"


UUIDS = ["GPU-1c29d0a8-2b1f-7a0e-9f3c-5c0d6f8a1e10", "GPU-77f0b5de-93c4-4b6a-8a55-0e4d1b2c3f21"]
PART = "MIG-5d3c7e2a-0b5f-5a8e-bb1c-9a7e6f4d2c11"


class FakeNvml:
    """Stands for the module. `broken` maps calls to errors, `mig` divides the first card."""

    NVMLError = NVMLError
    NVMLError_NotSupported = NVMLError_NotSupported
    NVMLError_FunctionNotFound = NVMLError_FunctionNotFound

    def __init__(self, broken=None, mig=False, reasons=0x4, pids=(4711,)):
        self.broken = broken or {}
        self.mig = mig
        self.reasons = reasons
        self.pids = pids
        self.calls = []
        self.open = 0
        self.energy = 5_000_000

    def __getattribute__(self, name):
        found = object.__getattribute__(self, name)
        if not name.startswith("nvml"):
            return found

        def call(*arguments):
            self.calls.append(name)
            error = self.broken.get(name)
            if error is not None:
                raise error()
            return found(*arguments)

        return call

    def nvmlInit(self):
        self.open += 1

    def nvmlShutdown(self):
        self.open -= 1

    def nvmlDeviceGetCount(self):
        return 2

    def nvmlDeviceGetHandleByIndex(self, index):
        return index

    def nvmlDeviceGetUUID(self, handle):
        return PART if handle == "part" else UUIDS[handle]

    def nvmlDeviceGetName(self, handle):
        return "NVIDIA H100 80GB HBM3"

    def nvmlDeviceGetMigMode(self, handle):
        if not self.mig:
            raise NVMLError_NotSupported
        return (1, 1) if handle == 0 else (0, 0)

    def nvmlDeviceGetMaxMigDeviceCount(self, handle):
        return 2

    def nvmlDeviceGetMigDeviceHandleByIndex(self, handle, place):
        if place > 0:
            raise NVMLError
        return "part"

    def nvmlDeviceGetMaxClockInfo(self, handle, kind):
        assert handle != "part", "clocks belong to the card"
        return 1980

    def nvmlDeviceGetUtilizationRates(self, handle):
        return Values(gpu=97, memory=41)

    def nvmlDeviceGetPowerUsage(self, handle):
        return 612_345

    def nvmlDeviceGetEnforcedPowerLimit(self, handle):
        return 700_000

    def nvmlDeviceGetTotalEnergyConsumption(self, handle):
        self.energy += 600_000
        return self.energy

    def nvmlDeviceGetTemperature(self, handle, sensor):
        return 61

    def nvmlDeviceGetClockInfo(self, handle, kind):
        return 1755

    def nvmlDeviceGetMemoryInfo(self, handle, version=None):
        if version is None:
            return Values(used=5 * 2**30, total=80 * 2**30)
        return Values(used=4 * 2**30, total=80 * 2**30)

    def nvmlDeviceGetCurrentClocksEventReasons(self, handle):
        return self.reasons

    def nvmlDeviceGetCurrentClocksThrottleReasons(self, handle):
        return self.reasons

    def nvmlDeviceGetViolationStatus(self, handle, policy):
        return Values(referenceTime=1, violationTime=250_000_000 * (policy + 1))

    def nvmlDeviceGetFieldValues(self, handle, fields):
        return [
            Values(fieldId=field, nvmlReturn=0 if field != 271 else 3, value=Values(ullVal=1_500_000_000))
            for field in fields
        ]

    def nvmlDeviceGetComputeRunningProcesses(self, handle):
        return [Values(pid=pid, usedGpuMemory=None) for pid in self.pids]
