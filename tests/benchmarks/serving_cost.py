"""CPU of routers, a request: `python -m tests.benchmarks.serving_cost [--requests 200] [--streams 32]`.

With ``--rate 200`` the routers take turns under an open load instead: CPU a request, memory, and by how much the first
byte is later than straight from the engines, in one table; four routers take three minutes.

With ``--first 600`` also the time to the first byte of so many requests, four at once, straight to an engine and
through the router in turn. With ``--open 2000`` also so many streams at once through `lbopt serve`, chunks
`--spacing` seconds apart.

Engine, router and load are processes of their own; the CPU of each is read from the system. Two cases: 64 chunks 20 ms
apart, and a prompt of 220 KB answered by one chunk. The baseline is a proxy of some thirty lines on the same libraries
that counts nothing and places in turn. Other routers are measured where their programs are
installed: ``--router NAME=COMMAND``, in which {port}, {other}, {a}, {b}, {c} and {fleet} stand for its port, another
one, the engines' addresses, and a fleet file of lbopt.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import aiohttp
import uvloop
from aiohttp import web

from tests.benchmarks.open_loop import engines, open_loop


async def plain(port, engines):
    """The baseline: aiohttp in front and behind, in turn, nothing counted."""
    session = aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0), auto_decompress=False)
    turn = 0

    async def forward(request):
        nonlocal turn
        turn += 1
        body = await request.read()
        url = engines[turn % len(engines)] + request.path
        async with session.post(url, data=body, headers={"Content-Type": "application/json"}) as upstream:
            response = web.StreamResponse(status=upstream.status, headers={"Content-Type": upstream.content_type})
            await response.prepare(request)
            async for chunk in upstream.content.iter_any():
                await response.write(chunk)
            return response

    async def healthy(request):
        return web.Response(text="ok")

    app = web.Application(client_max_size=2**26)
    app.add_routes([web.post("/v1/completions", forward), web.get("/ready", healthy)])
    await serve(app, port)


async def serve(app, port):
    """Serve for ever."""
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", port, backlog=1024).start()
    await asyncio.Event().wait()


def cpu(pid):
    """Seconds of CPU that a process and its threads have used."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


async def load(base, count, streams, chunks, prompt):
    """Send requests, so many at once; returns the seconds to the first byte of each, and failures."""
    gate, firsts, failed = asyncio.Semaphore(streams), [], 0
    body = json.dumps({"model": "m", "prompt": prompt, "max_tokens": chunks, "stream": True}).encode()
    headers = {"Content-Type": "application/json"}

    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session:

        async def one():
            nonlocal failed
            async with gate:
                begin = time.perf_counter()
                async with session.post(base + "/v1/completions", data=body, headers=headers) as answer:
                    first = None
                    data = b""
                    async for chunk in answer.content.iter_any():
                        first = first or time.perf_counter() - begin
                        data += chunk
                    if data.count(b"data: ") != chunks + 1:
                        failed += 1
                    firsts.append(first)

        await asyncio.gather(*(one() for _ in range(count)))
    return firsts, failed


