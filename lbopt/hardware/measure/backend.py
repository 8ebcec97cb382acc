"""Who computes, and on which machine: a protocol of a few verbs, the table of those who follow it, the host.

What a measured card says of the host: processor, cores, memory, system, versions. Never who or where it is.

Who computes: a protocol of a few verbs, and the table of those who follow it. Their packages are imported on use.
"""

from __future__ import annotations

import os
import platform
from collections.abc import Callable, Sequence
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from lbopt.spec import unknown

if TYPE_CHECKING:
    from lbopt.hardware.measure.attention import AttentionShape
    from lbopt.hardware.measure.power import EnergyCounter
    from lbopt.hardware.measure.products import Product


def host_account(*packages: str) -> dict[str, str]:
    """Return processor, cores, memory, system and the versions of Python and of `packages`, where installed."""
    account = {
        "processor": processor(),
        "cores": str(usable_cores()),
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
    }
    total = _meminfo("MemTotal")
    if total is not None:
        account["memory"] = f"{total / 2**30:.1f} GiB"
    for package in packages:
        try:
            account[package] = version(package)
        except PackageNotFoundError:
            continue
    return account


def processor() -> str:
    """Return the processor's name as the kernel reports it."""
    return _line("/proc/cpuinfo", "model name") or platform.processor() or platform.machine()


def usable_cores() -> int:
    """Return the cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def host_free_bytes() -> int | None:
    """Return the memory that can be taken without swapping; None where the system does not tell."""
    return _meminfo("MemAvailable")


def nvidia_driver() -> str | None:
    """Return the version of NVIDIA's kernel driver, where it is loaded."""
    line = _line("/proc/driver/nvidia/version", "NVRM version")
    return line.split("  ")[1].strip() if line and "  " in line else line


def _meminfo(entry: str) -> int | None:
    line = _line("/proc/meminfo", entry)
    return int(line.split()[0]) * 1024 if line else None


def _line(file: str, key: str) -> str | None:
    """Return what stands behind `key` in a file of the kernel."""
    try:
        with Path(file).open(encoding="utf-8") as stream:
            for line in stream:
                name, _, value = line.partition(":")
                if name.strip() == key:
                    return value.strip()
    except OSError:
        pass
    return None


#: Start one attention layer over requests of the given contexts, which lie in the pool from the given token on.
#: Returns what it computes, float[batch, heads, value_dim] of the backend's own kind; it may not be finished yet.
Decode = Callable[[tuple[int, ...], int], Any]


class Backend(Protocol):
    """Something that computes attention on a device and can say how long it took."""

    @property
    def name(self) -> str:
        """Its name in the table."""

    @property
    def device(self) -> str:
        """The kind of device, and which of several: cpu, cuda, cuda:1, npu ..."""

    @property
    def dtype(self) -> str:
        """In which numbers it keeps KV."""

    @property
    def itemsize(self) -> int:
        """Bytes of one such number."""

    @property
    def is_host(self) -> bool:
        """Whether it is the host's processor, for which smaller sizes are the default."""

    def account(self) -> dict[str, str]:
        """Return device, driver and versions; no name of host or user, no path."""

    def free_bytes(self) -> int | None:
        """Return the memory that could be taken now, in bytes; None where the system does not tell."""

    def scratch_bytes(self, shape: AttentionShape, tokens: int) -> int:
        """Return the bytes that a call over so many tokens needs beside KV, about."""

    def decode(self, shape: AttentionShape, pool_tokens: int) -> Decode:
        """Take a pool of KV and return the function that attends over parts of it."""

    def reader(self, num_bytes: int) -> Callable[[], Any]:
        """Take a block of that size and return a function that reads it once, with next to no arithmetic."""

    def multiply(self, products: Sequence[Product]) -> Callable[[int], Callable[[], Any]]:
        """Take random weights; return what makes, of a number of requests, the call that multiplies with them all."""

    def at_once(self, works: Sequence[Callable[[int], object]]) -> Callable[[int], object] | None:
        """Return a call that does all works side by side on the device; None where it has no streams."""

    def spin(self, blocks: int, threads: int) -> Callable[[], Any] | None:
        """Return a call that waits on so many blocks of so many threads; None where there is no such."""

    def touch(self) -> Callable[[], Any]:
        """Return a call that launches next to nothing."""

    def counter(self) -> EnergyCounter | None:
        """Return the device's energy counter; None where none is found."""

    def clock(self, work: Callable[[], Any]) -> float:
        """Return the seconds from the start of `work` to the end of all that it started on the device."""


def _numpy(device: str | None, dtype: str | None) -> Backend:
    from lbopt.hardware.measure.numpy_backend import NumpyBackend

    return NumpyBackend(device, dtype)


def _torch(device: str | None, dtype: str | None) -> Backend:
    from lbopt.hardware.measure.torch_backend import TorchBackend

    return TorchBackend(device, dtype)


BACKENDS: dict[str, Callable[[str | None, str | None], Backend]] = {"numpy": _numpy, "torch": _torch}


def make_backend(name: str = "auto", device: str | None = None, dtype: str | None = None) -> Backend:
    """Return the backend of that name; "auto" is torch where it is installed, else numpy."""
    if name == "auto":
        name = "torch" if find_spec("torch") else "numpy"
    if name not in BACKENDS:
        raise unknown("backend", name, ["auto", *BACKENDS])
    return BACKENDS[name](device, dtype)
