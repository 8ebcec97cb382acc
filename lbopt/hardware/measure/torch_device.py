"""What differs from accelerator to accelerator under torch: is it there, how is it timed, how much memory is free.

Torch gives each kind a module of the same form (`torch.cuda`, `torch.npu` once `torch_npu` is imported, `torch.xpu`,
`torch.mps`). Where it has events, the time between two events on the device's own queue is taken, else the wall
between two synchronisations. Calls of one sample are queued in a row: what the host needs to start one is hidden behind
the one before, unless the device is the faster of the two; then the host's pace is what is measured, as in serving
without captured graphs.
"""

from __future__ import annotations

import importlib
import time
from collections.abc import Callable, Sequence
from typing import Any

from lbopt.exceptions import InputError
from lbopt.hardware.measure.machine import host_free_bytes, nvidia_driver, processor
from lbopt.hardware.measure.power import EnergyCounter, nvidia_counter
from lbopt.spec import unknown

#: In the order in which they are tried where no device is named.
KINDS = ("cuda", "npu", "xpu", "mps", "cpu")
_SPIN = """
extern "C" __global__ void wait_for_others(const volatile int* flag, int cycles) {
    long long begin = clock64();
    while (clock64() - begin < cycles && *flag == 0) { }
}
"""
#: About 3 ms of a device that makes 1.7e9 cycles a second.
SPIN_CYCLES = 5_000_000


