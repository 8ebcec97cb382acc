"""Exact placements of one prefill batch, and how far the rules are from them (what Algorithm 2 of SBS approximates).

One batch for one instance: what its units already have to compute, and what each request would add.

(P1) The least straggler: place all requests so that the fullest unit has the fewest tokens.

Without a cache this is the step problem at horizon 0 with the units' loads and room for all on every unit: then all n
requests are admitted, the total load is the same for every placement, and the imbalance D * max - total orders
placements as their stragglers do. `solvers.solve` answers it with a proof. Handing over to CP-SAT what is open after
half of the time leaves about as many open (17 instead of 18 of 50 batches of a loaded fleet in 2 s) and turns proofs
into claims, so that it has no part in this. With a cache a request costs a different amount on each unit (unrelated
machines), which is CP-SAT's.

(P2) The best fill of the next pass: which requests to place where, the others wait.

First as many tokens as possible in the pass, each unit up to its chunk; with that, as few tokens as possible beyond the
chunks; with that, as many old requests as possible. CP-SAT, one solve each, the value reached before held by a row.

How far allocation rules are from the optimum of the same batch.

The straggler is compared on the whole batch, as if there were no chunk; the fill with the requests that the simulation
would send: all for a rule that chooses, and for the others the oldest before each of whom there is room.

What the scheduler had before it at each dispatch of a run, and what its rule made of it.

A `Simulation` is looked at after every moment, and the dispatch of that moment is undone: what was sent is taken back
from the loads, what was kept was kept once less. Without a latency the scheduler knows all of this at the time, so that
the rule, asked again, gives the same units.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lbopt import compile_time
from lbopt.exceptions import InputError
from lbopt.kernels.prefill import codes
from lbopt.model import StepProblem
from lbopt.model.integers import BoolArray, IntArray, boolean_array, integer_array
from lbopt.prefill.allocations import checked_hits, make_allocation, pbaa, place
from lbopt.prefill.requests import MOST_TOKENS, PrefillRequests, checked_lengths
from lbopt.prefill.setting import PrefillSetting
from lbopt.prefill.simulate import Simulation
from lbopt.solvers.front import solve
from lbopt.solvers.placing_program import PlacingProgram


@dataclass(frozen=True, slots=True, eq=False)
class PrefillBatch:
    """A batch.

    Parameters
    ----------
    load
        int (D,), tokens that each unit has to compute without the batch: chunk less headroom.
    length
        int (n,), tokens of the prompts, >= 1, the oldest first.
    hits
        int (n, D), tokens of them cached on each unit, at most the length; None where nothing is cached.
    chunk
        Most tokens of a unit in a pass, >= 1.
    pending
        bool (n,), left over from earlier dispatches; None where there are none.
    """

    load: IntArray
    length: IntArray
    hits: IntArray | None = None
    chunk: int = MOST_TOKENS
    pending: BoolArray = None  # type: ignore[assignment]  # None on the way in, an array from then on

    def __post_init__(self) -> None:
        load = integer_array("load", self.load, ndim=(1,))
        if load.size == 0:
            raise InputError("load has no entries; expected one for each of at least 1 unit")
        length = checked_lengths(self.length, float(load.sum(dtype=np.float64)), "loads and prompts")
        if not 1 <= self.chunk <= MOST_TOKENS:
            raise InputError(f"chunk is {self.chunk}; expected 1 to 2**50 tokens")
        given: Any = self.pending
        pending = np.zeros(length.size, dtype=np.bool_) if given is None else given
        object.__setattr__(self, "load", load)
        object.__setattr__(self, "length", length)
        object.__setattr__(self, "pending", boolean_array("pending", pending, length.size))
        if self.hits is not None:
            object.__setattr__(self, "hits", checked_hits(self.hits, length, load.size))

    @property
    def num_units(self) -> int:
        """Number of units, D."""
        return int(self.load.size)

    @property
    def num_requests(self) -> int:
        """Number of requests, n."""
        return int(self.length.size)

    @property
    def cost(self) -> NDArray[np.int64]:
        """Tokens that each request adds to each unit, int64 (n, D)."""
        cost = np.repeat(self.length[:, None], self.num_units, axis=1)
        return cost if self.hits is None else cost - self.hits

    def loads_after(self, unit: Any) -> list[int]:
        """Return the tokens of each unit once request r is on ``unit[r]`` (-1: nowhere), in Python's integers."""
        chosen = np.asarray(unit)
        if chosen.shape != (self.num_requests,) or chosen.dtype.kind not in "iu":
            raise InputError(f"unit has shape {chosen.shape}; expected a whole number for each of {self.num_requests}")
        if ((chosen < -1) | (chosen >= self.num_units)).any():
            r = int(np.argmax((chosen < -1) | (chosen >= self.num_units)))
            raise InputError(f"unit[{r}] is {chosen[r]}; expected 0 to {self.num_units - 1}, or -1 for nowhere")
        loads: list[int] = self.load.tolist()
        for r, d in enumerate(chosen.tolist()):
            if d >= 0:
                loads[d] += int(self.length[r]) - (0 if self.hits is None else int(self.hits[r, d]))
        return loads


