"""What clients do: count tokens, go away, come in bursts, ask for several sequences, use the openai package."""

from __future__ import annotations

import json
import socket
import subprocess
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import Event, Thread
from urllib.parse import urlsplit

from tests.engine.fleet import SLOTS, Fleet
from tests.engine.http_raw import Answer, metric, send, value_of
from tests.engine.row import Row
from tests.engine.transparency import compare

_MADE, _COUNTED = "vllm:generation_tokens_total", "lbopt_output_tokens_total"
FAILED = r'lbopt_requests_total\{ending="failed"\}'
_RUNNING, _SEEN = "vllm:num_requests_running", "lbopt_worker_running"


def transparency(fleet: Fleet) -> Row:
    """All kinds of requests, direct and through the router."""
    before = metric(fleet.url, FAILED)
    told, detail = _equal(compare(fleet.urls[0], fleet.url))
    failed = metric(fleet.url, FAILED) - before
    detail.append(f"{failed:.0f} requests that clients had wrong count as failed by engines")
    return Row("kinds of requests, direct and through the router", told, detail, ok=failed == 0)


def _equal(compared: dict[str, str]) -> tuple[str, list[str]]:
    """Say how many kinds are equal, and in what the others are not."""
    other = {name: what for name, what in compared.items() if what}
    heads = sum(what.startswith("headers") for what in other.values())
    told = f"{len(compared) - len(other)} of {len(compared)} equal, {heads} more but for headers"
    return told, [f"{name}: {what}" for name, what in other.items()]


def another_router(fleet: Fleet) -> Row:
    """The same kinds through the router of SGLang, for comparison."""
    router = fleet.start_sglang_router()
    told, detail = _equal(compare(fleet.urls[0], router.url))
    fleet.processes.stop(router)
    return Row(f"the same through sglang-router {fleet.environment.versions['sglang-router']}", told, detail)


def ask(fleet: Fleet, number: int, tokens: int = 30, *, url: str = "", **more: object) -> Answer:
    """Send one stream and read it."""
    body = {"model": "tiny", "max_tokens": tokens, "ignore_eos": True, "stream": True, "seed": number, **more}
    chat = "messages" in more
    if not chat:
        body.setdefault("prompt", f"say {number}")
    return send(url or fleet.url, "/v1/chat/completions" if chat else "/v1/completions", body)


def at_once(fleet: Fleet, count: int, tokens: int = 30, **more: object) -> list[Answer]:
    """Send so many streams at the same time."""
    with ThreadPoolExecutor(count) as pool:
        return list(pool.map(lambda number: ask(fleet, number, tokens, **more), range(count)))


def counts(fleet: Fleet) -> Row:
    """Tokens that the router counts of streams without `stream_options`, beside what engines made."""

    def both() -> tuple[float, float]:
        return sum(metric(url, _MADE) for url in fleet.urls), metric(fleet.url, _COUNTED)

    before = both()
    answers = at_once(fleet, 8) + at_once(fleet, 8, messages=[{"role": "user", "content": "say it"}])
    time.sleep(2.5)  # metrics of engines are some steps behind
    made, counted = (after - first for after, first in zip(both(), before, strict=True))
    whole = sum(answer.is_whole for answer in answers)
    usage = sum('"usage":{' in event for answer in answers for event in answer.events)
    detail = [f"{whole} of {len(answers)} whole", f"{usage} events with usage, which no client asked for"]
    told = f"engines made {made:,.0f}, the router counted {counted:,.0f}"
    return Row(
        "tokens of streams without stream_options", told, detail, ok=made == counted and whole == 16 and not usage
    )


