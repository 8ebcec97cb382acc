"""Exact BF-IO (H = 0) with a replete pool: the optimum of one step, and the chain it makes, as arrays over steps.

See `lbopt.kernels.sampling.replete_chain` for the optimum, why it is one, and the order of a step.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lbopt.exceptions import InputError
from lbopt.kernels.arrays import Records, record, records
from lbopt.theory.chains.batch_means import burn_in_steps, require_memory, slot_streams
from lbopt.theory.laws.slot_law import Growth, PromptLaw

IntArray = NDArray[np.int64]

#: Which sizes a replete pool holds: all up to s_max, or 1 and s_max alone.
POOLS = {"all": PromptLaw.uniform, "two": PromptLaw.two_sizes}

#: How a worker's sum is made up of sizes, and which of the optimal levels is taken; the default is the first.
#: "mean" is the level at which the mean admitted size is that of the pool's classes, as under a rule without selection.
COMPOSITIONS = ("even", "extreme")
PEAKS = ("lowest", "raised", "mean")

#: Stream, size, steps left, draws and free slots: five words a slot.
_BYTES_PER_SLOT = 40

#: Ten numbers of the record and the mean square: eleven words a step.
_BYTES_PER_STEP = 88


@dataclass(frozen=True, slots=True)
class Replete:
    """A chain of G workers under the exact rule, whose pool never lacks a size.

    Parameters
    ----------
    G
        Workers.
    B
        Slots of a worker.
    p
        Probability that a slot ends in a step, 0 < p < 1.
    law
        Sizes in the pool, in equal steps; their shares do not matter.
    growth
        Growth of every size in a step, tokens; several values are used in turn.
    composition
        "even": the sizes of a worker's new requests differ by one rung at most; "extreme": as many of the largest
        as fit, one between, the rest the smallest.
    peak
        "lowest" of the optimal loads; "raised": all loads higher while that costs nothing; "mean": so much higher that
        the mean admitted size is that of the pool's classes, where that costs nothing.
    """

    G: int
    B: int
    p: float
    law: PromptLaw
    growth: tuple[int, ...] = (1,)
    composition: str = "even"
    peak: str = "lowest"

    def grown_by(self, growth: Growth) -> Replete:
        """Return the chain whose sizes grow so; its sizes are in parts of a token, `growth.unit` of which are one."""
        finer = PromptLaw(tuple(growth.unit * size for size in self.law.lengths), self.law.weights, self.law.name)
        return replace(self, law=finer, growth=tuple(int(part * growth.unit) for part in growth.cycle))

    def run(self, steps: int, seed: int, burn_in: int | None = None) -> RepleteRun:
        """Run the chain on the slot streams of `seed`.

        Parameters
        ----------
        burn_in
            Steps before those that are recorded; None takes `burn_in_steps`.
        """
        from lbopt.kernels.sampling.replete_chain import STEP, replete_chain

        G, B, p, growth = self.G, self.B, self.p, np.array(self.growth, np.int64)
        if not 0 < p < 1:
            raise InputError(f"p is {p}; the chain needs 0 < p < 1")
        before = burn_in_steps(G, B, p) if burn_in is None else burn_in
        if G < 1 or B < 1 or steps < 1 or before < 1:
            raise InputError(f"G = {G}, B = {B}, steps = {steps}, burn_in = {before}; each must be at least 1")
        if growth.size == 0 or growth.min() < 0:
            raise InputError(f"growth is {self.growth}; expected 0 tokens a step or more")
        rule = _rule(self.law, self.peak, self.composition)
        require_memory(G * B * _BYTES_PER_SLOT, f"a chain of G = {G} workers with B = {B} slots")
        require_memory(steps * _BYTES_PER_STEP, f"a chain of {steps:,} steps", "fewer steps or batches, or a larger p")
        kept, square = records(steps, STEP), np.empty(steps, np.float64)
        replete_chain(slot_streams(seed, G, B), math.log1p(-p), growth, rule, before, kept, square)
        return RepleteRun(self, kept, square)


@dataclass(frozen=True, slots=True, eq=False)
class RepleteRun:
    """What a chain showed after its burn-in.

    Parameters
    ----------
    of
        The chain.
    steps
        `STEP` of the kernel, (steps,): D(k-1), D_pre(k) and D(k) are `gap_before`, `gap_pre` and `gap`, the free slots
        c_g(k) lie between `fewest` and `most`, M(k-1) is `envelope`.
    mean_square
        float64 (steps,): mean over slots of the squared size after growth and before ends, tokens squared.
    """

    of: Replete
    steps: Records
    mean_square: NDArray[np.float64]

    @property
    def mean_admitted(self) -> float:
        """Mean size of an admitted request, tokens."""
        return float(self.steps.admitted_tokens.sum() / max(1, int(self.steps.admitted.sum())))

    def regular(self, delta: float) -> NDArray[np.bool_]:
        """Return bool (steps,): the event E_k, every count of free slots within (1 +- delta) p B."""
        middle = self.of.p * self.of.B
        return np.asarray((self.steps.fewest >= (1 - delta) * middle) & (self.steps.most <= (1 + delta) * middle))


def progression(law: PromptLaw) -> tuple[int, int, int]:
    """Return smallest size v, rung d and number of rungs m of a law on v, v + d, ..., v + m d; an InputError else."""
    v, m = law.lengths[0], len(law.lengths) - 1
    d = law.lengths[1] - v if m else 1
    if law.lengths != tuple(range(v, v + m * d + 1, d)):
        raise InputError(
            f"the exact optimum of a replete pool needs sizes in equal steps; the prompt law has {law.lengths}: "
            "take PromptLaw.uniform or PromptLaw.two_sizes"
        )
    return v, d, m


def level(loads: Any, slots: Any, law: PromptLaw, *, peak: str = "lowest") -> tuple[int, IntArray]:
    """Return the least imbalance of one step and int64 (G,) loads after admission, for a pool replete of `law`.

    Parameters
    ----------
    loads
        int, (G,): tokens before admission.
    slots
        int, (G,): free slots.
    peak
        As of `Replete`.
    """
    from lbopt.kernels.sampling.replete_chain import level_replete

    before, free, rule = np.asarray(loads, np.int64), np.asarray(slots, np.int64), _rule(law, peak)
    load = np.empty_like(before)
    return int(level_replete(before, free, rule, np.empty(rule.rung, np.int64), load)), load


def _rule(law: PromptLaw, peak: str, composition: str = "even") -> Any:
    """Return the kernel's `RULE` of the optimum that is taken."""
    from lbopt.kernels.sampling.replete_chain import RULE

    rule = record(RULE)
    rule.smallest, rule.rung, rule.rungs = progression(law)
    rule.peaks = _place("peak", peak, PEAKS)
    rule.extreme = _place("composition", composition, COMPOSITIONS)
    return rule


def _place(name: str, value: str, known: tuple[str, ...]) -> int:
    """Return which of the ways was asked for, from 0; that of a peak is the kernel's number of it."""
    if value not in known:
        raise InputError(f"{name} is '{value}'; expected one of {', '.join(known)}")
    return known.index(value)
