"""The same requests at the same times under two rules, one after the other, with the router's record of each."""

from __future__ import annotations

import asyncio
import csv
import random
import shutil
from pathlib import Path

from lbopt.serving.load.config import LoadConfig
from lbopt.serving.load.generator import run_load
from lbopt.serving.load.result import LoadResult, percentile
from lbopt.serving.record.seal import seal
from tests.engine.fleet import Fleet
from tests.engine.http_raw import metric
from tests.engine.row import Row

RULES = ("round-robin", "auto")


def write_trace(path: Path, count: int, prompt: tuple[int, int], output: tuple[int, int], seed: int = 1) -> Path:
    """Write requests with exponential gaps of mean 1 and log-normal lengths, each a median and a most; return the path.

    The tokenizer of the test has letters and pairs, so that a prompt has some four times the tokens that are asked for.
    """
    draw, clock = random.Random(seed), 0.0
    with path.open("w", newline="", encoding="utf-8") as lines:
        table = csv.writer(lines)
        table.writerow(["arrival", "prompt", "output"])
        for _ in range(count):
            clock += draw.expovariate(1.0)
            sizes = [round(median * draw.lognormvariate(0, 0.8)) for median, _ in (prompt, output)]
            limits = (prompt[1], output[1])
            table.writerow([f"{clock:.4f}", *(max(2, min(pair)) for pair in zip(sizes, limits, strict=True))])
    return path


def one_run(fleet: Fleet, rule: str, trace: Path, rate: float) -> tuple[LoadResult, dict[str, float]]:
    """Start the router with a rule and send a trace; return the result and the record in counts."""
    record = fleet.processes.folder / f"{fleet.name}-record-{rule}"
    shutil.rmtree(record, ignore_errors=True)
    fleet.start_router(rule, "--record", str(record))
    named = ("prompt=prompt", "output=output", "arrival=arrival")
    result = asyncio.run(run_load(LoadConfig(urls=(fleet.url,), trace=str(trace), rate=rate, named=named)))
    barrier = metric(fleet.url, "lbopt_barrier_seconds_total")
    idle = metric(fleet.url, "lbopt_barrier_idle_seconds_total") / barrier if barrier else 0.0
    fleet.stop_router()
    sealed = seal(str(record))
    return result, {"idle": idle, "recorded": sealed.requests}


def two_rules(fleet: Fleet) -> Row:
    """120 requests under each rule: all served, and the record has them all."""
    trace = write_trace(fleet.processes.folder / "trace.csv", 120, (40, 160), (33, 160))
    detail, ok = [], True
    for rule in RULES:
        result, record = one_run(fleet, rule, trace, 4.0)
        served, tpot, ttft = len(result.served), percentile(result.tpot, 50), percentile(result.ttft, 95)
        ok = ok and served == record["recorded"] == 120
        detail.append(
            f"{rule}: {served} served, {record['recorded']:.0f} recorded, TPOT P50 {1e3 * tpot.value:.0f} ms, "
            f"TTFT P95 {1e3 * ttft.value:.0f} ms, {record['idle']:.1%} idle at the barrier as the router counts"
            if tpot and ttft
            else f"{rule}: nothing served"
        )
    return Row("120 requests under two rules, with the record", "; ".join(detail), ok=ok)