def compare(routers, engine_urls, arguments):
    """Print what routers cost under the same open load, in blocks that take turns."""
    seen = {name: ([], [], []) for name in ("straight", *routers)}  # seconds to the first byte, CPU a request, failures
    started = {}
    try:
        for name, (port, command) in routers.items():
            started[name] = (
                f"http://127.0.0.1:{port}",
                subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=one_thread()),
            )
            asyncio.run(until_ready(*started[name]))
            asyncio.run(open_loop(started[name][0], arguments.rate, 2, 64, "warm", 0))
        for block in range(arguments.blocks):
            for name, (firsts, spent, failed) in seen.items():
                base, process = started.get(name, (engine_urls[block % len(engine_urls)], None))
                before = cpu(process.pid) if process else 0.0
                load = open_loop(base, arguments.rate, arguments.seconds, 64, "hello " * 20, block)
                more, lost = uvloop.run(load)
                firsts += more
                spent.append(1000 * (cpu(process.pid) - before) / max(len(more), 1) if process else 0.0)
                failed.append(lost)
        print("router | CPU a request, ms | MiB | first byte P50, P95, P99, ms | added at P50, P95, P99 | failed")
        plain = None
        for name, (firsts, spent, failed) in seen.items():
            firsts.sort()
            at = [1000 * firsts[int(q * len(firsts))] for q in (0.5, 0.95, 0.99)]
            plain = plain or at
            memory = f"{resident(started[name][1].pid):.0f}" if name in started else ""
            print(
                f"{name} | {sum(spent) / len(spent):.2f} ({min(spent):.2f} to {max(spent):.2f}) | {memory} | "
                + ", ".join(f"{ms:.2f}" for ms in at)
                + " | "
                + ", ".join(f"{ms - base:.2f}" for ms, base in zip(at, plain, strict=True))
                + f" | {sum(failed)}",
                flush=True,
            )
    finally:
        for _, process in started.values():
            process.terminate()
        for _, process in started.values():
            process.wait(20)


def resident(pid):
    """MiB that a process holds."""
    return int(Path(f"/proc/{pid}/status").read_text().partition("VmRSS:")[2].split()[0]) / 1024


def one_thread():
    """The environment of routers."""
    return {**os.environ, "OMP_NUM_THREADS": "1", "NUMBA_NUM_THREADS": "1"}


def free_port():
    """A port that is free now."""
    import socket

    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def measure(name, command, base, engine_url, arguments):
    """Print CPU a request of one router in both cases."""
    log = tempfile.TemporaryFile()  # noqa: SIM115 (the router writes to it until it ends)
    router = subprocess.Popen(command, stdout=log, stderr=log, env=one_thread())
    try:
        asyncio.run(until_ready(base, router))
        row = [name]
        asyncio.run(load(base, 20, 10, 4, "warm"))
        for chunks, prompt, count in (
            (64, "hello " * 20, arguments.requests),
            (1, "word " * 44_000, arguments.requests),
        ):
            before = cpu(router.pid)
            firsts, failed = asyncio.run(load(base, count, arguments.streams, chunks, prompt))
            spent = 1000 * (cpu(router.pid) - before) / count
            firsts.sort()
            late = 1000 * firsts[int(0.99 * len(firsts))]
            row.append(
                f"{spent:.2f} ms (first byte P50 {1000 * firsts[len(firsts) // 2]:.1f}, P99 {late:.1f} ms; "
                f"{failed} failed)"
            )
        print(" | ".join(row), flush=True)
        if arguments.first:
            first_bytes(base, engine_url, arguments)
        if arguments.open and name == "lbopt serve":
            many(base, router.pid, arguments)
    except Exception as error:
        log.seek(0)
        print(f"{name}: {error!r}; {log.read()[-600:].decode(errors='replace')}", flush=True)
    finally:
        router.terminate()
        try:
            router.wait(10)
        except subprocess.TimeoutExpired:
            router.kill()


