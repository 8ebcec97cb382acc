"""Results that a test makes itself, mostly to say what is not so."""

from dataclasses import replace

import numpy as np

from lbopt.solvers.engine import Bound, Decision, Known
from lbopt.solvers.result import Result


def stated(problem, assignment, *, bound, proof, stop_reason, seconds=0.0, paused=None, stages=(), **known) -> Result:
    """The result of a decision with these bounds, proofs and stop reason, whatever follows from them."""
    pauses = None if paused is None else np.array(paused, dtype=np.bool_)
    best = Decision(problem, np.array(assignment, dtype=np.int64), pauses)
    bounds = (*(Bound(stage.bound, stage.proof) for stage in stages), Bound(bound, proof))
    result = Result.of(Known(problem=problem, best=best, bounds=bounds, **known), seconds)
    return replace(result, stop_reason=stop_reason)
