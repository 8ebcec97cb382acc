"""Routers beside each other on a mock fleet: the same requests, one router after the other, one table.

Each router is given as NAME=COMMAND, where {workers} becomes the addresses of the workers, separated by spaces, {fleet}
a fleet file of `lbopt serve` with these workers, and {port} a free port. A router has to answer at /ready or /health
once it is ready. Without a router, requests go to the workers in turn.

    python examples/serve_demo.py --requests 300 --rate 12 --router "round robin=my-router --port {port} {workers}"
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import shlex
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from pathlib import Path

from lbopt.cli.console import print_table, remark
from lbopt.serving.load.config import LoadConfig
from lbopt.serving.load.generator import run_load
from lbopt.serving.load.result import load_table
from lbopt.table import Table

#: s within which a fleet or a router has to be there.
PATIENCE = 90.0


def main() -> None:
    """Run every router in turn and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--workers", type=int, default=4)
    parser.add_argument("--slots", type=int, default=16)
    parser.add_argument("--trace", default="azure-like")
    parser.add_argument("--requests", type=int, default=300)
    parser.add_argument("--rate", type=float, default=8.0, help="requests a second")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--mock", default="", help="more options of `lbopt mock`")
    parser.add_argument("--router", action="append", default=[], metavar="NAME=COMMAND")
    given = parser.parse_args()
    routers = dict(text.split("=", 1) for text in given.router) or {"in turn": ""}
    runs, barriers = {}, []
    for name, command in routers.items():
        remark(f"{name}: {given.requests} requests")
        runs[name], barrier = one_router(given, command)
        barriers.append((name, f"{barrier['mean_imbalance_tokens']:,.0f}", f"{barrier['idle_share']:.1%}"))
    print_table(load_table(runs))
    caption = "mean over the steps of the mock, drain included; idle: share of the barrier's worker time spent waiting"
    print_table(Table("at the barrier", caption, ("router", "imbalance (tokens)", "idle"), barriers))


def one_router(given, command):
    """Run a fresh fleet, the router before it, and the requests; return the result and what the barrier cost."""
    words = ["mock", "--workers", str(given.workers), "--slots", str(given.slots), *shlex.split(given.mock)]
    with started([sys.executable, "-m", "lbopt", *words], stdout=subprocess.PIPE) as fleet:
        addresses = addresses_of(fleet)
        urls = addresses["decode"]
        with contextlib.ExitStack() as stack:
            if command:
                port = free_port()
                folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
                (folder / "fleet.toml").write_text(fleet_file(urls, given.slots), encoding="utf-8")
                text = command.format(workers=" ".join(urls), port=port, fleet=folder / "fleet.toml")
                stack.enter_context(started(shlex.split(text), stdout=subprocess.DEVNULL))
                urls = [f"http://127.0.0.1:{port}"]
                wait_for(urls[0])
            config = LoadConfig(
                urls=tuple(urls), trace=given.trace, requests=given.requests, rate=given.rate, seed=given.seed
            )
            result = asyncio.run(run_load(config))
        with urllib.request.urlopen(addresses["admin"][0] + "/mock/state", timeout=10) as answer:
            return result, json.load(answer)["groups"][0]


@contextlib.contextmanager
def started(words, stdout):
    """Run a process while the block runs; it and its children end with the block."""
    process = subprocess.Popen(words, stdout=stdout, stderr=subprocess.DEVNULL, text=True, start_new_session=True)
    try:
        yield process
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGTERM)
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def addresses_of(fleet):
    """Read the table that `lbopt mock` prints at its start."""
    found = {"decode": [], "prefill": [], "admin": []}
    for line in fleet.stdout:
        role, _, rest = line.partition(" ")
        if role in found and "http://" in rest:
            found[role].append(rest[rest.index("http://") :].strip())
        if found["admin"]:
            return found
    raise SystemExit("lbopt mock did not start; try its options by themselves")


def fleet_file(urls, slots):
    """Return the fleet file of `lbopt serve` for one barrier group of these workers."""
    return f'[[group]]\nname = "decode"\nmodel = "deepseek-v3"\nslots = {slots}\nworkers = {json.dumps(urls)}\n'


def wait_for(url):
    """Wait until a router is ready: status 200 at /ready, or at /health where there is no such path."""
    until, path = time.monotonic() + PATIENCE, "/ready"
    while time.monotonic() < until:
        try:
            with urllib.request.urlopen(url + path, timeout=2):
                return
        except urllib.error.HTTPError as error:
            path = "/health" if error.code == 404 else path
        except OSError:
            pass  # it does not listen yet
        time.sleep(0.2)
    raise SystemExit(f"{url} is not ready within {PATIENCE:g} s")


def free_port():
    """Return a port that nobody uses now."""
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


if __name__ == "__main__":
    main()
