"""Steady states under conditions: the frozen classes on which the exact search under conditions is measured.

A class is a class of plain steady states and a recipe, which adds conditions to each of its problems by draws of its
own. The recipes are data, in `conditioned_sets.toml`, written down before anything was tuned; tuning used other seeds.
What a recipe states, each part optional:

`bound`
    share of the workers whose capacity binds: it is `room` (a range) times the mean waiting request for each free slot.
    The other workers have room for anything.
`blocks`
    needs and capacities are blocks of 16 tokens, and a request also reserves up to so many tokens for its output.
`limited`, `to`
    share of the requests that only a share `to` of the workers may take.
`slow`
    share of the workers that take 5/4 of the time for a token; they hold 4/5 of the tokens.
`prefixed`
    share of the requests of which one to three workers hold 10 to 90 % as a prefix.
`cost`
    a request costs up to so many tokens if it waits, and slots may stay empty.
`pausing`
    share of the workers that hold two requests which may pause, at a price.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from dataclasses import dataclass, fields
from functools import lru_cache
from importlib.resources import files
from typing import Any

import numpy as np

from lbopt.exceptions import InputError
from lbopt.model import Conditions, StepProblem, Trace, in_blocks
from tools.steady.state_sets import StateSet

_BLOCK = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """Which conditions a class adds; the parts are described above."""

    bound: float = 0.0
    room: tuple[float, float] = (0.5, 1.0)
    blocks: int = 0
    limited: float = 0.0
    to: float = 0.5
    slow: float = 0.0
    prefixed: float = 0.0
    cost: int = 0
    pausing: float = 0.0

    def under(self, problem: StepProblem, rng: np.random.Generator) -> StepProblem:
        """Return the problem with conditions drawn for it."""
        G, N = problem.num_workers, problem.num_requests
        sizes, base, slots = problem.work[:, 0], problem.base.copy(), problem.slots
        given: dict[str, Any] = {}
        if self.slow:
            pace = np.where(_chosen(rng, G, self.slow), 5, 4)
            base[pace == 5] = base[pace == 5] * 4 // 5
            given["pace"] = pace
        if self.bound:
            need = sizes if not self.blocks else in_blocks(sizes + rng.integers(0, self.blocks + 1, N))
            wide = int(need.max()) * int(slots.max())
            share = rng.uniform(*self.room, G)
            tight = np.maximum(1, (share * slots * need.mean()).astype(np.int64))
            given["capacity"] = np.where(_chosen(rng, G, self.bound), tight, wide)
            given["need"] = need
        if self.limited:
            allowed = np.ones((N, G), dtype=np.bool_)
            for i in np.flatnonzero(_chosen(rng, N, self.limited)):
                allowed[i] = _chosen(rng, G, self.to)
            given["allowed"] = allowed
        if self.prefixed:
            credit = np.zeros((N, G), dtype=np.int64)
            for i in np.flatnonzero(_chosen(rng, N, self.prefixed)):
                where = rng.choice(G, rng.integers(1, min(3, G) + 1), replace=False)
                credit[i, where] = (rng.uniform(0.1, 0.9) * sizes[i]).astype(np.int64)
            given["credit"] = credit
        if self.cost:
            given["waiting_cost"] = rng.integers(0, self.cost + 1, N)
            given["admit"] = "free"
        if self.pausing:
            where = np.repeat(np.flatnonzero(_chosen(rng, G, self.pausing)), 2)
            given["running_worker"] = where
            given["running_work"] = np.minimum(rng.choice(sizes, where.size), base[where, 0] // 3)
            given["pause_cost"] = rng.integers(0, 2000, where.size)
        plain = StepProblem(base=base, slots=slots, work=problem.work)
        return plain.under(Conditions(**given))


@dataclass(frozen=True, slots=True, kw_only=True)
class ConditionedSet:
    """One class of steady states under conditions: everything that is needed to draw it again."""

    states: StateSet
    recipe: Recipe

    @property
    def name(self) -> str:
        """What the class is called."""
        return self.states.name

    def problems(self, trace: Trace, count: int | None = None) -> Iterator[StepProblem]:
        """Yield the first `count` problems of the class (all by default), drawn from the records of `trace`."""
        rng = np.random.default_rng([self.states.seed, 1])
        for problem in self.states.problems(trace, count):
            yield self.recipe.under(problem, rng)


def _chosen(rng: np.random.Generator, count: int, share: float) -> np.ndarray:
    """Return which of `count` are in a share drawn at random, at least one: bool (count,)."""
    flags = np.zeros(count, dtype=np.bool_)
    flags[rng.permutation(count)[: max(1, round(share * count))]] = True
    return flags


def read_conditioned_sets() -> dict[str, ConditionedSet]:
    """Return the packaged classes by name."""
    table = _table()
    parts = {one.name for one in fields(Recipe)}
    found = {}
    for one in table["class"]:
        recipe: dict[str, Any] = {name: value for name, value in one.items() if name in parts}
        if "room" in recipe:
            recipe["room"] = tuple(recipe["room"])
        states = {name: value for name, value in one.items() if name not in parts}
        found[one["name"]] = ConditionedSet(states=StateSet(**{**table["common"], **states}), recipe=Recipe(**recipe))
    return found


def conditioned_set(name: str) -> ConditionedSet:
    """Return one class."""
    known = read_conditioned_sets()
    if name not in known:
        raise InputError(f"there is no class of states under conditions {name!r}; there are {', '.join(known)}")
    return known[name]


@lru_cache(maxsize=1)
def _table() -> dict[str, Any]:
    return tomllib.loads(files("tools.steady").joinpath("conditioned_sets.toml").read_text(encoding="utf-8"))
