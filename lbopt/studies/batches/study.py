"""`run_batches`: the recipe of a gap study of prefill batches. Ctrl-C ends it early and keeps what is done."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lbopt.exceptions import LbOptError
from lbopt.prefill.exact import PrefillBatch, allocation_gaps
from lbopt.solvers.warm_up import warm
from lbopt.studies.batches.config import BatchesConfig
from lbopt.studies.batches.outcome import BatchesOutcome, JudgedBatch, SampledBatch, arrivals, sample_batches
from lbopt.studies.progress import Progress, Silent
from lbopt.studies.study import Study


def judge(state: SampledBatch, config: BatchesConfig) -> JudgedBatch:
    """Solve the batch and let every rule place it.

    Raises
    ------
    LbOptError
        Where an optimum does not stand a recount, or a rule is better than a bound allows.
    """
    rules, placement, fill = allocation_gaps(
        state.batch, config.rules, config.time_limit, config.seed, turn=state.dispatch.turn, stages=1
    )
    judged = JudgedBatch(state, placement, fill, tuple(rules))
    _recount(judged)
    return judged


def _recount(judged: JudgedBatch) -> None:
    batch, where = judged.state.batch, f"the batch of {judged.state.dispatch.time} s under {judged.state.behaviour}"
    placement, fill = judged.placement, judged.fill
    if (placement.unit < 0).any() or int(_loads(batch, placement.unit).max()) != placement.straggler:
        raise LbOptError(f"{where}: the least straggler is not what its units have")
    if int(np.minimum(_loads(batch, fill.unit), batch.chunk).sum()) != fill.filled:
        raise LbOptError(f"{where}: the fullest pass is not what its units have")
    stragglers = [placement.straggler, *(one.straggler for one in judged.rules)]
    fills = [fill.filled, *(one.filled for one in judged.rules)]
    if min(stragglers) < placement.bound or max(fills) > fill.bounds[0]:
        raise LbOptError(
            f"{where}: a straggler of {min(stragglers)} and a fill of {max(fills)} tokens refute the bounds "
            f"{placement.bound} ({placement.proof}) and {fill.bounds[0]} ({fill.proof})"
        )


def _loads(batch: PrefillBatch, unit: NDArray[np.int64]) -> NDArray[np.int64]:
    loads = batch.load.copy()
    placed = np.flatnonzero(unit >= 0)
    np.add.at(loads, unit[placed], batch.cost[placed, unit[placed]])
    return loads


def run_batches(config: BatchesConfig, progress: Progress | None = None) -> BatchesOutcome:
    """Run the fleet under each behaviour, sample its dispatches, solve them, and let every rule place them."""
    progress = progress or Silent()
    trace = config.requests.draw_for(config.seed)
    requests = arrivals(config, trace)
    described = {
        "name": trace.name,
        "requests": len(trace),
        "left_out": dict(trace.left_out),
        "digest": trace.digest,
        "prompt_mean_tokens": float(trace.prompt.mean()),
        "rate_per_second": config.rate(float(trace.prompt.mean())),
    }
    outcome = BatchesOutcome(config, described)
    with outcome.clocked():
        progress.begin("sampling batches", len(config.behaviours))
        states: list[SampledBatch] = []
        for behaviour in config.behaviours:
            found, notes = sample_batches(config, requests, behaviour)
            states += found
            outcome.notes += notes
            progress.advance()
        warm("exact", window=False)  # compiled within the time limit of the first batch, it would leave that one open
        progress.begin("solving and placing", len(states))
        for state in states:
            outcome.judged.append(judge(state, config))
            progress.advance()
    return outcome


HELP = """Sample batches of prompts, solve each to optimality, and measure how far every allocation stays behind.

Writes batches.csv, gap.csv, batches.jsonl, a picture and run.json.

Example: `lbopt study batches burstgpt-like --requests 2000 --states 20 --out demo-batches`
"""

STUDY = Study(
    name="batches",
    named="lbopt-batch-gap",
    config=BatchesConfig,
    help=HELP,
    folder="lbopt-batch-gap",
    run=run_batches,
    account=("trace", "interrupted", "notes", "seconds"),
)
