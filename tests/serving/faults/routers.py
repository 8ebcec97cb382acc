"""The routers of the table, and processes that end with the block in which they run."""

from __future__ import annotations

import asyncio
import json
import os
import random
import shutil
import signal
import socket
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from importlib.metadata import distributions, version
from pathlib import Path

from tests.serving.faults.client import get

#: Slots of each engine that the fleet file of `lbopt serve` names.
SLOTS = 8
#: Seconds within which a router has to be ready: it may compile its rules first.
PATIENCE = 300.0
_ROOT = Path(__file__).resolve().parents[3]
#: Where ports of routers are from.
_PORTS = (12_000, 32_000)


class NotReadyError(Exception):
    """A router that did not start."""


@dataclass(frozen=True, slots=True)
class Column:
    """A router with its options.

    Parameters
    ----------
    name
        As in the table.
    words
        Its command; {fleet} stands for a fleet file of `lbopt serve`, {port} and {other} for free ports, and a word
        that is {engines} for the addresses of the engines.
    ours
        Whether it is `lbopt serve`.
    """

    name: str
    words: tuple[str, ...]
    ours: bool = False


def columns(policy: str) -> list[Column]:
    """Return the routers that are here: `lbopt serve` with two rules, and others whose programs are in the path.

    Parameters
    ----------
    policy
        Of the others, as both call it.
    """
    serve = (sys.executable, "-m", "lbopt", "serve", "--fleet", "{fleet}", "--port", "{port}", "--policy")
    found = [
        Column(f"lbopt serve {version('lbopt')}, {rule}", (*serve, rule), True) for rule in ("auto", "round-robin")
    ]
    rest = ("--host", "127.0.0.1", "--port", "{port}", "--prometheus-port", "{other}", "--policy", policy)
    rest = (*rest, "--worker-urls", "{engines}")
    for package, name, more in (("vllm-router", "vllm-router", ()), ("sglang-router", "smg", ("launch",))):
        if (program := shutil.which(name)) is not None:
            found.append(Column(f"{package} {_version_beside(program, package)}, {policy}", (program, *more, *rest)))
    return found


def _version_beside(program: str, package: str) -> str:
    """Return the version of a package in the environment of a program."""
    homes = [str(home) for home in Path(program).parent.parent.glob("lib/python*/site-packages")]
    return next((found.version for found in distributions(name=package, path=homes)), "of unknown version")


@asynccontextmanager
async def process(*words: str, **options: object) -> AsyncIterator[asyncio.subprocess.Process]:
    """Run a process while the block runs; it and its children end with the block."""
    usual = {"stdout": asyncio.subprocess.DEVNULL, "stderr": asyncio.subprocess.DEVNULL, "cwd": _ROOT}
    running = await asyncio.create_subprocess_exec(*words, start_new_session=True, **{**usual, **options})
    try:
        yield running
    finally:
        with suppress(ProcessLookupError):
            os.killpg(running.pid, signal.SIGKILL)
        await running.wait()


@asynccontextmanager
async def engine(fault: str, spacing: float) -> AsyncIterator[tuple[asyncio.subprocess.Process, str]]:
    """Run an engine; gives its process and its address."""
    pipes = {"stdin": asyncio.subprocess.PIPE, "stdout": asyncio.subprocess.PIPE}
    words = (sys.executable, "-m", "tests.serving.faults.engine", fault, str(spacing))
    async with process(*words, **pipes) as running:
        assert running.stdout is not None
        yield running, (await running.stdout.readline()).decode().strip()


@asynccontextmanager
async def router(
    column: Column, engines: list[str], folder: Path
) -> AsyncIterator[tuple[asyncio.subprocess.Process, str]]:
    """Run a router before engines; gives its process and its address once it is ready.

    Parameters
    ----------
    column, engines
        Which router, and the addresses of the engines.
    folder
        Where its fleet file may lie.

    Raises
    ------
    NotReadyError
        If it ends instead.
    """
    fleet = folder / "fleet.toml"
    group = f'[[group]]\nname = "g"\nmodel = "m"\nslots = {SLOTS}\nworkers = {json.dumps(engines)}\n'
    fleet.write_text(group, encoding="utf-8")
    port, other = free_ports(2)
    words: list[str] = []
    for word in column.words:
        words += engines if word == "{engines}" else [word.format(fleet=fleet, port=port, other=other)]
    async with process(*words) as running:
        url = f"http://127.0.0.1:{port}"
        async with asyncio.timeout(PATIENCE):
            while (await get(url, "/ready" if column.ours else "/health"))[0] != 200:
                if running.returncode is not None:
                    raise NotReadyError(f"{column.name} ended at its start; try `{' '.join(words)}`")
                await asyncio.sleep(0.1)
        yield running, url


def free_ports(count: int) -> list[int]:
    """Return ports that nobody uses now, below those that systems give to clients, which may be taken at any time."""
    found: set[int] = set()
    while len(found) < count:
        port = random.randrange(*_PORTS)
        with suppress(OSError), socket.create_server(("127.0.0.1", port)):
            found.add(port)
    return sorted(found)