@dataclass(frozen=True, slots=True, eq=False)
class Placement:
    """A placement of the whole batch, and how good it is.

    Parameters
    ----------
    unit
        int64 (n,), the unit of each request.
    straggler
        Tokens of the fullest unit.
    bound
        No placement has a straggler of fewer tokens.
    proof
        Where the bound comes from, as in `solvers.Result`.
    """

    unit: NDArray[np.int64]
    straggler: int
    bound: int
    proof: str

    @property
    def optimal(self) -> bool:
        """Whether nothing better is possible."""
        return self.straggler == self.bound


@dataclass(frozen=True, slots=True, eq=False)
class Fill:
    """A choice from the batch that fills the next pass.

    Parameters
    ----------
    unit
        int64 (n,), the unit of each request, -1 where it is kept.
    filled
        Tokens of the next pass, all units, each up to the chunk; as many as possible.
    overshoot
        Tokens beyond the chunks, left for later passes; as few as possible with that.
    pending
        Requests of earlier dispatches that are placed; as many as possible with both.
    bounds
        What is known of the best possible (filled, overshoot, pending), each with the ones before it as they are.
    proof
        Where the bounds come from, as in `solvers.Result`.
    """

    unit: NDArray[np.int64]
    filled: int
    overshoot: int
    pending: int
    bounds: tuple[int, int, int]
    proof: str

    @property
    def optimal(self) -> bool:
        """Whether nothing better is possible."""
        return (self.filled, self.overshoot, self.pending) == self.bounds


def straggler_of(batch: PrefillBatch, unit: NDArray[np.int64]) -> int:
    """Return the tokens of the fullest unit."""
    return max(batch.loads_after(unit))


def fill_of(batch: PrefillBatch, unit: NDArray[np.int64]) -> tuple[int, int, int]:
    """Return (filled, overshoot, pending requests placed)."""
    loads = batch.loads_after(unit)
    filled = sum(min(tokens, batch.chunk) for tokens in loads)
    return filled, sum(loads) - filled, int((batch.pending & (unit >= 0)).sum())


def least_straggler(batch: PrefillBatch, time_limit: float | None = None, seed: int = 0) -> Placement:
    """Place the whole batch with the least straggler; within `time_limit` seconds as good as is known by then."""
    if batch.hits is None:
        return _as_step_problem(batch, time_limit, seed)
    unit, bound = longest_to_earliest_end(batch), elementary_bound(batch)
    if straggler_of(batch, unit) == bound:
        return Placement(unit, bound, bound, "elementary-bound")
    program = PlacingProgram(batch.load, batch.cost, place_all=True)
    straggler = program.model.new_int_var(bound, straggler_of(batch, unit), "straggler")
    for tokens in program.tokens:
        program.model.add(tokens <= straggler)
    program.model.minimize(straggler)
    found, claimed = program.solve(time_limit, seed)
    if found is not None and straggler_of(batch, found) < straggler_of(batch, unit):
        unit = found
    proof = "elementary-bound"
    if claimed is not None and bound < claimed <= straggler_of(batch, unit):
        bound, proof = claimed, "claimed:cp-sat"
    return Placement(unit, straggler_of(batch, unit), bound, proof)


