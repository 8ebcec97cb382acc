"""Exact counterparts of the decode rule of SBS (Algorithm 3, `policies.iqr`): programs D1 to D3 (SBS, section 7.1).

Unit i has B_i requests and K_i tokens, and m requests are to be placed, all of them.

* D1, `count_then_load`: the largest count as small as possible, then the largest load. The first has a closed form,
  B* = max(max B, ceil((sum B + m) / N)); the second is then the step problem at horizon 0 with B* - B_i free slots.
* D2, `level_then_load`: counts as level as possible (leximax), then the largest load. Counts fill up like water: unit i
  ends at max(B_i, w), and e of those with B_i <= w one higher. Which ones is decided with the loads, by CP-SAT.
* D3, `barrier_time`: the largest alpha * count + beta * load, which every step waits for: the step problem at horizon 0
  with loads alpha * B_i + beta * K_i, where a request adds alpha + beta * length and every unit has room for all.

In D1 and D3 all m requests are admitted and the total is the same for every placement, so that least imbalance is least
maximum.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lbopt.exceptions import InputError
from lbopt.model import StepProblem
from lbopt.model.integers import IntArray, integer_array
from lbopt.prefill.exact.batch import MOST_TOKENS, PrefillBatch
from lbopt.prefill.exact.placing_program import PlacingProgram
from lbopt.solvers.solve import solve


@dataclass(frozen=True, slots=True, eq=False)
class DecodeBatch:
    """Requests for decode units: `count` and `load` (tokens) of units, int (N,); `length` int (m,), tokens, >= 1."""

    count: IntArray
    load: IntArray
    length: IntArray

    def __post_init__(self) -> None:
        for name in ("count", "load", "length"):
            object.__setattr__(self, name, integer_array(name, getattr(self, name), ndim=(1,)))
        if self.count.size == 0 or self.count.size != self.load.size:
            raise InputError(
                f"count has {self.count.size} entries and load {self.load.size}; expected one each for at least 1 unit"
            )
        if (self.length < 1).any():
            raise InputError(f"length[{int(np.argmax(self.length < 1))}] is 0; expected requests of at least 1 token")
        for name in ("count", "load", "length"):
            total = float(getattr(self, name).sum(dtype=np.float64))
            if total >= MOST_TOKENS:
                raise InputError(f"{name} has {total:.3g} in all; expected below 2**50")

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
        """Return the largest alpha * count + beta * load of a unit."""
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


def least_largest_count(batch: DecodeBatch) -> int:
    """Return B*, the least possible largest count."""
    total: int = sum(batch.count.tolist()) + int(batch.length.size)
    return max(int(batch.count.max()), -(-total // batch.count.size))


def water_level(batch: DecodeBatch) -> tuple[int, int]:
    """Return (w, e): unit i ends at max(count, w), and e of the units with count <= w one higher."""
    ordered, m = sorted(batch.count.tolist()), int(batch.length.size)
    below, w = 0, 0
    for k, count in enumerate(ordered, start=1):  # the k lowest units, filled up together
        below += count
        if k == len(ordered) or k * ordered[k] - below > m:
            w = (below + m) // k
            break
    return w, sum(ordered) + m - sum(max(count, w) for count in ordered)


def count_then_load(batch: DecodeBatch, time_limit: float | None = None, seed: int = 0) -> DecodePlacement:
    """Return a placement of the least largest load among those with the least largest count (D1)."""
    slots = least_largest_count(batch) - batch.count
    return _as_step_problem(batch.load, slots, batch.length, time_limit, seed)


def barrier_time(
    batch: DecodeBatch, alpha: int, beta: int, time_limit: float | None = None, seed: int = 0
) -> DecodePlacement:
    """Return a placement with the least barrier (D3).

    `alpha` and `beta` are the times per request and per token in whole units of the caller's choice, such as
    picoseconds, >= 0.
    """
    for name, value in (("alpha", alpha), ("beta", beta)):
        if not 0 <= value < 2**31:
            raise InputError(f"{name} is {value}; expected a whole number of 0 or more, below 2**31")
    m, N = batch.length.size, batch.count.size
    base = [alpha * b + beta * k for b, k in zip(batch.count.tolist(), batch.load.tolist(), strict=True)]
    work = [alpha + beta * tokens for tokens in batch.length.tolist()]
    return _as_step_problem(base, np.full(N, m), work, time_limit, seed)


def level_then_load(batch: DecodeBatch, time_limit: float | None = None, seed: int = 0) -> DecodePlacement:
    """Return a placement of the least largest load among those with counts as level as possible (D2)."""
    w, _ = water_level(batch)
    m, N = batch.length.size, batch.count.size
    least = np.maximum(w - batch.count, 0)
    may_rise = batch.count <= w
    unit = fewest_requests_first(batch)
    value = max(batch.loads_after(unit))
    bound = max(int(batch.load.max()), -(-(sum(batch.load.tolist()) + sum(batch.length.tolist())) // N))
    if value == bound or m == 0:
        return DecodePlacement(unit, value, value, "elementary-bound")
    program = PlacingProgram(PrefillBatch(batch.load, batch.length), place_all=True, kind=batch.count.tolist())
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


def fewest_requests_first(batch: DecodeBatch) -> NDArray[np.int64]:
    """Follow Algorithm 3 without its mask: longest first, to the least (count, load), lowest number on ties.

    The counts it ends with are as level as possible, since each step raises a lowest one.
    """
    unit = np.zeros(batch.length.size, dtype=np.int64)
    counts, loads = batch.count.tolist(), batch.load.tolist()
    for r in np.argsort(-batch.length, kind="stable").tolist():
        i = min(range(len(counts)), key=lambda i: (counts[i], loads[i], i))
        unit[r] = i
        counts[i] += 1
        loads[i] += int(batch.length[r])
    return unit


def _as_step_problem(base: Any, slots: Any, work: Any, time_limit: float | None, seed: int) -> DecodePlacement:
    problem = StepProblem.now(base, slots, work)
    result = solve(problem, time_limit=time_limit, seed=seed)
    assert result.assignment is not None, "greedy always finds one"
    unit = np.array(result.assignment)
    loads = problem.base[:, 0].tolist()
    for r, i in enumerate(unit.tolist()):
        loads[i] += int(problem.work[r, 0])
    bound = -(-((result.bound or 0) + sum(loads)) // len(loads))
    return DecodePlacement(unit, max(loads), max(bound, int(problem.base.max())), str(result.proof))