class TorchDevice:
    """One device that torch knows; `torch` is the package itself, so that a test can hand in a stub."""

    def __init__(self, torch: Any, device: str | None = None) -> None:
        self._torch = torch
        named = device or next(kind for kind in KINDS if _available(torch, kind))
        self.kind, _, index = named.partition(":")
        if self.kind not in KINDS:
            raise unknown("device", self.kind, KINDS, " (of backend torch)")
        if not _available(torch, self.kind):
            raise InputError(f"device '{named}' is not available: torch {torch.__version__} finds no {self.kind} here")
        self.name = named
        self._module: Any = None if self.kind == "cpu" else getattr(torch, self.kind)
        count = getattr(self._module, "device_count", lambda: 1)()
        if index and not (index.isascii() and index.isdigit() and int(index) < count):
            raise InputError(f"device '{named}' does not exist; {self.kind} has {count} here, numbered from 0")
        choose = getattr(self._module, "set_device", None)
        if index and choose:
            choose(int(index))  # events and memory are those of the present device

    def other_kernels(self, attention: Callable[..., Any]) -> list[Callable[..., Any]]:
        """Return the same fused attention without cuDNN's kernel, which torch 2.11 prefers on an H100.

        For one request of 262,144 tokens that kernel leaves most of the device idle: 183 GB/s of KV against 2,619 GB/s
        of the one that cuts long contexts into parts; for 64 requests it is the faster one.
        """
        switch = getattr(getattr(getattr(self._torch, "backends", None), "cuda", None), "enable_cudnn_sdp", None)
        if self.kind != "cuda" or switch is None:
            return []

        def without(*given: Any) -> Any:
            switch(False)
            try:
                return attention(*given)
            finally:
                switch(True)

        return [without]

    def title(self) -> str:
        """Return the device's name as its driver reports it."""
        read = getattr(self._module, "get_device_name", None)
        return str(read()) if read else processor()

    def account(self) -> dict[str, str]:
        """Return the device's name, its runtime and driver."""
        account = {"device": self.title(), "torch": str(self._torch.__version__)}
        version = getattr(self._torch, "version", None)
        for runtime in ("cuda", "hip", "xpu"):
            known = getattr(version, runtime, None)
            if known and self.kind in ("cuda", runtime):
                account[f"{runtime}_runtime"] = str(known)
        if self.kind == "cuda" and (driver := nvidia_driver()):
            account["driver"] = driver
        if self.kind == "npu":
            account["torch_npu"] = str(getattr(importlib.import_module("torch_npu"), "__version__", "unknown"))
        return account

    def free_bytes(self) -> int | None:
        """Return the device memory that could be taken now; None where torch cannot tell."""
        if self.kind == "cpu":
            return host_free_bytes()
        if hasattr(self._module, "mem_get_info"):
            return int(self._module.mem_get_info()[0])
        if hasattr(self._module, "recommended_max_memory"):
            return int(self._module.recommended_max_memory()) - int(self._module.driver_allocated_memory())
        return None

    def clock(self, work: Callable[[], Any]) -> float:
        """Return the seconds from the start of `work` to the end of all that it started on the device."""
        if self._module is None:
            begin = time.perf_counter()
            work()
            return time.perf_counter() - begin
        event = self._event()
        self._module.synchronize()
        if event is None:
            begin = time.perf_counter()
            work()
            self._module.synchronize()
            return time.perf_counter() - begin
        first, last = event(enable_timing=True), event(enable_timing=True)
        first.record()
        work()
        last.record()
        self._module.synchronize()
        return float(first.elapsed_time(last)) / 1e3  # torch gives milliseconds

    def at_once(self, works: Sequence[Callable[[int], object]]) -> Callable[[int], object] | None:
        """Return a call that begins every work in a stream of its own and ends when all have; None without streams."""
        module = self._module
        if module is None or not (hasattr(module, "Stream") and hasattr(module, "stream")):
            return None
        streams = [module.Stream() for _ in works]

        def run(call: int) -> None:
            here = module.current_stream()
            for stream, work in zip(streams, works, strict=True):
                stream.wait_stream(here)
                with module.stream(stream):
                    work(call)
            for stream in streams:
                here.wait_stream(stream)

        return run

    def spinner(self, blocks: int, threads: int) -> Callable[[], Any] | None:
        """Return a call that polls a flag on so many threads for some milliseconds; None where it cannot be made.

        One thread is torch's own sleeping kernel; more are a kernel that torch compiles (2.8 and newer).
        """
        if blocks * threads == 1:
            sleep = getattr(self._module, "_sleep", None)
            return None if sleep is None else lambda: sleep(SPIN_CYCLES)
        compile_kernel = getattr(self._module, "_compile_kernel", None)
        if compile_kernel is None:
            return None
        try:
            kernel = compile_kernel(_SPIN, "wait_for_others")
            flag = self._torch.zeros(1, dtype=self._torch.int32, device=self.name)
            grid = {"grid": (blocks, 1, 1), "block": (threads, 1, 1)}
            kernel(**grid, args=[flag, SPIN_CYCLES])
            self._module.synchronize()
        except (RuntimeError, OSError, TypeError, ValueError):  # no compiler on this machine
            return None
        return lambda: kernel(**grid, args=[flag, SPIN_CYCLES])

    def counter(self) -> EnergyCounter | None:
        """Return the energy counter of an NVIDIA device; None where there is none."""
        if self.kind != "cuda" or getattr(getattr(self._torch, "version", None), "cuda", None) is None:
            return None
        index = int(self.name.partition(":")[2] or 0)
        read = getattr(self._module, "get_device_properties", None)
        uuid = getattr(read(index), "uuid", None) if read else None
        return nvidia_counter(index, None if uuid is None else str(uuid))

    def _event(self) -> Any:
        return getattr(self._module, "Event", None) or getattr(getattr(self._module, "event", None), "Event", None)


def _available(torch: Any, kind: str) -> bool:
    """Return whether torch can compute on such a device now."""
    if kind == "cpu":
        return True
    if kind == "npu" and not hasattr(torch, "npu"):
        try:
            importlib.import_module("torch_npu")  # it hangs itself into torch
        except ImportError:
            return False
    module = getattr(getattr(torch, "backends", None), "mps", None) if kind == "mps" else getattr(torch, kind, None)
    return bool(module is not None and module.is_available())
