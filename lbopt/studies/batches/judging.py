"""The two optima of a batch (`lbopt.prefill.exact`), counted again from the units, and what every rule makes of it."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lbopt.exceptions import LbOptError
from lbopt.prefill.exact import PrefillBatch, allocation_gaps
from lbopt.studies.batches.config import BatchesConfig
from lbopt.studies.batches.outcome import JudgedBatch
from lbopt.studies.batches.sampling import SampledBatch


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
