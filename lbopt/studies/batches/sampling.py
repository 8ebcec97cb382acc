"""Where the batches come from: dispatches of a run under each behaviour, drawn at random."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from lbopt.exceptions import InputError
from lbopt.model import Trace
from lbopt.prefill import PrefillRequests
from lbopt.prefill.exact import PrefillBatch
from lbopt.prefill.exact.gap import Dispatch, dispatches
from lbopt.studies.batches.config import BatchesConfig

#: Sets the draw of dispatches apart from those of arrivals and phases.
_DRAW = 5


@dataclass(frozen=True, slots=True, eq=False)
class SampledBatch:
    """A batch, and the behaviour that had brought the fleet there."""

    behaviour: str
    dispatch: Dispatch

    @property
    def batch(self) -> PrefillBatch:
        """What is to be placed, and where."""
        return self.dispatch.batch

    def to_dict(self) -> dict[str, Any]:
        """Return plain data; ``batch`` is what `PrefillBatch` takes, ``chosen`` what the behaviour did."""
        one, batch = self.dispatch, self.batch
        return {
            "behaviour": self.behaviour,
            "time": one.time,
            "instance": one.instance,
            "turn": one.turn,
            "requests": one.requests.tolist(),
            "chosen": one.unit.tolist(),
            "batch": {
                "load": batch.load.tolist(),
                "length": batch.length.tolist(),
                "chunk": batch.chunk,
                "pending": batch.pending.tolist(),
            },
        }


def arrivals(config: BatchesConfig, trace: Trace) -> PrefillRequests:
    """Return the prompts of `trace` in its order, at random times of the configuration's rate."""
    return PrefillRequests.poisson(config.rate(float(trace.prompt.mean())), trace.prompt, config.seed)


def sample_batches(
    config: BatchesConfig, requests: PrefillRequests, behaviour: str
) -> tuple[list[SampledBatch], list[str]]:
    """Return batches of dispatches after the first tenth of the arrivals and up to the last, and remarks on them."""
    begin, end = requests.arrival[len(requests) // 10], requests.arrival[-1]
    run = dispatches(requests, config.setting(behaviour), seed=config.seed)
    found = [one for one in run if begin <= one.time <= end]
    if not found:
        raise InputError(
            f"the run under {behaviour} has no dispatch between the first tenth of the {len(requests)} requests and "
            "the last; use more requests"
        )
    notes = []
    if len(found) < config.states:
        notes.append(
            f"behaviour {behaviour}: {len(found)} batches instead of {config.states}; its run has no more dispatches "
            "after the first tenth of the requests"
        )
    early, late = (float(np.mean([one.requests.size for one in part])) for part in _halves(found))
    if late > 1.5 * early and late > early + config.units:
        notes.append(
            f"behaviour {behaviour} falls behind at this load: {early:.0f} requests wait at a dispatch of the first "
            f"half, {late:.0f} of the second; its batches are those of an overloaded fleet"
        )
    draw = np.random.default_rng([config.seed, _DRAW])
    chosen = np.sort(draw.choice(len(found), min(config.states, len(found)), replace=False))
    return [SampledBatch(behaviour, found[i]) for i in chosen], notes


def _halves(found: list[Dispatch]) -> tuple[list[Dispatch], list[Dispatch]]:
    middle = (len(found) + 1) // 2
    return found[:middle], found[middle:] or found
