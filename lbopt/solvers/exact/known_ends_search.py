"""Run the exact search over windows in which requests end, or slots stay empty: in slices, so that the clock is heard.

First the placements of `greedy_assignment`, and exchanges; in large windows prices by ascent, and assignments shaken
and improved; then the tree of linear programs, where these are not too large.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from itertools import count

import numpy as np

from lbopt.kernels.arrays import record
from lbopt.kernels.deadline import NEVER
from lbopt.kernels.known_ends.bounds import fix_by_reduced_costs
from lbopt.kernels.known_ends.placing import add_loads
from lbopt.kernels.known_ends.polish import polish, shake
from lbopt.kernels.known_ends.state import BRANCH, INFINITY, OPEN, PROGRESS, STUCK, Box, Nodes, Prices, Search
from lbopt.kernels.known_ends.tree import advance
from lbopt.model import StepProblem
from lbopt.model.integers import IntArray
from lbopt.solvers.budget import Limits
from lbopt.solvers.elementary import elementary_bound
from lbopt.solvers.exact.known_ends import Ascent, KnownEnds
from lbopt.solvers.exact.search import ExactAnswer

_NODES = 1 << 19

#: Share of the columns that has to go for a fresh start to pay.
_WORTH_A_RESTART = 0.1

_RESTARTS = 4

#: Share of the columns that are left, below which the program is written anew without the others.
_WORTH_ANEW = 0.8


class Tree:
    """A search for something cheaper than `cost`, slice by slice.

    Parameters
    ----------
    decision
        The window.
    cost, pattern
        Cost of an assignment that is known, tokens, and its patterns, int64 (W, Q).
    bound
        A lower bound that is known, tokens.
    prices
        Prices that may rule classes out on workers before anything else.
    """

    def __init__(
        self, decision: KnownEnds, cost: int, pattern: IntArray, *, bound: int = 0, prices: list[Prices] | None = None
    ) -> None:
        self.decision = decision
        self.progress = record(PROGRESS)
        self.progress.cost, self.progress.bound = cost, bound
        self.box, self.prices, self.draft = decision.box(), decision.prices(), decision.draft()
        self.answer = pattern.copy()
        self.nodes = Nodes(*(np.empty(_NODES, dtype=np.int64) for _ in range(7)))  # written before they are read
        self.branch = record(BRANCH)
        self._root = Box(self.box.allowed, self.box.least.copy(), self.box.most.copy())  # shares what is allowed
        self._fixed_at = cost
        self.fixed_by: list[Prices] = []
        for given in prices or []:
            self.fix(given)
        self.program = decision.program(self.box)
        self._restarts = 0

    @property
    def affordable(self) -> bool:
        """Whether the linear program is small enough to be solved at all."""
        return self.program is not None

    @property
    def full(self) -> bool:
        """Whether there is no room for another two nodes."""
        return bool(self.progress.nodes + 2 > self.nodes.parent.size)

    def fix(self, prices: Prices) -> int:
        """Rule out what these prices say is too dear; return the number of columns that went."""
        fixed = int(fix_by_reduced_costs(self.decision.window, prices, self._root, int(self.progress.cost)))
        if fixed:
            kept = self.decision.prices()
            kept.pi[:], kept.mu[:] = prices.pi, prices.mu
            self.fixed_by.append(kept)
        return fixed

    def advance(self, work: int, deadline: int = NEVER) -> int:
        """Go on for about `work` units, or to the deadline; return STUCK, OPEN or DONE."""
        if self.program is None:
            return STUCK
        self.progress.deadline, self.progress.expired = deadline, 0
        search = Search(
            progress=self.progress,
            program=self.program,
            prices=self.prices,
            box=self.box,
            draft=self.draft,
            nodes=self.nodes,
            answer=self.answer,
            branch=self.branch,
        )
        state = advance(self.decision.window, search, work)
        if state == OPEN and self.progress.visited == 1:
            self._after_the_root()
        elif state == OPEN and self.progress.cost < self._fixed_at and self.progress.inside == 0:
            self._fixed_at = int(self.progress.cost)
            for prices in self.fixed_by:
                fix_by_reduced_costs(self.decision.window, prices, self._root, self._fixed_at)
            if self.box.allowed.sum() < _WORTH_ANEW * self.program.klass.size:
                self.program = self.decision.program(self.box)
                self.progress.stale = 1
        return int(state)

    def _after_the_root(self) -> None:
        assert self.program is not None, "its root was visited"
        columns = self.program.klass.size
        self.progress.visited = 2  # the tree is grown from here on
        self._fixed_at = int(self.progress.cost)
        if self.fix(self.prices) >= _WORTH_A_RESTART * columns and self._restarts < _RESTARTS:
            self._restarts += 1
            before, self.progress = self.progress, record(PROGRESS)
            self.progress.cost, self.progress.bound = before.cost, before.bound
            self.progress.work, self.progress.ordered = before.work, before.ordered
            self.program = self.decision.program(self.box)


#: Work between two looks at the clock, about microseconds.
_SLICE = 3_000

_POLISH_ROUNDS, _SHAKEN_ROUNDS, _SHAKES = 40, 6, 40

#: Work of a tree, about microseconds, after which the best assignment is shaken.
_SHORT_TREE = 10_000

#: Columns up to which the linear program is quicker than prices by ascent.
_FEW_COLUMNS = 2_000

#: Steps of an ascent, and products of prices and work between two looks at the clock.
_STEPS, _LOOK = 600, 3_000_000

#: Products of prices and work up to which a bound is proved whatever the clock says: a millisecond or two.
_PROVED = 500_000

#: Seconds that one of them takes in proving a bound, and a request in handing an answer out.
_SECONDS_A_PRODUCT, _SECONDS_A_REQUEST = 1e-9, 5e-7

#: Loads that a placement compares, up to which all are made whatever the clock says.
_PLACED = 300_000

#: Entries of `work` up to which elementary reasoning, which is not compiled, takes a millisecond or two.
_QUICKLY_REASONED = 1_000

#: Seeds that differ.
_SEEDS = 2_000_000_000

#: Ascents where there is no limit of time.
_CYCLES = 20


def search_known_ends(problem: StepProblem, best: int | None, limits: Limits) -> ExactAnswer:
    """Look for an assignment of cost below `best` (None: any), and for the proof that there is none.

    The answer is "refused" where the numbers are too large, or no request can be admitted.

    Parameters
    ----------
    best
        Cost of an assignment that is known already, tokens; None for none.
    limits
        When to stop; what `effort` limits is the work of the tree of linear programs.
    """
    decision = KnownEnds(problem)
    if not decision.fits:
        return ExactAnswer(None, 0, "refused")
    _load_kernels()
    run = _Run(decision, INFINITY if best is None else best, limits)
    try:
        stop = run.place() or run.grow()
    except KeyboardInterrupt:
        if run.pattern is None and best is None:
            raise
        stop = "interrupted"
    answer = ExactAnswer(
        assignment=None if run.pattern is None else decision.handed_out(run.pattern),
        bound=min(run.bound, run.cost),
        stop="done" if run.bound >= run.cost else stop,
        cost=run.cost,
        prices=run.ascent.kept(),
    )
    if answer.stop == "done" or problem.work.size > _QUICKLY_REASONED:
        return answer
    elementary = elementary_bound(problem)
    if elementary <= answer.bound:
        return answer
    return replace(answer, bound=elementary, proof="elementary-bound", stop="done" if elementary == run.cost else stop)


@cache
def _load_kernels() -> None:
    """Use every kernel once: loading them, or compiling them for the first time ever, is no decision's fault."""
    tiny = StepProblem.known_ends([100, 0, 40], [1, 2, 1], [10, 30, 50, 70, 90], [1, 3, 2, 9, 1], 2, active=[3, 1, 2])
    run = _Run(KnownEnds(tiny), INFINITY, Limits())
    run.place()
    run._ascend(1)
    run._shake(1)
    assert run.pattern is not None, "it was placed"
    Tree(run.decision, run.cost, run.pattern, prices=[run.ascent.prices]).advance(1)