def first_bytes(base, engine_url, arguments):
    """Print the time to the first byte, in blocks that take turns, so that both see the same machine."""
    seen = {"straight": [], "through the router": []}
    for _ in range(6):
        for name, where in (("straight", engine_url), ("through the router", base)):
            firsts, _ = asyncio.run(load(where, arguments.first // 6, 4, 4, "hello " * 20))
            seen[name] += firsts
    at = {
        name: [1000 * sorted(firsts)[int(q * len(firsts))] for q in (0.5, 0.9, 0.99)] for name, firsts in seen.items()
    }
    for name, values in at.items():
        print(f"first byte {name}: P50 {values[0]:.2f}, P90 {values[1]:.2f}, P99 {values[2]:.2f} ms", flush=True)
    plain, ours = at.values()
    print(
        "added: " + ", ".join(f"{q} {b - a:.2f} ms" for q, a, b in zip(("P50", "P90", "P99"), plain, ours, strict=True))
    )


def many(base, pid, arguments):
    """Print what so many open streams cost."""
    before, begin = cpu(pid), time.perf_counter()
    firsts, failed = asyncio.run(load(base, arguments.open, arguments.open, 64, "hello " * 20))
    took, spent = time.perf_counter() - begin, cpu(pid) - before
    firsts.sort()
    print(
        f"{arguments.open} open: {1000 * spent / arguments.open:.2f} ms CPU each, {spent / took:.0%} of a core, "
        f"{resident(pid):.0f} MiB, first byte P99 {1000 * firsts[int(0.99 * len(firsts))]:.0f} ms, {failed} failed",
        flush=True,
    )


async def until_ready(base, process):
    """Wait until a request is served."""
    async with aiohttp.ClientSession() as session:
        for _ in range(900):
            if process.poll() is not None:
                raise RuntimeError(f"the router ended with {process.returncode}")
            try:
                body = {"model": "m", "prompt": "x", "max_tokens": 1, "stream": True}
                async with session.post(base + "/v1/completions", json=body) as answer:
                    if answer.status == 200:
                        await answer.read()
                        return
            except aiohttp.ClientError:
                pass
            await asyncio.sleep(0.2)
    raise RuntimeError("not ready")


def main():
    """Measure."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--requests", type=int, default=200)
    parser.add_argument("--streams", type=int, default=32)
    parser.add_argument("--router", action="append", default=[])
    parser.add_argument("--policy", default="auto")
    parser.add_argument("--set", action="append", default=[])
    parser.add_argument("--engines", type=int, nargs="+")
    parser.add_argument("--rate", type=float, default=0)
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--blocks", type=int, default=4)
    parser.add_argument("--plain", nargs="+")
    parser.add_argument("--only", default="")
    parser.add_argument("--spacing", type=float, default=0.02)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--open", type=int, default=0)
    arguments = parser.parse_args()
    if arguments.engines:
        uvloop.run(engines(arguments.engines, arguments.spacing))
        return
    if arguments.plain:
        uvloop.run(plain(int(arguments.plain[0]), arguments.plain[1:]))
        return
    ports = [free_port() for _ in range(3)]
    me = [sys.executable, "-m", "tests.benchmarks.serving_cost"]
    served = subprocess.Popen([*me, "--engines", *map(str, ports), "--spacing", str(arguments.spacing)])
    urls = [f"http://127.0.0.1:{port}" for port in ports]
    try:
        with tempfile.TemporaryDirectory() as folder:
            fleet = Path(folder) / "fleet.toml"
            fleet.write_text(f'[[group]]\nmodel = "m"\nslots = {arguments.open + 256}\nworkers = {json.dumps(urls)}\n')
            routers = {}
            where = {"fleet": fleet, **dict(zip("abc", urls, strict=True))}
            port = free_port()
            routers["plain aiohttp"] = (port, [*me, "--plain", str(port), *urls])
            port = free_port()
            ours = [sys.executable, "-m", "lbopt", "serve", "--fleet", str(fleet), "--port", str(port)]
            ours += ["--policy", arguments.policy]
            for setting in arguments.set:
                ours += ["--set", setting]
            routers["lbopt serve"] = (port, ours)
            for text in arguments.router:
                name, _, command = text.partition("=")
                port = free_port()
                routers[name] = (
                    port,
                    command.format(**{**where, "port": port, "other": free_port()}).split(),
                )
            routers = {name: way for name, way in routers.items() if arguments.only in name}
            if arguments.rate:
                compare(routers, urls, arguments)
                return
            print("router | 64 chunks | 220 KB", flush=True)
            for name, (port, command) in routers.items():
                measure(name, command, f"http://127.0.0.1:{port}", urls[0], arguments)
    finally:
        served.kill()


if __name__ == "__main__":
    main()
