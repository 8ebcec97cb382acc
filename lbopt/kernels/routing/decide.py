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
def decide(code: int, parameters: Record, room: Room, waiting: Waiting, turn: Record, choice: Ints) -> int:
    """Decide by the rule of number `code`, see `codes`; `turn`, where round-robin stands, is changed in place."""
    if code == FCFS:
        return fill_in_order(parameters, room, waiting, choice)
    if code == MAX_MIN:
        return max_min(parameters, room, waiting, choice)
    if code == BR_0:
        return br_0(parameters, room, waiting, choice)
    if code == IQR:
        return iqr(parameters, room, waiting, choice)
    if code == BR_0_BYPASS:
        return place_bypassing(parameters, room, waiting, choice)
    if code == TENSORRT_LLM:
        return share_out(parameters, room, waiting, choice)
    if code == AUTO:
        return fit_to_level(parameters, room, waiting, choice)
    return place_in_turn(code, parameters, room, waiting, turn, choice)
