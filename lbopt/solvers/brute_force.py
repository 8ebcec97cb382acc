"""Exhaustion: every distribution of the request classes over the workers, equal workers ordered, in exact integers.

Worker after worker takes a vector of class counts. Where two equal workers follow each other the second vector may not
be lexicographically larger than the first. A branch is left when it cannot beat the best known assignment any more: the
maxima are at least those reached so far and the elementary floors, and what is idle under them is at least what the
finished workers leave idle, plus what the others do with the heaviest requests that remain. So a finished run proves
that nothing better exists. Before it starts, the number of leaves is bounded from above and too long a search is
refused.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator, Sequence
from math import comb, factorial, prod

from lbopt.exceptions import InputError
from lbopt.model import StepProblem
from lbopt.model.formulation import Program, request_classes
from lbopt.model.reduced_loads import reduce_loads
from lbopt.solvers.backend import RawAnswer, Task
from lbopt.solvers.leximax import sorted_loads
from lbopt.solvers.program_engine import ProgramEngine

LEAF_LIMIT = 5_000_000

_NODES_A_LOOK = 128  # nodes between two looks at the clock: a few milliseconds


class _OutOfTime(Exception):
    pass


def leaf_estimate(problem: StepProblem) -> int:
    """Return an upper bound on the number of leaves of the exhaustive search; the program need not be written down."""
    loads = reduce_loads(problem)
    classes = request_classes(problem, loads)
    slots = problem.slots.tolist()
    open_workers = [g for g in range(problem.num_workers) if slots[g] > 0]
    size, admitted, workers = problem.num_requests, problem.num_admitted, len(open_workers)
    # (a) class by class: how a class spreads over the open workers and the waiting pool.
    by_class = 1
    for group in classes:
        places = workers if admitted == size or group.must_admit else workers + 1
        by_class *= comb(len(group.members) + places - 1, places - 1)
    # (b) worker by worker: multisets of at most slots_g classes; a row of t equal workers takes them in order.
    by_worker = 1
    for (_, free), twins in Counter((loads.base[g], slots[g]) for g in open_workers).items():
        reach = min(free, admitted)
        options = comb(len(classes) + reach, reach)
        by_worker *= comb(options + twins - 1, twins)
    # (c) request by request: choose the admitted, then share them out.
    if admitted == problem.num_free_slots:
        by_request = comb(size, admitted) * factorial(admitted) // prod(map(factorial, slots))
    else:
        by_request = workers**size
    return min(by_class, by_worker, by_request)


class Exhaustion(ProgramEngine):
    """The engine; it refuses searches that would take too long."""

    def refusal(self) -> str | None:
        """Return why the problem cannot be exhausted, a key of `REFUSALS`; None where it can."""
        why_not = super().refusal()
        if why_not is None and leaf_estimate(self.question.problem) > LEAF_LIMIT:
            return "leaves"
        return why_not


def minimise(task: Task) -> RawAnswer:
    """Search all of `task.program`; rows added by `extended` are not known here, ties are broken directly."""
    estimate = leaf_estimate(task.program.problem)
    if estimate > LEAF_LIMIT:
        raise InputError(
            f"exhaustion would visit up to {float(estimate):.2g} assignments; brute-force accepts {LEAF_LIMIT:.1g}: "
            "choose another solver"
        )
    search = _Search(task)
    try:
        search.run()
        stop = "done"
    except _OutOfTime:
        stop = "time"
    except KeyboardInterrupt:
        stop = "interrupted"
    done = stop == "done"
    return RawAnswer(
        values=search.best_values,
        bound=search.best_cost if done else None,
        stop=stop,
        native_status="exhausted" if done else stop,
        tie=task.tie if done else "any",
    )


class _Search:
    def __init__(self, task: Task) -> None:
        program = task.program
        assert isinstance(program, Program), "problems under conditions have an exhaustion of their own"
        self.program, self.leximax = program, task.tie == "leximax"
        self.deadline = None if task.time_limit is None else task.begun + task.time_limit
        self.work = [group.work for group in program.classes]
        self.left = [len(group.members) for group in program.classes]
        self.must = [group.must_admit for group in program.classes]
        base, slots = program.loads.base, program.problem.slots.tolist()
        # Equal workers side by side, so that the order between them can be asked of neighbours.
        self.workers = sorted(program.open_workers, key=lambda g: (base[g], slots[g], g))
        self.slots = [slots[g] for g in self.workers]
        self.base = [base[g] for g in self.workers]
        self.twin = [
            p > 0 and (self.base[p], self.slots[p]) == (self.base[p - 1], self.slots[p - 1])
            for p in range(len(self.workers))
        ]
        closed = [row for g, row in enumerate(base) if slots[g] == 0]
        self.closed = closed
        self.slots_after = [sum(self.slots[p + 1 :]) for p in range(len(self.slots))]
        first = program.num_core - len(base[0])
        self.first_peak = program.lower[first : program.num_core]  # no base load is above these floors
        self.base_from = [sum(map(sum, self.base[p:])) for p in range(len(self.base) + 1)]
        self.sizes = [sum(row) for row in self.work]  # classes come heaviest first
        self.chosen: list[list[int]] = []
        self.nodes = 0
        self.best_values: list[int] | None = list(task.hint) if task.hint is not None else None
        self.best_cost = None if task.hint is None else self._cost(task.hint)
        self.best_shape: list[int] | None = None  # sorted loads in tokens, for leximax

    def _cost(self, values: Sequence[int]) -> int:
        return sum(c * v for c, v in zip(self.program.cost, values, strict=True))

    def run(self) -> None:
        done = tuple(sum(row[h] for row in self.closed) for h in range(len(self.first_peak)))
        self._worker(0, self.program.problem.num_admitted, self.first_peak, done, len(self.closed))

    def _worker(self, p: int, missing: int, peak: tuple[int, ...], done: tuple[int, ...], finished: int) -> None:
        """Decide worker p; `missing` requests are still to be placed, `done` is the load of `finished` workers."""
        self.nodes += 1
        if self.nodes % _NODES_A_LOOK == 0 and self.deadline is not None and time.perf_counter() > self.deadline:
            raise _OutOfTime
        level, held = sum(peak), sum(done)
        idle = finished * level - held
        if self.best_cost is not None:
            unfinished = (len(self.workers) - p) * level - self.base_from[p] - self._heaviest(missing)
            least_idle, best = idle + max(0, unfinished), self.best_cost + self.program.offset
            if least_idle > best or (least_idle == best and not self.leximax):
                return
        if p == len(self.workers):
            self._leaf(idle)
            return
        least = max(0, missing - self.slots_after[p])
        most = min(self.slots[p], missing)
        before = self.chosen[-1] if self.twin[p] else None
        for counts, load in self._vectors(0, least, most, self.base[p], before):
            owed = sum(n for n, must in zip(self.left, self.must, strict=True) if must)
            rest = missing - sum(counts)
            if owed <= rest:
                self.chosen.append(counts)
                higher = tuple(map(max, peak, load))
                self._worker(p + 1, rest, higher, tuple(map(sum, zip(done, load, strict=True))), finished + 1)
                self.chosen.pop()

    def _heaviest(self, count: int) -> int:
        """Return the work of the `count` heaviest requests that are left, summed over the window."""
        total = 0
        for size, left in zip(self.sizes, self.left, strict=True):
            taken = min(left, count)
            total += taken * size
            count -= taken
        return total

    def _vectors(
        self, k: int, least: int, most: int, load: tuple[int, ...], before: list[int] | None
    ) -> Iterator[tuple[list[int], tuple[int, ...]]]:
        """Yield count vectors over classes k.. and the load they lead to; `self.left` is reduced while one is out."""
        if k == len(self.work):
            if least <= 0:
                yield [], load
            return
        largest = min(self.left[k], most, before[k] if before is not None else most)
        available = self.left[k]
        for count in range(largest, -1, -1):
            tied = before if before is not None and count == before[k] else None
            heavier = tuple(a + count * w for a, w in zip(load, self.work[k], strict=True)) if count else load
            self.left[k] = available - count
            for tail, final in self._vectors(k + 1, least - count, most - count, heavier, tied):
                yield [count, *tail], final
        self.left[k] = available

    def _leaf(self, idle: int) -> None:
        cost = idle - self.program.offset
        values = None
        if self.leximax:
            values = self._values()
            shape = sorted_loads(self.program, values)
            if cost == self.best_cost and self.best_values is not None:
                self.best_shape = self.best_shape or sorted_loads(self.program, self.best_values)
                if shape >= self.best_shape:
                    return
            self.best_shape = shape
        self.best_cost, self.best_values = cost, values or self._values()

    def _values(self) -> list[int]:
        counts = dict(zip(self.workers, self.chosen, strict=True))
        assignment = [-1] * self.program.problem.num_requests
        for k, group in enumerate(self.program.classes):
            waiting = iter(group.members)
            for g in self.program.open_workers:
                for _ in range(counts[g][k]):
                    assignment[next(waiting)] = g
        return self.program.encode(assignment)