def goes_away(fleet: Fleet) -> Row:
    """A client that closes its connection: until the engine is free, and whether the router's books close."""
    detail, ok = [], True
    for stream in (True, False):
        words = {"model": "tiny", "prompt": "hello", "max_tokens": 1900, "ignore_eos": True, "stream": stream}
        body, parts = json.dumps(words).encode(), urlsplit(fleet.url)
        head = (
            f"POST /v1/completions HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: {len(body)}"
        )
        with socket.create_connection((parts.hostname, parts.port or 80)) as wire:
            wire.sendall(head.encode() + b"\r\n\r\n" + body)
            until(lambda: sum(metric(url, _RUNNING) for url in fleet.urls) > 0, 10)
        seconds = until(lambda: sum(metric(url, _RUNNING) for url in fleet.urls) == 0, 20)
        held = metric(fleet.url, _SEEN)
        detail.append(
            f"{'a stream' if stream else 'a whole answer'}: engine free after {seconds:.1f} s, {held:.0f} held"
        )
        ok = ok and seconds < 20 and held == 0
    return Row("a client that goes", "; ".join(detail), ok=ok)


def until(holds: object, seconds: float) -> float:
    """Wait until a call says true; return the seconds, all of them where it never does."""
    assert callable(holds)
    began = time.monotonic()
    while not holds() and time.monotonic() - began < seconds:
        time.sleep(0.1)
    return min(seconds, time.monotonic() - began)


@dataclass(frozen=True, slots=True)
class Seen:
    """Sequences at one moment: those that engines run and keep waiting, and what the router counts of each engine."""

    running: float
    waiting: float
    router: list[float]


@contextmanager
def watching(fleet: Fleet) -> Iterator[list[Seen]]:
    """Note again and again what engines run and what the router counts, while the block runs."""
    seen: list[Seen] = []
    done = Event()

    def look() -> None:
        names = [rf'{_SEEN}\{{[^}}]*"{url.removeprefix("http://")}"[^}}]*\}}' for url in fleet.urls]
        while not done.wait(0.05):
            router = send(fleet.url, "/metrics").body
            engines = [send(url, "/metrics").body for url in fleet.urls]
            running, waiting = (
                sum(value_of(engine, name) for engine in engines) for name in (_RUNNING, "vllm:num_requests_waiting")
            )
            seen.append(Seen(running, waiting, [value_of(router, name) for name in names]))

    watcher = Thread(target=look)
    watcher.start()
    try:
        yield seen
    finally:
        done.set()
        watcher.join()


def burst(fleet: Fleet) -> Row:
    """Eight requests at once: how they are split over two engines."""
    splits, whole = [], 0
    for _ in range(3):
        with watching(fleet) as seen:
            whole += sum(answer.is_whole for answer in at_once(fleet, 8, 100))
        splits.append(max((one.router for one in seen), key=sum, default=[0.0, 0.0]))
    told = ", ".join(":".join(f"{count:.0f}" for count in split) for split in splits)
    ok = whole == 24 and all(sum(split) < 8 or max(split) <= 5 for split in splits)
    return Row("three bursts of 8", told, [f"{whole} of 24 whole"], ok=ok)


def several_sequences(fleet: Fleet) -> Row:
    """Requests of 8 sequences each: engines must not hold more than slots, and the router's count must be theirs."""
    with watching(fleet) as seen:
        answers = at_once(fleet, 4, 100, n=SLOTS, temperature=1.0)
    running, waiting = max(one.running for one in seen), max(one.waiting for one in seen)
    router = max(sum(one.router) for one in seen)
    whole = sum(answer.is_whole for answer in answers)
    told = f"engines ran {running:.0f} and kept {waiting:.0f} waiting; the router counted {router:.0f}"
    ok = waiting == 0 and whole == 4 and router == running
    return Row("4 requests with n=8", told, [f"{whole} of 4 whole"], ok=ok)


def openai_client(fleet: Fleet) -> Row:
    """The openai package of the environment, in a process of its own."""
    script = Path(__file__).with_name("openai_calls.py")
    words = [str(fleet.environment.bin / "python"), str(script), fleet.url]
    done = subprocess.run(words, capture_output=True, text=True, timeout=300, check=False)
    lines = done.stdout.splitlines()
    bad = [line for line in lines if not line.startswith("ok ")]
    bad += [done.stderr.strip().splitlines()[-1]] if done.returncode and done.stderr.strip() else []
    version = fleet.environment.versions["openai"]
    return Row(f"openai {version}", f"{len(lines) - len(bad)} of {len(lines)} calls as expected", bad, ok=not bad)