class _Run:
    """What is known so far: the best cost, the patterns that have it (None: the one given), and a proved bound."""

    def __init__(self, decision: KnownEnds, cost: int, limits: Limits) -> None:
        self.decision, self.limits = decision, limits
        self._to_prove = limits  # what is left of the time when prices are as good as they get
        self.cost, self.bound = cost, 0
        self.pattern: IntArray | None = None
        self.ascent = Ascent(decision)
        self._draft = decision.draft()
        self._chance = np.array([1 + limits.seed % _SEEDS], dtype=np.int64)

    def place(self) -> str | None:
        """Find first assignments, and improve them; return which limit was reached, if any."""
        draft = self._draft
        window = self.decision.window
        self._to_prove = self.limits.leaving(_SECONDS_A_REQUEST * self.decision.problem.num_requests)
        self.limits = self._to_prove.leaving(_SECONDS_A_PRODUCT * window.slots.size * window.v.size)
        starts = []
        for cost in self.decision.placements(draft):
            starts.append((cost, draft.pattern.copy()))
            self._keep(*starts[-1])
            if not self._places_quickly and (reached := self._reached()) is not None:
                return reached
        starts.sort(key=lambda start: start[0])
        if self._proves_quickly or self._reached() is None:
            self.bound = max(0, self._proved())
        for cost, pattern in starts[:2]:
            draft.pattern[:] = pattern
            add_loads(window, draft)
            reached = self._polish(cost, _POLISH_ROUNDS)
            if reached is not None:
                return reached
        return None

    def grow(self) -> str:
        """Prove the cost, or improve it, until one of them is done or a limit is reached; return how it ended."""
        window = self.decision.window
        if window.slots.size * window.n.size > _FEW_COLUMNS:
            reached = self._ascend(_STEPS) or self._shake(_SHAKES)
            if self.bound >= self.cost:
                return "done"
            if reached is not None:
                return reached
        pattern = self._draft.pattern if self.pattern is None else self.pattern
        tree = Tree(self.decision, self.cost, pattern, bound=self.bound, prices=[self.ascent.prices])
        return self._by_tree(tree) if tree.affordable else self._by_ascent()

    def _by_tree(self, tree: Tree) -> str:
        short = True
        while True:
            if short and tree.progress.work > _SHORT_TREE:  # a better assignment will pay
                short = False
                self._shake(4 * _SHAKES)
                tree.progress.cost = self.cost
            state = tree.advance(_SLICE, self.limits.deadline())
            self._keep(int(tree.progress.cost), tree.answer)
            self.bound = max(self.bound, int(tree.progress.bound))
            if state != OPEN:
                return "done" if state != STUCK else "memory" if tree.full else "precision"
            reached = self._reached(int(tree.progress.work))
            if reached is not None:
                return reached

    def _by_ascent(self) -> str:
        """Where the linear program would be too large: prices and exchanges in turn."""
        endless = self.limits.remaining() is None
        for cycle in count():
            if endless and cycle == _CYCLES:
                break
            reached = self._ascend(_STEPS) or self._shake(_SHAKES)
            if reached is not None:
                return reached
            if self.bound >= self.cost:
                return "done"
        return "memory"  # that of the linear program

    def _ascend(self, steps: int) -> str | None:
        self.ascent.again()
        window = self.decision.window
        at_a_time = max(1, min(10, _LOOK // (window.slots.size * window.v.size)))
        reached = None
        for _ in range(0, steps, at_a_time):
            self.ascent.advance(self.cost, at_a_time, self.limits.deadline())
            reached = self._reached()
            if reached is not None or self.ascent.value >= self.cost:
                break
        if reached is None or reached == "time" or self._proves_quickly:
            self.bound = max(self.bound, self._proved())
        return reached

    def _proved(self) -> int:
        return self.ascent.proved(NEVER if self._proves_quickly else self._to_prove.deadline())

    def _shake(self, times: int) -> str | None:
        """Leave the best assignment a little, and improve what comes of it."""
        window, draft = self.decision.window, self._draft
        if self.pattern is None or window.slots.sum() < 2:
            return None
        for turn in range(times):
            shake(window, draft, self.pattern, 2 + turn % 4, self._chance)
            reached = self._polish(INFINITY, _SHAKEN_ROUNDS)
            if reached is not None or self.bound >= self.cost:
                return reached
        return None

    def _polish(self, cost: int, rounds: int) -> str | None:
        for _ in range(rounds):
            reached = self._reached()
            if reached is not None:
                return reached
            found = int(polish(self.decision.window, self._draft, 1, self.limits.deadline()))
            self._keep(found, self._draft.pattern)
            if found == cost:
                break
            cost = found
        return None

    def _reached(self, work: int = 0) -> str | None:
        cost = None if self.cost == INFINITY else self.cost
        return self.limits.reached(work, cost, min(self.bound, self.cost))

    @property
    def _places_quickly(self) -> bool:
        """Whether the placements of `greedy_assignment`, than which no answer is worse, take a millisecond or two."""
        window = self.decision.window
        return bool(window.slots.sum() * window.peak.size <= _PLACED)

    @property
    def _proves_quickly(self) -> bool:
        """Whether a bound in exact integers takes no more than a millisecond or two."""
        window = self.decision.window
        return bool(window.slots.size * window.v.size <= _PROVED)

    def _keep(self, cost: int, pattern: IntArray) -> None:
        if cost < self.cost:
            self.cost, self.pattern = cost, pattern.copy()
