"""All compiled rules in pooled form: `decide`, by the rule's number."""

from lbopt.kernels.arrays import Ints, Record
from lbopt.kernels.compile import kernel
from lbopt.kernels.routing.balance_route import br_0
from lbopt.kernels.routing.bypass import place_bypassing
from lbopt.kernels.routing.codes import AUTO, BR_0, BR_0_BYPASS, FCFS, IQR, MAX_MIN, TENSORRT_LLM
from lbopt.kernels.routing.fifo import fill_in_order, place_in_turn
from lbopt.kernels.routing.iqr import iqr
from lbopt.kernels.routing.level_fit import fit_to_level
from lbopt.kernels.routing.max_min import max_min
from lbopt.kernels.routing.shared_out import share_out
from lbopt.kernels.routing.state import Room, Waiting


@kernel
def decide(code: int, parameters: Record, room: Room, waiting: Waiting, step: int, turn: Record, choice: Ints) -> int:
    """Write the worker of each pool position (or -1) into `choice`; returns positions filled.

    Parameters
    ----------
    code, parameters
        The rule, see `codes`, and its parameters, `state.PARAMETERS`.
    room
        Changed in place, but for `own`.
    step
        int64: now.
    turn
        `state.TURN`, where round-robin stands; changed in place.
    choice
        int64 (>= n,): output.
    """
    load, free, running, own = room
    pool, prompt, reveal_step, _ = waiting
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
    return place_in_turn(code, parameters, room, waiting, turn, choice)
