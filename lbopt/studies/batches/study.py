"""`run_batches`: the recipe of a gap study of prefill batches. Ctrl-C ends it early and keeps what is done."""

from __future__ import annotations

import time

from lbopt.solvers.warm_up import warm
from lbopt.studies.batches.config import BatchesConfig
from lbopt.studies.batches.judging import judge
from lbopt.studies.batches.outcome import BatchesOutcome
from lbopt.studies.batches.sampling import SampledBatch, arrivals, sample_batches
from lbopt.studies.progress import Progress, Silent
from lbopt.studies.study import Study


def run_batches(config: BatchesConfig, progress: Progress | None = None) -> BatchesOutcome:
    """Run the fleet under each behaviour, sample its dispatches, solve them, and let every rule place them."""
    begin = time.perf_counter()
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
    try:
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
    except KeyboardInterrupt:
        outcome.interrupted = True
    outcome.seconds = time.perf_counter() - begin
    return outcome


STUDY = Study(
    name="batches",
    named="lbopt-batch-gap",
    config=BatchesConfig,
    run=run_batches,
    account=("trace", "interrupted", "notes", "seconds"),
)
