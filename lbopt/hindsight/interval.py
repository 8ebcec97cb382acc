"""How far a run was from the best that was possible: intervals of the clairvoyant optimum.

The clairvoyant optimum of a timetable is the least sum of barriers over all placements of its requests
(`lbopt.hindsight.timetable`). It lies between two numbers:

- from above, the sum of a placement that was found and counted,
- from below, the sum over the steps of what no placement of a step can be below (`least_barriers`); in a small run the
  word of an exhaustive search or the claim of a solver (`narrowed`); or a better bound that is handed in.

What is linear in the barriers follows: the imbalance, sum_k (G max_g L_g(k) - sum_g L_g(k)), and the seconds of all
steps under a law. Let R be a rule's seconds and [l, u] the interval of the optimum. The competitive ratio of the rule
on this run, R / optimum, lies in [R / u, R / l]. In imbalance the ratio is unbounded where the lower end is 0; then the
difference says how far the rule is from the optimum.

The optimum is that of the timetable: the same requests start in the same steps, and only the workers are
chosen. What a rule could gain by admitting otherwise is bounded by the ceilings (`lbopt.simulator.ceiling`).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lbopt.exceptions import InputError
from lbopt.hardware import BarrierForm
from lbopt.hindsight.local_search import Placed, least_barriers, place_in_hindsight
from lbopt.hindsight.optimum import HindsightResult, optimum
from lbopt.hindsight.timetable import IntArray, Timetable

#: Slots of a worker, and requests of a run, up to which the exact search is asked.
MOST_SLOTS, MOST_REQUESTS = 4, 100

#: How the placement is named that the exact search ends with.
EXACT = "exact search"

#: Seconds are sums of floats: an end is moved outwards by this share, which is more than the sums lose.
_ROUNDING = 1e-12


@dataclass(frozen=True, slots=True)
class Ends:
    """The two ends of an interval that holds an unknown number."""

    low: float
    high: float

    def over(self, value: float) -> Ends:
        """Return the interval of `value` divided by the number; the high end is infinite where the low one is 0."""
        ends = [value / end if end > 0 else (math.inf if value > 0 else 1.0) for end in (self.high, self.low)]
        return Ends(*ends)

    def to_list(self) -> list[float | None]:
        """Return both ends as plain data; None stands for an infinite one."""
        return [end if math.isfinite(end) else None for end in (self.low, self.high)]


@dataclass(frozen=True, slots=True, eq=False)
class ClairvoyantInterval:
    """The optimum of a timetable, between two certified ends.

    Parameters
    ----------
    timetable
        The problem.
    lower
        int64 (K,), what the barrier of each step cannot be below, tokens.
    lower_sum
        What the sum of the barriers cannot be below, tokens; at least the sum of `lower`.
    placed
        The placement whose barriers are the upper end.
    form
        The law by which steps take seconds.
    proof
        Where `lower_sum` comes from: "elementary-bound" (single steps), "search" or "claimed:" and a solver, as in
        `HindsightResult`, or "given".
    """

    timetable: Timetable
    lower: IntArray
    lower_sum: int
    placed: Placed
    form: BarrierForm
    proof: str = "elementary-bound"

    @property
    def is_closed(self) -> bool:
        """Whether both ends are one number."""
        return self.lower_sum == self.placed.barriers

    @property
    def is_proved(self) -> bool:
        """Whether no placement has a smaller sum of barriers than `placed`, by what lbopt itself has found out."""
        return self.is_closed and not self.proof.startswith("claimed")

    @property
    def said(self) -> str:
        """How sure the optimum is: "checked", "by the search", "claimed by" and a solver, or "open"."""
        if not self.is_closed:
            return "open"
        known = {"elementary-bound": "checked", "search": "by the search", "given": "by the bound given"}
        return known.get(self.proof) or f"claimed by {self.proof.partition(':')[2]}"

    @property
    def barriers(self) -> Ends:
        """Ends of the least sum of barriers, whole tokens."""
        return Ends(self.lower_sum, self.placed.barriers)

    @property
    def imbalance(self) -> Ends:
        """Ends of the least sum of imbalances over all steps, whole tokens."""
        workers, total = self.timetable.num_workers, int(self.timetable.totals().sum())
        return Ends(workers * self.lower_sum - total, workers * self.placed.barriers - total)

    @property
    def seconds(self) -> Ends:
        """Ends of the least seconds of all steps in which something runs.

        The upper end is the seconds of a placement: of the one with the least barriers, which need not have the least
        seconds where the law also goes by the number of requests on a worker.
        """
        low = least_seconds(self.timetable, self.form, self.lower)
        low += self.form.per_token * (self.lower_sum - int(self.lower.sum())) * (1 - _ROUNDING)
        return Ends(low, seconds_of(self.timetable, self.form, self.placed.worker) * (1 + _ROUNDING))

    def to_dict(self) -> dict[str, Any]:
        """Return both ends of all figures, and what found them."""
        return {
            "num_requests": self.timetable.num_requests,
            "num_steps": self.timetable.num_steps,
            "barriers": self.barriers.to_list(),
            "imbalance": self.imbalance.to_list(),
            "seconds": self.seconds.to_list(),
            "found_by": self.placed.found_by,
            "tried": self.placed.tried,
            "complete": self.placed.complete,
            "proved": self.is_proved,
            "optimum": self.said,
        }


def clairvoyant_interval(
    timetable: Timetable,
    form: BarrierForm,
    known: Mapping[str, IntArray] | None = None,
    *,
    lower_bound: int = 0,
    effort: int = 20,
    time_limit: float | None = None,
    seed: int = 0,
) -> ClairvoyantInterval:
    """Return an interval that holds the clairvoyant optimum of a timetable.

    Parameters
    ----------
    form
        The law by which steps take seconds.
    known
        Placements by the names of the rules that made them.
    lower_bound
        A bound of the sum of the barriers from elsewhere, tokens; it counts where it is above that of single steps.
    effort, time_limit, seed
        Of the search for a placement, see `place_in_hindsight`.

    Raises
    ------
    InputError
        If the law goes by experts, or the bound is above a placement, so that one of the two is wrong.
    """
    if form.per_expert:
        raise InputError(
            "this step time goes by the experts in use, which hindsight does not place; choose another law"
        )
    lower = least_barriers(timetable)
    placed = place_in_hindsight(timetable, known, effort=effort, time_limit=time_limit, seed=seed)
    least = max(lower_bound, int(lower.sum()))
    if least > placed.barriers:
        raise InputError(f"lower_bound is {lower_bound}, above a placement with barriers of {placed.barriers} in sum")
    return ClairvoyantInterval(
        timetable, lower, least, placed, form, "given" if least > lower.sum() else "elementary-bound"
    )


def is_small(timetable: Timetable) -> bool:
    """Return whether the exact search is asked about a run."""
    return timetable.slots_per_worker <= MOST_SLOTS and timetable.num_requests <= MOST_REQUESTS


def narrowed(interval: ClairvoyantInterval, time_limit: float, *, seed: int = 0) -> ClairvoyantInterval:
    """Return the interval of a small run, joined with what the exact search finds; that of a larger run as it is.

    Ctrl-C ends the search; what it has found is joined as well, and the placement says that it was interrupted.

    Parameters
    ----------
    time_limit
        Seconds of the exact search, those of compiling left out. Without any nothing is searched.
    """
    if interval.is_closed or not is_small(interval.timetable):
        return interval
    if time_limit <= 0:
        return replace(interval, placed=replace(interval.placed, complete=False))
    return joined(interval, optimum(interval.timetable, time_limit, seed=seed, known=interval.placed.worker))


def joined(interval: ClairvoyantInterval, result: HindsightResult) -> ClairvoyantInterval:
    """Return the interval with the better placement and the larger lower bound of two answers about one timetable."""
    placed, lower, proof = interval.placed, interval.lower_sum, interval.proof
    if result.upper < placed.barriers:
        placed = replace(placed, worker=result.worker, barriers=result.upper, found_by=EXACT)
    if result.lower > lower:
        lower, proof = result.lower, result.proof
    placed = replace(
        placed,
        tried=placed.tried | {EXACT: result.upper},
        # An optimum is the same on every machine; how far another answer gets depends on the time.
        complete=lower == placed.barriers,
        interrupted=placed.interrupted or result.stop == "interrupted",
    )
    return replace(interval, lower_sum=lower, placed=placed, proof=proof)


def seconds_of(timetable: Timetable, form: BarrierForm, worker: IntArray) -> float:
    """Return the seconds of all steps in which something runs.

    Parameters
    ----------
    timetable, form
        Requests with their steps, and the law.
    worker
        int64 (N,), the placement.
    """
    held = timetable.held(worker)[:-1]
    busy = held.any(axis=1)
    return math.fsum(form.seconds(timetable.loads(worker)[busy], held[busy]))


def least_seconds(timetable: Timetable, form: BarrierForm, barriers: IntArray) -> float:
    """Return what the seconds of all steps cannot be below if no barrier is below its bound.

    Of n requests on G workers some worker runs c = ceil(n / G) or more. So the own part of a step, max over workers of
    t L + r(n), is at least t M + min_{n >= 1} r(n), with M the bound of the barrier, and at least min_{n >= c} r(n).

    Parameters
    ----------
    timetable, form
        Requests with their steps, and the law.
    barriers
        (K,), tokens.
    """
    running, totals = timetable.running(), timetable.totals()
    busy = running > 0
    own: NDArray[np.float64] = form.per_token * barriers[busy].astype(np.float64)
    if form.of_running.size:
        least_from = np.minimum.accumulate(form.of_running[::-1])[::-1]
        share = -(-running[busy] // timetable.num_workers)
        own = np.maximum(own + least_from[min(1, least_from.size - 1)], least_from[share])
    seconds = form.fixed + own + form.per_mean_token * totals[busy] / timetable.num_workers
    if form.of_active.size:
        seconds = seconds + form.of_active[running[busy]]
    return math.fsum(seconds) * (1 - _ROUNDING)