def elementary_bound(batch: PrefillBatch) -> int:
    """Return the largest of: a unit's own load, the least total shared evenly, one request where it ends earliest."""
    cost, load = batch.cost, batch.load
    if batch.num_requests == 0:
        return int(load.max())
    shared: int = -(-(sum(load.tolist()) + sum(cost.min(axis=1).tolist())) // batch.num_units)
    return max(int(load.max()), shared, int((load + cost).min(axis=1).max()))


def longest_to_earliest_end(batch: PrefillBatch) -> NDArray[np.int64]:
    """Place the longest first, each where it ends earliest."""
    load, cost = batch.load.copy(), batch.cost
    unit = np.zeros(batch.num_requests, dtype=np.int64)
    for r in np.argsort(-cost.min(axis=1), kind="stable"):
        unit[r] = np.argmin(load + cost[r])
        load[unit[r]] += cost[r, unit[r]]
    return unit


def _as_step_problem(batch: PrefillBatch, time_limit: float | None, seed: int) -> Placement:
    n, D = batch.num_requests, batch.num_units
    problem = StepProblem.now(batch.load, np.full(D, n), batch.length)
    result = solve(problem, "search", time_limit=time_limit, seed=seed)
    if result.stop_reason == "interrupted":  # the search has caught Ctrl-C; the caller has to hear of it
        raise KeyboardInterrupt
    unit = longest_to_earliest_end(batch)
    if result.assignment is not None and straggler_of(batch, np.array(result.assignment)) <= straggler_of(batch, unit):
        unit = np.array(result.assignment)
    total = sum(batch.load.tolist()) + sum(batch.length.tolist())
    bound, proof = elementary_bound(batch), "elementary-bound"
    if result.bound is not None and -(-(result.bound + total) // D) > bound:
        bound, proof = -(-(result.bound + total) // D), str(result.proof)
    return Placement(unit, straggler_of(batch, unit), bound, proof)


def best_fill(batch: PrefillBatch, time_limit: float | None = None, seed: int = 0, *, stages: int = 3) -> Fill:
    """Choose and place; within `time_limit` seconds as good as is known by then.

    Parameters
    ----------
    batch
        The batch.
    time_limit
        Seconds; None for no limit.
    seed
        Seed of the solver.
    stages
        1 decides only the tokens of the pass, 2 those beyond the chunks as well, 3 also the rest.
    """
    started = compile_time.clock()

    def left() -> float | None:
        return None if time_limit is None else time_limit - (compile_time.clock() - started)

    n = batch.num_requests
    if n == 0:
        value = fill_of(batch, np.zeros(0, dtype=np.int64))
        return Fill(np.zeros(0, dtype=np.int64), *value, value, "elementary-bound")
    program = PlacingProgram(batch.load, batch.cost, place_all=False, chunk=batch.chunk)
    model = program.model
    filled = []
    for d, tokens in enumerate(program.tokens):
        used = model.new_int_var(0, batch.chunk, f"filled[{d}]")
        model.add(used <= tokens)
        filled.append(used)
    placed = sum(program.tokens)
    pending = sum(program.on[r][d] for r in range(n) if batch.pending[r] for d in range(batch.num_units))
    none_chosen = np.full(n, -1, dtype=np.int64)
    unit = pbaa(batch.chunk - batch.load, batch.length, batch.hits, batch.pending)
    proof = "elementary-bound"
    bounds, settled = [_most_filled(batch), fill_of(batch, none_chosen)[1], int(batch.pending.sum())], True
    for stage in range(stages):
        value = fill_of(batch, unit)
        if stage == 1:
            model.add(sum(filled) == value[0])
        elif stage == 2:
            model.add(placed == value[0] + value[1])  # with the same fill, the rest of what is placed overshoots
        if value[stage] == bounds[stage] or not settled:
            continue
        if stage == 1:
            model.minimize(placed - value[0])
        else:
            model.maximize(sum(filled) if stage == 0 else pending)
        program.hint(unit)
        found, claimed = program.solve(left(), seed)
        if found is not None and _rank(batch, found) > _rank(batch, unit):
            unit = found
        reached, sign = fill_of(batch, unit)[stage], -1 if stage == 1 else 1
        if claimed is not None and sign * reached <= sign * claimed < sign * bounds[stage]:
            bounds[stage], proof = claimed, "claimed:cp-sat"
        settled = reached == bounds[stage]
    value = fill_of(batch, unit)
    return Fill(unit, *value, (bounds[0], bounds[1], bounds[2]), proof)


def _rank(batch: PrefillBatch, unit: NDArray[np.int64]) -> tuple[int, int, int]:
    """Return what is compared: the greater, the better."""
    filled, overshoot, pending = fill_of(batch, unit)
    return filled, -overshoot, pending


def _most_filled(batch: PrefillBatch) -> int:
    """Return a bound on the tokens of the pass: all chunks, or if they are fewer, what the units have in it and what
    each request can add to it where it adds most. On unit d that is at most the headroom there.
    """
    held = np.minimum(batch.load, batch.chunk)
    adds = np.minimum(batch.cost, batch.chunk - held).max(axis=1, initial=0)
    tokens: int = sum(held.tolist()) + sum(adds.tolist())
    return min(batch.num_units * batch.chunk, tokens)


RULES = ("pbaa", "longest-first", "round-robin")


@dataclass(frozen=True, slots=True)
class AllocationGap:
    """One rule on one batch, in tokens.

    `straggler` and `filled` are the rule's, `least_straggler` and `most_filled` what is known to be the best possible
    (bounds, reached where the solve was optimal).
    """

    rule: str
    straggler: int
    least_straggler: int
    filled: int
    most_filled: int
    overshoot: int

    @property
    def straggler_gap(self) -> float:
        """How much longer the fullest unit is than it has to be, as a share of the least."""
        return (self.straggler - self.least_straggler) / max(1, self.least_straggler)

    @property
    def fill_gap(self) -> float:
        """Share of what the pass could hold that it does not."""
        return (self.most_filled - self.filled) / max(1, self.most_filled)


def allocation_gaps(
    batch: PrefillBatch,
    rules: Sequence[str] = RULES,
    time_limit: float | None = None,
    seed: int = 0,
    *,
    turn: int = 0,
    stages: int = 3,
) -> tuple[list[AllocationGap], Placement, Fill]:
    """Return a row for each rule, and the two optima.

    Parameters
    ----------
    batch
        The batch.
    rules
        Names of allocations.
    time_limit
        Seconds for each of the two optima; None for no limit.
    seed
        Seed of the solver.
    turn
        Requests that the instance was sent before, where round-robin stands.
    stages
        As in `best_fill`.
    """
    placement, fill = least_straggler(batch, time_limit, seed), best_fill(batch, time_limit, seed, stages=stages)
    rows = []
    for rule in rules:
        filled, overshoot, _ = fill_of(batch, sent_by(batch, rule, turn))
        straggler = straggler_of(batch, place_by(batch, rule, codes.NO_LIMIT, batch.num_requests, turn))
        rows.append(AllocationGap(rule, straggler, placement.bound, filled, fill.bounds[0], overshoot))
    return rows, placement, fill


def place_by(batch: PrefillBatch, rule: str, chunk: int, first: int, turn: int = 0) -> NDArray[np.int64]:
    """Return the units, int64 (n,), that `rule` gives to the first so many requests; -1 where it keeps them.

    Parameters
    ----------
    chunk
        Most tokens of a unit in a pass.
    """
    unit = np.full(batch.num_requests, -1, dtype=np.int64)
    hits = None if batch.hits is None else batch.hits[:first]
    pending = batch.pending[:first]
    unit[:first] = place(make_allocation(rule), batch.load.copy(), batch.length[:first], chunk, hits, pending, turn)
    return np.maximum(unit, -1)


def sent_by(batch: PrefillBatch, rule: str, turn: int = 0) -> NDArray[np.int64]:
    """Return the units, int64 (n,), that `rule` gives in a simulation; -1 where it keeps or refuses."""
    first = batch.num_requests
    if not make_allocation(rule).chooses:
        room = batch.num_units * batch.chunk - sum(batch.load.tolist())
        before = np.concatenate([[0], np.cumsum(batch.cost.min(axis=1, initial=codes.NO_LIMIT))])
        first = int((before[:-1] < room).sum())
    return place_by(batch, rule, batch.chunk, first, turn)


@dataclass(frozen=True, slots=True, eq=False)
class Dispatch:
    """One dispatch.

    Parameters
    ----------
    time
        s.
    instance, turn
        Which instance, and how many requests were sent to it before, which is where round-robin stands.
    requests
        int64 (n,), the numbers of all who had arrived and were not sent, the oldest first.
    batch
        What they are, and what the units of the instance had to compute.
    unit
        int64 (n,), where the rule of the run sent each; -1 where it kept or refused it.
    """

    time: float
    instance: int
    turn: int
    requests: NDArray[np.int64]
    batch: PrefillBatch
    unit: NDArray[np.int64]


def dispatches(requests: PrefillRequests, setting: PrefillSetting, *, seed: int) -> Iterator[Dispatch]:
    """Run `requests` through `setting` and yield every dispatch; arguments as of `simulate_prefill`."""
    _check(setting)
    simulation = Simulation(requests, setting, seed)
    state = simulation.state
    progress = state.progress
    ended = False
    while not ended:
        waited = state.waiting[progress.queue_head : progress.queue_tail].copy()
        arrived, last = int(progress.coming), float(progress.last_dispatch)
        ended = simulation.run(1)
        if progress.last_dispatch > last:
            queue = np.concatenate([waited, np.arange(arrived, progress.coming)])
            yield _undone(queue, requests, simulation)


def _undone(queue: NDArray[np.int64], requests: PrefillRequests, simulation: Simulation) -> Dispatch:
    setting, state = simulation.setting, simulation.state
    now, g = float(state.progress.last_dispatch), int(state.progress.target) - 1
    sent = state.status.dispatched[queue] == now
    unit = np.where(sent, state.status.unit[queue], -1)
    deferred = simulation.batch.deferred[queue]
    if setting.rule.chooses:  # it was shown all of them; who was refused was not counted once more
        still = state.waiting[state.progress.queue_head : state.progress.queue_tail]
        deferred[np.isin(queue, still)] -= 1
    hits = None if requests.hits is None else requests.hits[queue, g]
    cost = requests.length[queue]
    if hits is not None:
        cost = cost - np.where(sent, hits[np.arange(queue.size), unit], 0)
    load = state.backlog[g].copy()
    np.subtract.at(load, unit[sent], cost[sent])
    batch = PrefillBatch(load, requests.length[queue], hits, setting.chunk_tokens or codes.NO_LIMIT, deferred > 0)
    return Dispatch(now, g, int(state.instances[g].placed_in_turn) - int(sent.sum()), queue, batch, unit)


def _check(setting: PrefillSetting) -> None:
    if setting.dispatch.code not in (codes.SPACING, codes.TICK):
        raise InputError(
            f"dispatches are known one by one under a staggered policy, not under '{setting.dispatch.name}'; expected "
            "staggered"
        )
    for name, none in (("latency", 0.0), ("requests_per_pass", None), ("queue_limit", None)):
        if getattr(setting, name) != none:
            raise InputError(f"{name} is {getattr(setting, name)}; dispatches can be undone only with {none}")
