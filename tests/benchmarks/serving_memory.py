"""Resident memory of `lbopt serve` under load: `python -m tests.benchmarks.serving_memory [--minutes 10] [--rate 60]`.

The router runs as a process of its own, with its record on; two stub engines answer. Of the requests some are
cancelled after their first bytes, some are large, and some are no JSON, so that every way out is taken. Memory is read
every few seconds. Printed is the slope of a straight line through the readings of the second half, with its Student
interval over blocks of a minute, in MB an hour and in bytes a request. `--limit` makes the exit code 1 where the lower
end of the interval is above so many MB an hour.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

import aiohttp
import numpy as np
from scipy import stats

from tests.benchmarks.serving_cost import free_port, until_ready

PERIOD = 2.0


def resident(pid):
    """Resident memory of a process, MB."""
    return int(Path(f"/proc/{pid}/status").read_text().partition("VmRSS:")[2].split()[0]) / 1024


async def load(base, seconds, rate, seen, read):
    """Send requests at random times, and read memory beside it."""
    rng, loop, tasks = random.Random(3), asyncio.get_running_loop(), set()
    headers = {"Content-Type": "application/json"}

    async def one(session, kind):
        size = 200_000 if kind < 0.01 else rng.randint(10, 4000)
        body = json.dumps(
            {"model": "m", "prompt": "w " * (size // 2), "max_tokens": rng.randint(1, 32), "stream": True}
        )
        try:
            if kind > 0.99:
                body = body[:-1]
            async with session.post(base + "/v1/completions", data=body, headers=headers) as answer:
                if 0.90 < kind < 0.95:
                    await answer.content.readany()
                    answer.close()
                    seen["cancelled"] += 1
                    return
                await answer.read()
                seen[answer.status] += 1
        except aiohttp.ClientError as error:
            seen[type(error).__name__] += 1

    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session:
        end, due, look = loop.time() + seconds, loop.time(), loop.time()
        while (now := loop.time()) < end:
            if now >= look:
                read(now)
                look += PERIOD
            due += rng.expovariate(rate)
            await asyncio.sleep(max(0.0, due - loop.time()))
            task = loop.create_task(one(session, rng.random()))
            tasks.add(task)
            task.add_done_callback(tasks.discard)
        await asyncio.gather(*tasks)


def slope_of(times, values):
    """Slope in units a second, and half the width of its 95 % interval, by means of blocks of a minute."""
    blocks = np.floor((times - times[0]) / 60)
    x = np.array([times[blocks == b].mean() for b in np.unique(blocks)])
    y = np.array([values[blocks == b].mean() for b in np.unique(blocks)])
    if x.size < 3:
        return float(np.polyfit(times, values, 1)[0]), float("nan")
    if np.ptp(y) == 0:
        return 0.0, 0.0
    line = stats.linregress(x, y)
    return float(line.slope), float(stats.t.ppf(0.975, x.size - 2) * line.stderr)


def main():
    """Measure."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--rate", type=float, default=60.0)
    parser.add_argument("--set", action="append", default=[])
    parser.add_argument("--limit", type=float)
    arguments = parser.parse_args()
    ports = [free_port(), free_port()]
    me = [sys.executable, "-m", "tests.benchmarks.serving_cost"]
    engines = [
        subprocess.Popen([*me, "--engine", str(port), "--spacing", "0.02"], stderr=subprocess.DEVNULL) for port in ports
    ]
    with tempfile.TemporaryDirectory() as name:
        fleet = Path(name) / "fleet.toml"
        urls = json.dumps([f"http://127.0.0.1:{port}" for port in ports])
        fleet.write_text(f'[[group]]\nmodel = "m"\nslots = 64\nworkers = {urls}\n')
        port = free_port()
        command = [sys.executable, "-m", "lbopt", "serve", "--fleet", str(fleet), "--port", str(port)]
        command += ["--policy", "auto", "--record", str(Path(name) / "record")]
        for setting in arguments.set:
            command += ["--set", setting]
        environment = {**os.environ, "OMP_NUM_THREADS": "1", "NUMBA_NUM_THREADS": "1"}
        router = subprocess.Popen(command, env=environment)
        base, seen, readings = f"http://127.0.0.1:{port}", Counter(), []
        try:
            asyncio.run(until_ready(base, router))
            begun = time.monotonic()

            def read(_now):
                readings.append((time.monotonic() - begun, resident(router.pid)))
                if len(readings) % 30 == 1:
                    print(
                        f"{readings[-1][0]:6.0f} s: {readings[-1][1]:.1f} MB, {sum(seen.values())} requests", flush=True
                    )

            asyncio.run(load(base, 60 * arguments.minutes, arguments.rate, seen, read))
        finally:
            router.terminate()
            router.wait(20)
            for engine in engines:
                engine.kill()
    times, memory = np.array(readings).T
    late = times >= times[-1] / 2
    slope, half = slope_of(times[late], memory[late])
    done = sum(seen.values())
    print(f"{done} requests: {dict(seen)}")
    print(f"memory from {memory[0]:.1f} to {memory[-1]:.1f} MB, at most {memory.max():.1f}")
    rate = done / times[-1]
    low, high = 3600 * (slope - half), 3600 * (slope + half)
    print(f"second half: {3600 * slope:+.2f} MB an hour, 95 % {low:+.2f} to {high:+.2f}; ", end="")
    print(f"{2**20 * slope / rate:+.0f} bytes a request")
    sys.exit(arguments.limit is not None and 3600 * (slope - half) > arguments.limit)


if __name__ == "__main__":
    main()
