"""One door to all compiled rules in pooled form: `decide`, by the rule's number."""

from lbopt.kernels.arrays import Floats, Ints, Record
from lbopt.kernels.compile import kernel
from lbopt.kernels.routing.balance_route import br_0
from lbopt.kernels.routing.bypass import place_bypassing
from lbopt.kernels.routing.codes import AUTO, BR_0, BR_0_BYPASS, FCFS, FIRST_BY_SCORE, IQR, MAX_MIN, TENSORRT_LLM
from lbopt.kernels.routing.fifo import fill_in_order, one_by_one
from lbopt.kernels.routing.iqr import iqr
from lbopt.kernels.routing.least_score import place_by_score
from lbopt.kernels.routing.level_fit import fit_to_level
from lbopt.kernels.routing.max_min import max_min
from lbopt.kernels.routing.shared_out import share_out


@kernel
def decide(
    code: int,
    parameters: Record,
    load: Ints,
    free: Ints,
    running: Ints,
    own: Ints,
    pool: Ints,
    prompt: Ints,
    reveal_step: Ints,
    step: int,
    uniforms: Floats,
    turn: Record,
    choice: Ints,
) -> int:
    """Write the worker of each pool position (or -1) into `choice`; returns positions filled.

    Parameters
    ----------
    code, parameters
        The rule, see `codes`, and its parameters, `state.PARAMETERS`.
    load, free, running
        int64 (G,): tokens, free slots and running requests; changed in place.
    own
        int64 (G,): what the router has in its books, see `books`; empty for rules without. Not changed.
    pool
        int64 (n,): request numbers in order of revelation.
    prompt, reveal_step
        int64, indexed by request number: tokens, and the step in which it joined the pool.
    step
        int64: now.
    uniforms
        float64 (., 2) in [0, 1), indexed by request number; may be empty for rules that draw nothing.
    turn
        `state.TURN`, where round-robin stands; changed in place.
    choice
        int64 (>= n,): output.
    """
    if code == FCFS:
        return fill_in_order(free, pool.size, choice)
    if code == MAX_MIN:
        return max_min(parameters.whole_pool, load, free, pool, prompt, choice)
    if code == BR_0:
        return br_0(parameters, load, free, pool, prompt, reveal_step, step, choice)
    if code == IQR:
        return iqr(parameters, load, free, running, pool, prompt, choice)
    if code == BR_0_BYPASS:
        return place_bypassing(parameters, load, free, pool, prompt, choice)
    if code == TENSORRT_LLM:
        return share_out(free, running, own, pool, prompt, choice)
    if code == AUTO:
        return fit_to_level(parameters, load, free, pool, prompt, reveal_step, step, choice)
    if code >= FIRST_BY_SCORE:
        return place_by_score(code, parameters, load, free, running, own.copy(), pool, prompt, uniforms, turn, choice)
    return one_by_one(code, load, free, running, pool, prompt, uniforms, turn, choice)
