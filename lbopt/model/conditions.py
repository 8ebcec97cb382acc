"""What a fleet asks of a decision beyond free slots: memory, eligibility, prefixes, speed, prefill, ages, pauses.

All parts are optional, and a problem without any is the plain step problem. Let x[i,g] say that request i is placed on
worker g and z[r] that running request r is paused. Then

    sum_i need[i] x[i,g] <= capacity[g],   sum_i prompt[i] x[i,g] <= prefill_budget[g],   x[i,g] = 0 unless allowed[i,g]

and the load of worker g at step h is

    L_g(h) = pace[g] * (base[g,h] + sum_i (work[i,h] - credit[i,g] where work[i,h] > 0) x[i,g]
                        - sum_r running_work[r,0] z[r] on g, at h = 0 alone).

The objective is sum_h [G max_g L_g(h) - sum_g L_g(h)], plus the `waiting_cost` of the requests that are left waiting,
plus the `pause_cost` of those that are paused. It is in tokens, or in units of `pace` where that is given.

Two goals can come before it: as many requests as possible (`admit="most"`), then the least total waiting cost
(`overdue_first`). `lbopt.model.objective.rank` has their order.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from lbopt.exceptions import InputError
from lbopt.files import shown
from lbopt.kinds import refuse, whole
from lbopt.model.integers import BoolArray, IntArray, boolean_table, integer_array

#: How many requests are admitted, where `Conditions.admit` is no number.
ADMIT = ("most", "free")

#: Fields of one entry a worker, of one a request, and of one a running request.
_PER_WORKER = ("capacity", "pace", "prefill_budget")
_PER_REQUEST = ("need", "prompt", "waiting_cost")
_PER_RUNNING = ("running_worker", "running_work", "pause_cost")
_PAIRS = ("allowed", "credit")


@dataclass(frozen=True, slots=True, eq=False)
class Resource:
    """What the requests of a worker share: the sum of `need` on worker g may be at most ``limit[g]``.

    Parameters
    ----------
    name
        What it is called in messages.
    limit
        int64 (G,): what is free on each worker.
    need
        int64 (N,): what each request takes.
    """

    name: str
    limit: IntArray
    need: IntArray


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Conditions:
    """Conditions of a step problem: checked, frozen, exact. `StepProblem.under` attaches them.

    Parameters
    ----------
    capacity
        int, (G,): what is free of each worker's KV memory, in tokens or blocks.
    need
        int, (N,): what each request takes of it, in the same unit (`lbopt.model.in_blocks` rounds tokens up to
        blocks). None takes the work in the last column: the tokens that the request holds at the end of the window. A
        request that leaves within the window has none there, so give its need.
    allowed
        bool, (N, G): whether a worker may take a request.
    credit
        int, (N, G): tokens of a request's prefix that a worker holds already. They are taken from its work in every
        column in which the request is there; at most its smallest work above 0.
    pace
        int, (G,), at least 1: time of a token on each worker in some common unit; speeds 1 and 1.25 are paces 5 and 4.
        The objective, and the costs below, are then in that unit.
    prefill_budget
        int, (G,): most prompt tokens that may be admitted to each worker.
    prompt
        int, (N,): prompt of each request, tokens. None takes the work at h = 0.
    waiting_cost
        int, (N,): what leaving a request waiting costs, tokens.
    overdue_first
        Whether the total waiting cost is made least first, and the imbalance among what is left. Otherwise the two are
        added up. Under `admit="most"` the number of requests comes before it.
    admit
        "most": as many requests as the conditions permit, and among those choices the best one. It is found in two
        stages: exhaustion ranks by the number first, a solver of integer programs maximises the number, holds it, and
        minimises the objective. "free": a slot may stay empty where that costs less. A number: exactly so many.
    running_worker, running_work, pause_cost
        int, (R,), (R, H + 1), (R,): running requests that may sit out this step with their KV kept. Where they run,
        their load over the window, which `base` contains, and what a pause costs, all in tokens. A paused request's
        work is taken from its worker in column 0 alone.

    Raises
    ------
    InputError
        On entries that are negative or fractional, or on a field without the one that it belongs to.

    Examples
    --------
    >>> import lbopt
    >>> problem = lbopt.StepProblem.now(loads=[900, 700, 400], slots=[1, 2, 1], sizes=[310, 260, 150, 120, 80])
    >>> small = problem.under(lbopt.Conditions(capacity=[200, 400, 300]))
    >>> lbopt.solve(small).assignment.tolist()
    [-1, 2, 1, 1, 0]
    """

    capacity: IntArray | None = None
    need: IntArray | None = None
    allowed: BoolArray | None = None
    credit: IntArray | None = None
    pace: IntArray | None = None
    prefill_budget: IntArray | None = None
    prompt: IntArray | None = None
    waiting_cost: IntArray | None = None
    overdue_first: bool = False
    admit: str | int = "most"
    running_worker: IntArray | None = None
    running_work: IntArray | None = None
    pause_cost: IntArray | None = None

    def __post_init__(self) -> None:
        for name in (*_PER_WORKER, *_PER_REQUEST, *_PER_RUNNING, *_PAIRS):
            values = getattr(self, name)
            if values is None:
                continue
            if name == "allowed":
                array: Any = boolean_table(name, values)
            else:
                # An empty table comes from JSON as [], which has one dimension.
                array = integer_array(name, values, ndim=(1, 2) if name in ("credit", "running_work") else (1,))
                if name == "credit" and array.size and array.ndim == 1:
                    raise InputError(f"credit must be 2-D; it has shape {array.shape}")
            object.__setattr__(self, name, array)
        for name, owner in (("need", "capacity"), ("prompt", "prefill_budget")):
            if getattr(self, name) is not None and getattr(self, owner) is None:
                raise InputError(f"{name} is given without {owner}; give both, or {owner} alone")
        absent = [name for name in _PER_RUNNING if getattr(self, name) is None]
        if 0 < len(absent) < len(_PER_RUNNING):
            raise InputError(f"running requests that may pause need {', '.join(_PER_RUNNING)}; {absent[0]} is absent")
        if self.pace is not None and (self.pace < 1).any():
            raise InputError(f"pace[{int(np.argmax(self.pace < 1))}] is 0; expected at least 1")
        refuse("overdue_first", self.overdue_first, bool)
        object.__setattr__(self, "overdue_first", bool(self.overdue_first))
        if self.overdue_first and self.waiting_cost is None:
            raise InputError("overdue_first is given without waiting_cost, which says what is overdue")
        self._check_admit()

    def _check_admit(self) -> None:
        refuse("admit", self.admit, str | int)
        if not isinstance(self.admit, str) and self.admit >= 0:
            object.__setattr__(self, "admit", int(self.admit))
        elif self.admit not in ADMIT:
            raise InputError(f"admit is {shown(self.admit)}; expected {' or '.join(ADMIT)}, or how many to admit")

    # ------------------------------------------------------------------ what they mean for a problem

    @property
    def exactly(self) -> int | None:
        """How many requests have to be admitted where `admit` is a number; else None."""
        return self.admit if isinstance(self.admit, int) else None

    @property
    def num_pausable(self) -> int:
        """Running requests that may pause, R."""
        return 0 if self.running_worker is None else int(self.running_worker.size)

    @property
    def resources(self) -> tuple[Resource, ...]:
        """What requests of a worker share; needs are filled in once the conditions belong to a problem."""
        kinds = (("KV capacity", self.capacity, self.need), ("prefill budget", self.prefill_budget, self.prompt))
        return tuple(
            Resource(name, limit, need) for name, limit, need in kinds if limit is not None and need is not None
        )

    @property
    def goals(self) -> tuple[str, ...]:
        """What is made least before the objective, in this order: "left_waiting" (requests), "overdue" (tokens)."""
        most = ("left_waiting",) if self.admit == "most" else ()
        return (*most, "overdue") if self.overdue_first else most

    def largest_total(self, tokens: int) -> int:
        """Return what an objective can reach under these conditions where G * sum of maximum loads reaches `tokens`."""
        costs = sum(sum(values.tolist()) for values in (self.waiting_cost, self.pause_cost) if values is not None)
        return tokens * (1 if self.pace is None else int(self.pace.max())) + costs

    def fitted(self, base: IntArray, slots: IntArray, work: IntArray) -> Conditions | None:
        """Return the conditions with defaults filled in for a problem; None where they leave it as it is.

        Parts that cannot matter (nothing forbidden, no credit, paces of 1, no waiting cost) are left out, so that
        problems that are equal have equal digests.

        Parameters
        ----------
        base, work
            int64, (G, H + 1) and (N, H + 1): loads over the window, tokens.
        slots
            int64, (G,): free slots.

        Raises
        ------
        InputError
            On a shape that is not the problem's, a credit above a request's smallest work, a worker that does not
            exist, running requests that hold more than their worker, or a number to admit that slots do not permit.
        """
        (G, width), N = base.shape, work.shape[0]
        self._refuse_shapes(G, N)
        most = min(N, sum(slots.tolist()))
        if self.exactly is not None and self.exactly > most:
            raise InputError(
                f"admit is {self.exactly}, but only {most} can be admitted "
                f"({N} waiting, {sum(slots.tolist())} free slots)"
            )
        running = self._running_over(base, width)
        for name in ("need", "prompt", "waiting_cost", "pause_cost"):
            if getattr(self, name) is not None:
                _refuse_large_sum(name, getattr(self, name))
        kept = replace(
            self,
            need=work[:, -1] if self.capacity is not None and self.need is None else self.need,
            prompt=work[:, 0] if self.prefill_budget is not None and self.prompt is None else self.prompt,
            allowed=None if self.allowed is None or self.allowed.all() else self.allowed,
            credit=self._credit_within(work),
            pace=None if self.pace is None or (self.pace == 1).all() else self.pace,
            waiting_cost=None if self.waiting_cost is None or not self.waiting_cost.any() else self.waiting_cost,
            overdue_first=self.overdue_first and self.waiting_cost is not None and bool(self.waiting_cost.any()),
            **running,
        )
        says_nothing = not any(True for _ in kept.arrays()) and kept.admit in ("most", most)
        return None if says_nothing else kept

    def _refuse_shapes(self, G: int, N: int) -> None:
        for names, count, of in ((_PER_WORKER, G, "workers"), (_PER_REQUEST, N, "requests")):
            for name in names:
                values = getattr(self, name)
                if values is not None and values.shape != (count,):
                    raise InputError(f"{name} has {values.size} entries; the problem has {count} {of}")
        for name in _PAIRS:
            values = getattr(self, name)
            if values is not None and values.shape != (N, G) and not values.size == N == 0:
                raise InputError(
                    f"{name} has shape {values.shape}; expected a row for each of {N} requests of {G} workers"
                )

    def _credit_within(self, work: IntArray) -> IntArray | None:
        if self.credit is None or not self.credit.any():
            return None
        smallest = np.where(work > 0, work, np.iinfo(np.int64).max).min(axis=1)
        smallest[~(work > 0).any(axis=1)] = 0
        too_large = np.argwhere(self.credit > smallest[:, None])
        if too_large.size:
            i, g = too_large[0].tolist()
            raise InputError(
                f"credit[{i}, {g}] is {self.credit[i, g]}, but the smallest work of request {i} is {smallest[i]}; a "
                "worker cannot hold more of a request than all of it"
            )
        return self.credit

    def _running_over(self, base: IntArray, width: int) -> dict[str, Any]:
        """Return what may pause, over the window, checked against the loads that contain it."""
        if self.running_worker is None or self.running_work is None or self.pause_cost is None:
            return {}
        R = self.num_pausable
        if R == 0:
            return dict.fromkeys(_PER_RUNNING)
        work = self.running_work[:, None] if self.running_work.ndim == 1 else self.running_work
        if work.shape[0] != R or self.pause_cost.size != R or work.shape[1] not in (1, width):
            raise InputError(
                f"running_worker names {R} requests, running_work has shape {self.running_work.shape} and pause_cost "
                f"{self.pause_cost.size} entries; expected one row each, of {width} columns or one"
            )
        if (self.running_worker >= base.shape[0]).any():
            r = int(np.argmax(self.running_worker >= base.shape[0]))
            raise InputError(f"running_worker[{r}] is {self.running_worker[r]}; expected 0..{base.shape[0] - 1}")
        work = np.ascontiguousarray(np.broadcast_to(work, (R, width)))
        left = base.tolist()
        for r, g in enumerate(self.running_worker.tolist()):
            for h, tokens in enumerate(work[r].tolist()):
                left[g][h] -= tokens
                if left[g][h] < 0:
                    raise InputError(
                        f"running_work holds more at step {h} than the load {base[g, h]} of worker {g}; `base` has to "
                        "contain the running requests"
                    )
        work.flags.writeable = False
        return {"running_work": work}

    # ------------------------------------------------------------------ identity and files

    def arrays(self) -> Iterator[tuple[str, IntArray | BoolArray]]:
        """Yield name and values of each array that is given."""
        for name in (*_PER_WORKER, *_PER_REQUEST, *_PER_RUNNING, *_PAIRS):
            values = getattr(self, name)
            if values is not None:
                yield name, values

    def update(self, sha: Any) -> None:
        """Add the content to a hash."""
        for name, values in self.arrays():
            sha.update(f" {name} {values.shape} ".encode())
            sha.update(values.astype("<i8").tobytes())
        sha.update(f" admit {self.admit} overdue_first {self.overdue_first}".encode())

    def __eq__(self, other: object) -> bool:
        return self.to_dict() == other.to_dict() if isinstance(other, Conditions) else NotImplemented

    def __hash__(self) -> int:
        return hash(str(self.to_dict()))

    def __repr__(self) -> str:
        said = [name for name, _ in self.arrays()]
        overdue = ["overdue_first"] if self.overdue_first else []
        return f"Conditions({', '.join([*said, *overdue, f'admit={self.admit!r}'])})"

    def to_dict(self) -> dict[str, Any]:
        """Return what is given as plain lists."""
        written: dict[str, Any] = {name: (values * 1).tolist() for name, values in self.arrays()}
        if self.overdue_first:
            written["overdue_first"] = True
        return {**written, "admit": self.admit}

    @classmethod
    def from_dict(cls, data: Any) -> Conditions:
        """Rebuild conditions written by `to_dict`."""
        if not isinstance(data, dict):
            raise InputError(f"conditions is {shown(data)}; expected an object")
        known = (*_PER_WORKER, *_PER_REQUEST, *_PER_RUNNING, *_PAIRS, "overdue_first", "admit")
        unknown = [name for name in data if name not in known]
        if unknown:
            raise InputError(f"condition {shown(unknown[0])} is unknown; expected some of {', '.join(known)}")
        return cls(**data)


def in_blocks(tokens: Any, size: int = 16) -> IntArray:
    """Return the blocks that so many tokens fill, rounded up: int64, of the shape of `tokens`.

    Parameters
    ----------
    tokens
        int, (N,) or (G,): tokens.
    size
        Tokens of a block, at least 1; vLLM's default is 16.

    Examples
    --------
    >>> from lbopt.model import in_blocks
    >>> in_blocks([0, 1, 16, 17]).tolist()
    [0, 1, 1, 2]
    """
    blocks: IntArray = -(-integer_array("tokens", tokens, ndim=(1,)) // whole("size", size, 1))
    return blocks


def _refuse_large_sum(name: str, values: IntArray) -> None:
    total = sum(values.tolist())
    if total > 2**62:
        raise InputError(f"{name} adds up to {total}, beyond 2**62; divide all numbers by a common factor")
