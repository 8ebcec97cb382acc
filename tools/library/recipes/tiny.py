"""Problems to solve by hand, each of which demonstrates one thing; the reasoning is in the explanation."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from lbopt.instances.library import Origin
from lbopt.model import StepProblem
from tools.library.archive import Draft

_SOURCE = "written by hand"


def _admission() -> StepProblem:
    return StepProblem.now(loads=[10, 4], slots=[0, 1], sizes=[2, 9, 6])


def _makespan() -> StepProblem:
    return StepProblem.now(loads=[10, 0], slots=[1, 1], sizes=[1, 1, 12])


def _must_admit() -> StepProblem:
    return StepProblem.now(loads=[10, 4], slots=[0, 1], sizes=[2, 9, 6], must_admit=[True, False, False])


def _lookahead_now() -> StepProblem:
    return StepProblem.now(loads=[10, 9], slots=[1, 1], sizes=[8, 1])


def _lookahead_next() -> StepProblem:
    return StepProblem.survives([10, 9], [1, 1], [8, 1], 1, departures=[[0, 1, 10]], growth=0)


def _known_ends() -> StepProblem:
    return StepProblem.known_ends([8, 4], [0, 1], [4, 3], [1, 9], 2, growth=0)


def _largest_first() -> StepProblem:
    return StepProblem.now(loads=[0, 0], slots=[3, 3], sizes=[3, 3, 2, 2, 2])


def _slots_bind() -> StepProblem:
    return StepProblem.now(loads=[0, 0], slots=[2, 2], sizes=[6, 2, 2, 2])


def _parity() -> StepProblem:
    return StepProblem.now(loads=[7, 0, 0], slots=[0, 1, 1], sizes=[4, 6, 6, 8])


def _pacemaker() -> StepProblem:
    return StepProblem.now(loads=[20, 5, 8], slots=[0, 1, 1], sizes=[3, 12, 9, 15])


def _growth() -> StepProblem:
    return StepProblem.survives([12, 10], [0, 1], [2, 1], 2, active=[1, 3])


def _full_fleet() -> StepProblem:
    return StepProblem.now(loads=[5, 2, 2], slots=[0, 0, 0], sizes=[3, 1])


def _empty_pool() -> StepProblem:
    return StepProblem.now(loads=[4, 1], slots=[2, 2], sizes=[])


_ROWS: tuple[tuple[str, Callable[[], StepProblem], str], ...] = (
    (
        "admission",
        _admission,
        "Which request is admitted matters: the oldest (2) leaves 4 idle, the largest (9) leaves 3, the middle one (6) "
        "makes both loads 10 and leaves none.",
    ),
    (
        "makespan",
        _makespan,
        "Least maximum load and least imbalance differ: admitting 1 and 1 gives loads 11 and 1, the least maximum, and "
        "10 idle; admitting 12 beside a 1 gives 11 and 12, and 1 idle.",
    ),
    (
        "must-admit",
        _must_admit,
        "As tiny-admission, but the request of 2 must be admitted: the free slot is gone and 4 stay idle instead of 0.",
    ),
    (
        "lookahead-now",
        _lookahead_now,
        "Both requests are admitted; without a look ahead the 8 goes to the worker with 9: loads 11 and 17, 6 idle, "
        "against 18 and 10, 8 idle.",
    ),
    (
        "lookahead-next",
        _lookahead_next,
        "As tiny-lookahead-now, but all 10 tokens of the first worker leave after this step, and the window sees it: "
        "now the 8 goes there, for 8 + 2 = 10 idle over both steps against 6 + 16 = 22.",
    ),
    (
        "known-ends",
        _known_ends,
        "The request that fits best now ends too soon: 4 fills the gap of 4 once and leaves 0 + 4 + 4 = 8 idle, the 3 "
        "that stays leaves 1 + 1 + 1 = 3.",
    ),
    (
        "largest-first",
        _largest_first,
        "Largest first fails: it puts 3 and 3 on different workers and ends with 7 and 5, while 3 + 3 = 2 + 2 + 2.",
    ),
    (
        "slots-bind",
        _slots_bind,
        "Slots bind: 6 and 2 + 2 + 2 would be equal, but a worker has two slots; 6 + 2 and 2 + 2 leave 4 idle.",
    ),
    (
        "parity",
        _parity,
        "Parity: all requests are even and the heaviest load is 7, so each of the other two workers stays at least 1 "
        "short of it; 6 and 6 reach that, 2 idle.",
    ),
    (
        "pacemaker",
        _pacemaker,
        "A worker without free slots sets the pace: the others have 15 and 12 to fill, and both sizes wait.",
    ),
    (
        "growth",
        _growth,
        "Running requests grow: the second worker gains 3 a step and 1 more with the new request, the first gains 1. "
        "The 2 fits exactly now and overtakes by 3 and 6; the 1 leaves 1, 2 and 5, 8 instead of 9.",
    ),
    (
        "full-fleet",
        _full_fleet,
        "No slot is free: the empty decision is the only one, and the 3 + 3 idle tokens of the loads stay.",
    ),
    (
        "empty-pool",
        _empty_pool,
        "Nobody waits: the empty decision is the only one, and 3 stay idle.",
    ),
)


def _draft(name: str, make: Callable[[], StepProblem], explanation: str) -> Draft:
    return Draft(
        name=name,
        kind="tiny",
        explanation=explanation,
        origin=Origin(recipe="tiny", source=_SOURCE),
        problem=make(),
    )


RECIPES: dict[str, Callable[[], Draft]] = {
    f"tiny-{row[0]}": partial(_draft, f"tiny-{row[0]}", row[1], row[2]) for row in _ROWS
}
