"""The least time of a run in which the starts are chosen too: any admission, any placement, every end known.

All requests are there from the beginning. A request may start in any step, on any worker with a free slot, and then
runs without a break. A step in which somebody runs costs C + t times its barrier, and the sum is to be least; or,
with the number of steps given, the sum of barriers alone.

Best-first search (A*: Hart, Nilsson and Raphael 1968) over states: what each worker holds, as sizes and steps left,
workers being alike, and what waits, requests of equal prompt and output being alike. A decision starts some of the
requests that wait, possibly none although slots are free: to wait for a heavier companion can pay. The rest of a run
has at least as many steps as its longest request and as its request-steps fill all slots; its barriers are at least
the G-th part of all tokens, those of any one request, and those that one worker is committed to. A first beam of states
gives a run to beat. The number of states grows fast: it is meant for up to some ten requests.
"""

from __future__ import annotations

import heapq
import math
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from lbopt.exceptions import InputError
from lbopt.model import Trace

IntArray = NDArray[np.int64]

#: States that the first beam holds.
_BEAM = 60

#: What a worker holds: size in the coming step and steps left of each request, ascending.
Content = tuple[tuple[int, int], ...]
#: Contents of all workers, ascending, and how many requests of each kind wait.
State = tuple[tuple[Content, ...], tuple[int, ...]]
#: Kinds of requests that each worker starts.
Action = tuple[tuple[int, ...], ...]


@dataclass(frozen=True, slots=True, eq=False)
class StartsResult:
    """The best run that was found, and what no run is below.

    Parameters
    ----------
    lower, upper
        Cost: steps times the cost of a step, plus barriers times the cost of a token; exact fractions.
    start, worker
        int, (N,): first step and worker of each request in the order of the trace.
    num_steps, barriers
        Steps of that run, and the sum of its barriers in tokens.
    states
        States that were expanded.
    seconds
        Time taken.
    """

    lower: Fraction
    upper: Fraction
    start: IntArray
    worker: IntArray
    num_steps: int
    barriers: int
    states: int
    seconds: float

    @property
    def is_proved(self) -> bool:
        """Return whether no run costs less."""
        return self.lower == self.upper


def optimum_with_starts(
    trace: Trace,
    num_workers: int,
    slots_per_worker: int,
    *,
    per_step: float | Fraction = 0,
    per_token: float | Fraction = 1,
    num_steps: int | None = None,
    time_limit: float = 60.0,
) -> StartsResult:
    """Return the run of least cost when starts and workers are both free.

    Parameters
    ----------
    trace
        Requests that are all there from the beginning; some ten at most end in time.
    num_workers, slots_per_worker
        G and B.
    per_step, per_token
        Cost C of a step in which a request runs, and t of each token of its barrier; 0 or more, taken exactly.
    num_steps
        Most steps that the run may take; None for any number.
    time_limit
        Seconds; where they do not suffice, the result is an interval.

    Raises
    ------
    InputError
        Where a number is out of range, or where so few steps hold no run.
    """
    if num_workers < 1 or slots_per_worker < 1:
        raise InputError(f"a fleet of {num_workers} x {slots_per_worker} slots runs nothing; expected 1 or more")
    if per_step < 0 or per_token < 0:
        raise InputError(f"per_step is {per_step} and per_token is {per_token}; expected 0 or more")
    return _Search(trace, num_workers, slots_per_worker, Fraction(per_step), Fraction(per_token), num_steps).run(
        time_limit
    )


