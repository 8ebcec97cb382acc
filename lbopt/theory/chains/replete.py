"""Exact BF-IO (H = 0) with a replete pool: the optimum of one step, and the chain it makes, as arrays over steps.

See `lbopt.kernels.sampling.replete_chain` for the optimum, why it is one, and the order of a step.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lbopt.exceptions import InputError
from lbopt.kernels.arrays import records
from lbopt.theory.chains.batch_means import burn_in_steps, require_memory, slot_streams
from lbopt.theory.hypotheses import require
from lbopt.theory.laws.slot_law import PromptLaw

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


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class RepleteRun:
    """What a chain showed after its burn-in; arrays are (steps,), tokens unless said otherwise.

    Parameters
    ----------
    G, B, p
        Workers, slots of each, probability that a slot ends in a step.
    gap_before, gap_pre, gap
        D(k-1), D_pre(k), D(k): largest minus smallest load after the step before, before admission and after it.
    fewest, most
        min and max over workers of the free slots c_g(k), requests.
    imbalance
        Imb(k), after admission.
    envelope
        M(k-1): the largest size in a slot after growth.
    admitted, admitted_tokens
        Requests admitted, and the sum of their sizes.
    mean_square
        Mean over slots of the squared size after growth and before ends, tokens squared.
    heaviest
        Largest sum of these squares over the slots of one worker, tokens squared.
    """

    G: int
    B: int
    p: float
    gap_before: IntArray
    gap_pre: IntArray
    gap: IntArray
    fewest: IntArray
    most: IntArray
    imbalance: IntArray
    envelope: IntArray
    admitted: IntArray
    admitted_tokens: IntArray
    mean_square: NDArray[np.float64]
    heaviest: IntArray

    @property
    def mean_admitted(self) -> float:
        """Mean size of an admitted request, tokens."""
        return float(self.admitted_tokens.sum() / max(1, int(self.admitted.sum())))

    def regular(self, delta: float) -> NDArray[np.bool_]:
        """Return bool (steps,): the event E_k, every count of free slots within (1 +- delta) p B."""
        middle = self.p * self.B
        return np.asarray((self.fewest >= (1 - delta) * middle) & (self.most <= (1 + delta) * middle))


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
        "lowest" of the optimal loads; "raised": all loads higher while that costs nothing; "mean": so much higher that
        the mean admitted size is that of the pool's classes, where that costs nothing.
    """
    from lbopt.kernels.sampling.replete_chain import level_replete

    v, d, m = progression(law)
    before, free = np.asarray(loads, np.int64), np.asarray(slots, np.int64)
    load = np.empty_like(before)
    cost = level_replete(before, free, v, d, m, _place("peak", peak, PEAKS), np.empty(d, np.int64), load)
    return int(cost), load


def run_replete(
    G: int,
    B: int,
    p: float,
    law: PromptLaw,
    steps: int,
    burn_in: int | None,
    seed: int,
    delta: int | tuple[int, ...] = 1,
    *,
    composition: str = "even",
    peak: str = "lowest",
) -> RepleteRun:
    """Run the chain on the slot streams of `seed`.

    Parameters
    ----------
    G, B, p
        Workers, slots of each, probability that a slot ends in a step, 0 < p < 1.
    law
        Sizes in the pool, in equal steps; their shares do not matter, for a replete pool never lacks one.
    steps, burn_in
        Steps recorded, and steps before; None takes `burn_in_steps`.
    delta
        Growth of every size in a step, tokens; several values are used in turn.
    composition
        "even": the sizes of a worker's new requests differ by one rung at most; "extreme": as many of the largest
        as fit, one between, the rest the smallest.
    peak
        "lowest" of the optimal loads; "raised": all loads higher while that costs nothing; "mean": so much higher that
        the mean admitted size is that of the pool's classes, where that costs nothing.
    """
    from lbopt.kernels.sampling.replete_chain import STEP, replete_chain

    growth = np.array([delta] if isinstance(delta, int) else delta, np.int64)
    if not 0 < p < 1:
        raise InputError(f"p is {p}; the chain needs 0 < p < 1")
    before = burn_in_steps(G, B, p) if burn_in is None else burn_in
    if G < 1 or B < 1 or steps < 1 or before < 1:
        raise InputError(f"G = {G}, B = {B}, steps = {steps}, burn_in = {before}; each must be at least 1")
    if growth.size == 0 or growth.min() < 0:
        raise InputError(f"delta is {delta}; growth is 0 tokens a step or more")
    v, d, m = progression(law)
    extreme, peaks = _place("composition", composition, COMPOSITIONS) == 1, _place("peak", peak, PEAKS)
    require_memory(G * B * _BYTES_PER_SLOT, f"a chain of G = {G} workers with B = {B} slots")
    require_memory(steps * _BYTES_PER_STEP, f"a chain of {steps:,} steps", "fewer steps or batches, or a larger p")
    kept, square = records(steps, STEP), np.empty(steps, np.float64)
    streams = slot_streams(seed, G, B)
    replete_chain(streams, math.log1p(-p), growth, v, d, m, extreme, peaks, before, kept, square)
    return RepleteRun(
        G=G,
        B=B,
        p=p,
        gap_before=kept.gap_before,
        gap_pre=kept.gap_pre,
        gap=kept.gap,
        fewest=kept.fewest,
        most=kept.most,
        imbalance=kept.imbalance,
        envelope=kept.envelope,
        admitted=kept.admitted,
        admitted_tokens=kept.admitted_tokens,
        mean_square=square,
        heaviest=kept.heaviest,
    )


def _place(name: str, value: str, known: tuple[str, ...]) -> int:
    """Return which of the ways was asked for, from 0; that of a peak is the kernel's number of it."""
    if value not in known:
        raise InputError(f"{name} is '{value}'; expected one of {', '.join(known)}")
    return known.index(value)


def require_pool(claim: str, pool: str) -> None:
    """Refuse a pool whose optimum has no closed form here."""
    require(claim, pool in POOLS, "a replete pool of 'all' sizes or of 'two'", f"pool is '{pool}'")
