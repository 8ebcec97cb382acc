"""What a measured card says of the host: processor, cores, memory, system, versions. Never who or where it is."""

from __future__ import annotations

import os
import platform
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path


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