class _Search:
    def __init__(
        self, trace: Trace, workers: int, slots: int, per_step: Fraction, per_token: Fraction, most: int | None
    ) -> None:
        self.trace, self.workers, self.slots, self.most = trace, workers, slots, most
        self.scale = math.lcm(per_step.denominator, per_token.denominator)
        self.per_step, self.per_token = int(per_step * self.scale), int(per_token * self.scale)
        rows = list(zip(trace.prompt.tolist(), trace.output.tolist(), strict=True))
        self.kinds: list[tuple[int, int]] = sorted(set(rows))
        self.waiting = tuple(rows.count(kind) for kind in self.kinds)
        self.expanded = 0

    def run(self, time_limit: float) -> StartsResult:
        """Search until the best run is proved or the time is up."""
        began = time.perf_counter()
        first: State = (((),) * self.workers, self.waiting)
        self.parent: dict[tuple[State, int], tuple[tuple[State, int], Action] | None] = {(first, 0): None}
        best = self._beam(first)
        upper, actions = best if best is not None else (None, [])
        cost = {(first, 0): 0}
        queue: list[tuple[int, int, int, State, int]] = [(self._rest(first)[0], 0, 0, first, 0)]
        lower = queue[0][0]
        while queue:
            bound, _, spent, state, used = heapq.heappop(queue)
            node = (state, used)
            if spent > cost[node]:
                continue
            lower = bound
            if upper is not None and bound >= upper:
                lower = upper
                break
            if not any(state[0]) and not any(state[1]):
                upper = lower = spent
                actions = self._path(node)
                break
            self.expanded += 1
            if self.expanded % 64 == 0 and time.perf_counter() - began > time_limit:
                break
            for action, following, price in self._successors(state):
                total, deeper = spent + price, used + 1
                rest, steps = self._rest(following)
                if (self.most is not None and deeper + steps > self.most) or (
                    upper is not None and total + rest >= upper
                ):
                    continue
                key = (following, deeper if self.most is not None else 0)
                if total < cost.get(key, total + 1):
                    cost[key] = total
                    self.parent[key] = (node, action)
                    heapq.heappush(queue, (total + rest, -deeper, total, *key))
        else:
            if upper is None:
                raise InputError(f"no run of these requests takes {self.most} steps or fewer; allow more of them")
            lower = upper
        if upper is None:
            raise InputError(f"no run was found within {time_limit} s; allow more time, more steps or fewer requests")
        start, worker, steps, barriers = self._replay(actions)
        return StartsResult(
            Fraction(lower, self.scale),
            Fraction(upper, self.scale),
            start,
            worker,
            steps,
            barriers,
            self.expanded,
            time.perf_counter() - began,
        )

    def _rest(self, state: State) -> tuple[int, int]:
        """Return what the rest of a run costs at least, and how many steps it takes at least."""
        contents, waiting = state
        most_tokens, all_tokens, longest, busy = 0, 0, 0, 0
        for content in contents:
            committed = 0
            for size, left in content:
                committed += size * left + left * (left - 1) // 2
                longest = max(longest, left)
                busy += left
            all_tokens += committed
            most_tokens = max(most_tokens, committed)
        for (size, output), count in zip(self.kinds, waiting, strict=True):
            if count:
                tokens = size * output + output * (output - 1) // 2
                most_tokens = max(most_tokens, tokens)
                all_tokens += tokens * count
                longest = max(longest, output)
                busy += output * count
        steps = max(longest, -(-busy // (self.workers * self.slots)))
        return self.per_step * steps + self.per_token * max(most_tokens, -(-all_tokens // self.workers)), steps

    def _successors(self, state: State) -> Iterator[tuple[Action, State, int]]:
        """Yield every decision for a step, the state after the step, and what the step costs."""
        contents, waiting = state
        for action, left in self._actions(contents, 0, waiting):
            after: list[Content] = []
            peak = 0
            for content, started in zip(contents, action, strict=True):
                now = [*content, *(self.kinds[k] for k in started)]
                peak = max(peak, sum(size for size, _ in now))
                after.append(tuple(sorted((size + 1, steps - 1) for size, steps in now if steps > 1)))
            if any(contents) or any(action):
                yield action, (tuple(sorted(after)), left), self.per_step + self.per_token * peak

    def _actions(
        self, contents: Sequence[Content], g: int, waiting: tuple[int, ...], before: tuple[int, ...] | None = None
    ) -> Iterator[tuple[Action, tuple[int, ...]]]:
        """Yield what workers g and later start, and what waits then; workers of equal content take it in order."""
        if g == self.workers:
            yield (), waiting
            return
        alike = g + 1 < self.workers and contents[g + 1] == contents[g]
        for started, left in self._multisets(0, self.slots - len(contents[g]), waiting):
            if before is not None and started < before:
                continue
            for others, rest in self._actions(contents, g + 1, left, started if alike else None):
                yield (started, *others), rest

    def _multisets(
        self, kind: int, room: int, waiting: tuple[int, ...]
    ) -> Iterator[tuple[tuple[int, ...], tuple[int, ...]]]:
        """Yield up to `room` of the requests that wait, by kind, and what waits then."""
        yield (), waiting
        if room:
            for k in range(kind, len(waiting)):
                if waiting[k]:
                    left = (*waiting[:k], waiting[k] - 1, *waiting[k + 1 :])
                    for more, rest in self._multisets(k, room - 1, left):
                        yield (k, *more), rest

    def _beam(self, first: State) -> tuple[int, list[Action]] | None:
        """Return the cost and the decisions of a good run, None where the beam holds none."""
        layer: list[tuple[int, int, State, list[Action]]] = [(self._rest(first)[0], 0, first, [])]
        best: tuple[int, list[Action]] | None = None
        while layer:
            reached: dict[State, tuple[int, int, State, list[Action]]] = {}
            for _, spent, state, actions in layer:
                if not any(state[0]) and not any(state[1]):
                    if best is None or spent < best[0]:
                        best = (spent, actions)
                    continue
                for action, following, price in self._successors(state):
                    rest, steps = self._rest(following)
                    total = spent + price
                    if self.most is not None and len(actions) + 1 + steps > self.most:
                        continue
                    if best is not None and total + rest >= best[0]:
                        continue
                    if following not in reached or total < reached[following][1]:
                        reached[following] = (total + rest, total, following, [*actions, action])
            layer = heapq.nsmallest(_BEAM, reached.values(), key=lambda entry: entry[:2])
        return best

    def _path(self, node: tuple[State, int]) -> list[Action]:
        """Return the decisions that led to a state."""
        actions: list[Action] = []
        while (step := self.parent[node]) is not None:
            node, action = step
            actions.append(action)
        return actions[::-1]

    def _replay(self, actions: Sequence[Action]) -> tuple[IntArray, IntArray, int, int]:
        """Return starts, workers, steps and barriers of a run by its decisions, requests of a kind in trace order."""
        count = self.trace.prompt.size
        start, worker = np.zeros(count, dtype=np.int64), np.zeros(count, dtype=np.int64)
        rows = list(zip(self.trace.prompt.tolist(), self.trace.output.tolist(), strict=True))
        queues = [[i for i in range(count) if rows[i] == kind][::-1] for kind in self.kinds]
        held: list[tuple[Content, int]] = [((), g) for g in range(self.workers)]
        barriers = 0
        for k, action in enumerate(actions):
            after: list[tuple[Content, int]] = []
            peak = 0
            for (content, g), started in zip(held, action, strict=True):
                for kind in started:
                    i = queues[kind].pop()
                    start[i], worker[i] = k, g
                now = [*content, *(self.kinds[kind] for kind in started)]
                peak = max(peak, sum(size for size, _ in now))
                after.append((tuple(sorted((size + 1, steps - 1) for size, steps in now if steps > 1)), g))
            barriers += peak
            held = sorted(after, key=lambda pair: pair[0])
        return start, worker, len(actions), barriers
