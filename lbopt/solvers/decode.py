"""Exact counterparts of the decode rule of SBS (arXiv 2512.16134, Algorithm 3, `policies.iqr`): programs D1 to D3.

Unit i has B_i requests and K_i tokens and takes at most room_i of the m requests, all of which are placed.

* D1, `count_then_load`: the largest count as small as possible, then the largest load. The first is known before; the
  second is the step problem at horizon 0 with min(room_i, B* - B_i) free slots.
* D2, `level_then_load`: counts as level as possible (leximax), then the largest load. All counts are known before but
  for which units end one higher. Where none does this is the step problem again; else CP-SAT decides it with the loads.
* D3, `barrier_time`: the largest alpha * count + beta * load, which every step waits for: the step problem at horizon 0
  with loads alpha * B_i + beta * K_i, where a request adds alpha + beta * length.

In all of them m requests are admitted and the total is the same for every placement, so that least imbalance is least
maximum.

Counts fill up like water under lids. At level w unit i stands at clip(w, B_i, B_i + room_i); w is the last level that
the m requests reach, and the e that are left stand one above it. No counts are more level: a placement in which a unit
that got a request is two or more above one with room is made more level by moving the request, and where there are no
such two units the counts are these.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lbopt.exceptions import InputError
from lbopt.model import StepProblem
from lbopt.model.integers import IntArray, integer_array
from lbopt.solvers.front import solve
from lbopt.solvers.placing_program import PlacingProgram

#: Requests, tokens and free slots in all, below which sums stay far from 2**63.
MOST = 2**50


@dataclass(frozen=True, slots=True, eq=False)
class DecodeBatch:
    """A batch, all of which is to be placed.

    Parameters
    ----------
    count, load
        int (N,), requests and tokens of each unit.
    length
        int (m,), tokens of the requests.
    room
        int (N,), how many of them each unit can take, at least m in all; None where each can take all.
    """

    count: IntArray
    load: IntArray
    length: IntArray
    room: IntArray = None  # type: ignore[assignment]  # None on the way in, an array from then on

    def __post_init__(self) -> None:
        for name in ("count", "load", "length"):
            object.__setattr__(self, name, integer_array(name, getattr(self, name), ndim=(1,)))
        N, m = self.count.size, self.length.size
        given: Any = self.room
        object.__setattr__(self, "room", integer_array("room", np.full(N, m) if given is None else given, ndim=(1,)))
        if N == 0 or {self.load.size, self.room.size} != {N}:
            raise InputError(
                f"count has {N} entries, load {self.load.size} and room {self.room.size}; expected one each for at "
                "least 1 unit"
            )
        for name in ("count", "load", "length", "room"):
            total = float(getattr(self, name).sum(dtype=np.float64))
            if total >= MOST:
                raise InputError(f"{name} has {total:.3g} in all; expected below 2**50")
        if int(self.room.sum()) < m:
            raise InputError(f"room is for {int(self.room.sum())} requests in all; expected at least the {m} of length")

    def counts_after(self, unit: Any) -> list[int]:
        """Return the requests on each unit once request r is on ``unit[r]``."""
        counts = self.count.tolist()
        return [count + list(unit).count(i) for i, count in enumerate(counts)]

    def loads_after(self, unit: Any) -> list[int]:
        """Return the tokens on each unit once request r is on ``unit[r]``."""
        loads: list[int] = self.load.tolist()
        for tokens, i in zip(self.length.tolist(), list(unit), strict=True):
            loads[i] += tokens
        return loads

    def barrier_after(self, unit: Any, alpha: int, beta: int) -> int:
        """Return the largest alpha * count + beta * load of a unit.

        Parameters
        ----------
        unit
            int64 (n,), the unit of each request.
        alpha
            Time per request, in whole units such as nanoseconds, >= 0.
        beta
            Time per token, in the same units, >= 0.
        """
        pairs = zip(self.counts_after(unit), self.loads_after(unit), strict=True)
        return max(alpha * count + beta * load for count, load in pairs)


@dataclass(frozen=True, slots=True, eq=False)
class DecodePlacement:
    """A placement: `unit` int64 (m,), the `value` that was minimised last, its lower `bound` and where that is from."""

    unit: NDArray[np.int64]
    value: int
    bound: int
    proof: str

    @property
    def optimal(self) -> bool:
        """Whether nothing better is possible."""
        return self.value == self.bound

    @property
    def standing(self) -> str:
        """How sure the optimum is, as in `policies.ledger.STANDINGS`."""
        if not self.optimal:
            return "open"
        return "claimed" if self.proof.startswith("claimed:") else "searched" if self.proof == "search" else "proved"


def least_largest_count(batch: DecodeBatch) -> int:
    """Return B*, the least possible largest count: the first at which all have room, and no unit is above it."""
    m, most = int(batch.length.size), int(batch.count.max())

    def taken(largest: int) -> int:
        return int(np.minimum(batch.room, np.maximum(largest - batch.count, 0)).sum())

    return most + bisect_left(range(m + 1), m, key=lambda rise: taken(most + rise))


def water_level(batch: DecodeBatch) -> tuple[int, int]:
    """Return (w, e): unit i ends at clip(w, count, count + room), and e of those at w with room left one higher."""
    top = batch.count + batch.room
    total = int(batch.count.sum()) + int(batch.length.size)
    lowest, highest = int(batch.count.min()), int(top.max())

    def requests(level: int) -> int:
        return int(np.clip(level, batch.count, top).sum())

    w = lowest + bisect_right(range(lowest, highest + 1), total, key=requests) - 1
    return w, total - requests(w)


def fewest_requests_first(batch: DecodeBatch) -> NDArray[np.int64]:
    """Follow Algorithm 3 without its mask: longest first, to the least (count, load) with room, lowest number on ties.

    The counts it ends with are as level as possible, since each step raises a lowest one.
    """
    unit = np.zeros(batch.length.size, dtype=np.int64)
    counts, loads, room = batch.count.tolist(), batch.load.tolist(), batch.room.tolist()
    for r in np.argsort(-batch.length, kind="stable").tolist():
        i = min((i for i, left in enumerate(room) if left), key=lambda i: (counts[i], loads[i], i))
        unit[r] = i
        counts[i] += 1
        room[i] -= 1
        loads[i] += int(batch.length[r])
    return unit


#: Weights stay below this, so that barriers stay far from 2**63.
MOST_WEIGHT = 2**31


def count_then_load(batch: DecodeBatch, time_limit: float | None = None, seed: int = 0) -> DecodePlacement:
    """Return a placement of the least largest load among those with the least largest count (D1).

    Parameters
    ----------
    batch
        The requests to place, and the load of each unit.
    time_limit
        Seconds; None for no limit.
    """
    slots = np.minimum(batch.room, np.maximum(least_largest_count(batch) - batch.count, 0))
    return _as_step_problem(batch.load, slots, batch.length, time_limit, seed)


def barrier_time(
    batch: DecodeBatch, alpha: int, beta: int, time_limit: float | None = None, seed: int = 0
) -> DecodePlacement:
    """Return a placement with the least barrier (D3).

    `alpha` and `beta` are the times per request and per token in whole units of the caller's choice, such as
    nanoseconds, >= 0.

    Parameters
    ----------
    batch
        The requests to place, and the load of each unit.
    alpha
        Time per request, in whole units such as nanoseconds, >= 0.
    beta
        Time per token, in the same units, >= 0.
    time_limit
        Seconds; None for no limit.
    """
    for name, value in (("alpha", alpha), ("beta", beta)):
        if value is None or not 0 <= value < MOST_WEIGHT:
            raise InputError(
                f"{name} is {'none' if value is None else value}; expected a whole number of 0 or more, below 2**31"
            )
    base = [alpha * b + beta * k for b, k in zip(batch.count.tolist(), batch.load.tolist(), strict=True)]
    work = [alpha + beta * tokens for tokens in batch.length.tolist()]
    return _as_step_problem(base, np.minimum(batch.room, batch.length.size), work, time_limit, seed)


def level_then_load(batch: DecodeBatch, time_limit: float | None = None, seed: int = 0) -> DecodePlacement:
    """Return a placement of the least largest load among those with counts as level as possible (D2).

    Parameters
    ----------
    batch
        The requests to place, and the load of each unit.
    time_limit
        Seconds; None for no limit.
    """
    w, left = water_level(batch)
    top = batch.count + batch.room
    least = np.clip(w, batch.count, top) - batch.count
    if left == 0:
        return _as_step_problem(batch.load, least, batch.length, time_limit, seed)
    may_rise = (batch.count <= w) & (w < top)
    N, unit = batch.count.size, fewest_requests_first(batch)
    value = max(batch.loads_after(unit))
    bound = max(int(batch.load.max()), -(-(sum(batch.load.tolist()) + sum(batch.length.tolist())) // N))
    if value == bound:
        return DecodePlacement(unit, value, value, "elementary-bound")
    cost = np.repeat(batch.length[:, None], N, axis=1)
    program = PlacingProgram(batch.load, cost, place_all=True, kind=(2 * least + may_rise).tolist())
    model = program.model
    rises = [model.new_bool_var(f"rises[{i}]") if may_rise[i] else 0 for i in range(N)]
    for i in range(N):
        model.add(sum(row[i] for row in program.on) == int(least[i]) + rises[i])
    largest = model.new_int_var(bound, value, "largest")
    for tokens in program.tokens:
        model.add(tokens <= largest)
    model.minimize(largest)
    program.hint(unit)
    found, claimed = program.solve(time_limit, seed)
    if found is not None and max(batch.loads_after(found)) < value:
        unit, value = found, max(batch.loads_after(found))
    proof = "elementary-bound"
    if claimed is not None and bound < claimed <= value:
        bound, proof = claimed, "claimed:cp-sat"
    return DecodePlacement(unit, value, bound, proof)


def _as_step_problem(base: Any, slots: Any, work: Any, time_limit: float | None, seed: int) -> DecodePlacement:
    problem = StepProblem.now(base, slots, work)
    result = solve(problem, "search", time_limit=time_limit, seed=seed)
    assert result.assignment is not None, "greedy always finds one"
    if result.stop_reason == "interrupted":  # the search has caught Ctrl-C; the caller has to hear of it
        raise KeyboardInterrupt
    unit = np.array(result.assignment)
    loads = problem.base[:, 0].tolist()
    for r, i in enumerate(unit.tolist()):
        loads[i] += int(problem.work[r, 0])
    bound = -(-((result.bound or 0) + sum(loads)) // len(loads))
    return DecodePlacement(unit, max(loads), max(bound, int(problem.base.max())), str(result.proof))
