"""Among optimal assignments at H = 0 the one whose loads, sorted from the largest down, are least.

1. The least envelope M that keeps the optimal cost (`leximax_envelope`): the cost G M - (loads before) - T fixes the
   admitted tokens T with it. From here on every assignment of T tokens under M is optimal.
2. Only workers with free slots vary, and the sum of their loads is fixed. Exchanges between two workers even an
   assignment out (`lbopt.kernels.leximax.even`). Where it reaches the most even loads that the least and the
   largest possible load of each worker allow, it is leximax.
3. Else every pattern that an assignment with lesser loads could use is listed, and a depth-first search over the lists
   settles the question (`leximax_choice`) where a millisecond or two suffice.
4. Where they do not, the exact search is asked for each load whether it can be less (`leximax_stages`).

What is claimed is proved; what is not proved in time is an optimal assignment as even as was found.
"""

from __future__ import annotations

from functools import cache

from lbopt.model import StepProblem
from lbopt.model.integers import IntArray
from lbopt.solvers.budget import Limits
from lbopt.solvers.exact.decision import Decision
from lbopt.solvers.exact.leximax_room import MOST_SLOTS, Room, least_envelope
from lbopt.solvers.exact.leximax_stages import choose, press_down
from lbopt.solvers.exact.search import ExactAnswer, search_exactly
from lbopt.solvers.exact.tie_orders import canonical
from lbopt.solvers.exact.workspace import fits_memory

#: Steps of exchanges between workers.
_EXCHANGES = 300_000_000


def most_even(problem: StepProblem, answer: ExactAnswer, optimum: IntArray, limits: Limits) -> tuple[IntArray, str]:
    """Return the leximax assignment among those of the cost of `optimum`, and how it ended: "done" if that is proved.

    Parameters
    ----------
    problem
        A step problem at H = 0.
    answer
        How the search for the optimum ended; its prices are used again.
    optimum
        An assignment of proved cost, int64 (N,).

    Returns
    -------
    assignment, ending
        Of the same cost, its sorted loads no greater than before. "done", "time", "cancelled", "interrupted", or
        "stuck": numbers too large for the search, or a question that stayed open.
    """
    if not fits_memory(problem):
        return optimum, "stuck"
    decision = Decision(problem)
    if decision.scale == 0:
        return optimum, "stuck"
    room: Room | None = None
    try:
        optimum, ending = least_envelope(problem, decision, answer, optimum, limits)
        room = Room(decision, answer, optimum, limits)
        settled = _settle(room, limits)
        ending = settled if ending == "done" else ending
    except KeyboardInterrupt:
        ending = "interrupted"
    if room is not None:
        optimum = room.handed_out()
    return canonical(problem, optimum), ending


def _settle(room: Room, limits: Limits) -> str:
    """Find the most even loads in `room`; "done" where they are proved to be."""
    room.even_out(_EXCHANGES)
    if room.is_even():
        return "done"
    if room.slots.max() > MOST_SLOTS:
        return "stuck"
    return "done" if choose(room, limits) else press_down(room, limits)


@cache
def load_kernels() -> None:
    """Load the kernels, or compile them where that was never done: no time limit should have to pay for it."""
    problem = StepProblem.now([9, 0, 3], [1, 2, 2], [1, 2, 4, 5, 7, 9])
    limits = Limits()
    answer = search_exactly(problem, None, limits)
    assert answer.assignment is not None, "there is one"
    decision = Decision(problem)
    least_envelope(problem, decision, answer, answer.assignment, limits)
    room = Room(decision, answer, answer.assignment, limits)
    room.even_out(0)
    room.is_even()
    choose(room, limits)
