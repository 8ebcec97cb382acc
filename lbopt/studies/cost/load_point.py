"""A load point: what a router makes of the fleet's load, in the few means that a price needs.

A step-time law is affine in the heaviest and in the mean load while the number of running requests hardly moves, so
the mean step and what is waited in it follow from their means: the distribution of loads adds nothing.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from lbopt.exceptions import InputError
from lbopt.kinds import whole
from lbopt.statistics import standard_error, student_quantile

#: Label of the same work perfectly level.
LEVEL = "perfectly level"

#: Label of loads that were given as numbers.
GIVEN = "as given"

#: Label of a router whose next decision is an optimal one.
NEXT_STEP = "best next step"

#: Metrics of a run that a load point is made from.
NEEDED = (
    "imbalance_tokens",
    "mean_load_tokens",
    "occupancy",
    "waiting_max_steps",
)
_ABOVE_ZERO = ("occupancy",)

#: Tables of a step-time law have an entry a running request of the fleet; more than these are a slip of the hand.
MOST_RUNNING = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadPoint:
    """What one router makes of a fleet.

    Parameters
    ----------
    label
        The router, or what takes its place.
    num_workers, slots_per_worker
        G and B.
    max_load, max_load_error
        Mean over steps of the heaviest load, tokens, and its standard error (0 where it is exact or unknown).
    shared_error
        Standard error that it shares with the first point of its study, because it is computed from that one.
    mean_load
        Mean over steps and workers, tokens.
    running
        Running requests per worker, mean.
    longest_wait
        Steps that a request waited at most, where that is known: balance can be bought with it.
    """

    label: str
    num_workers: int
    slots_per_worker: int
    max_load: float
    mean_load: float
    running: float
    max_load_error: float = 0.0
    shared_error: float = 0.0
    longest_wait: int | None = None

    def __post_init__(self) -> None:
        if self.num_workers < 1 or self.slots_per_worker < 1:
            raise InputError(
                f"a fleet of {self.num_workers} workers with {self.slots_per_worker} slots; expected at least 1 of both"
            )
        if self.num_workers * self.slots_per_worker > MOST_RUNNING:
            raise InputError(
                f"a fleet of {self.num_workers:,} workers with {self.slots_per_worker:,} slots runs up to "
                f"{self.num_workers * self.slots_per_worker:,} requests; expected at most {MOST_RUNNING:,}"
            )
        for name, least in (
            ("max_load", 0.0),
            ("mean_load", 0.0),
            ("running", 0.0),
            ("max_load_error", 0.0),
            ("shared_error", 0.0),
        ):
            value = getattr(self, name)
            if not math.isfinite(value) or value < least:
                raise InputError(f"{name.replace('_', ' ')} is {value:g}; expected a finite number of zero or more")
        if self.max_load < self.mean_load * (1 - 1e-12):
            raise InputError(f"the heaviest load, {self.max_load:g}, is below the mean load, {self.mean_load:g}")
        if not 0 < self.running <= self.slots_per_worker:
            raise InputError(
                f"running requests a worker are {self.running:g}; expected more than 0 and at most the "
                f"{self.slots_per_worker} slots"
            )

    @property
    def imbalance(self) -> float:
        """G * max L - sum L, tokens."""
        return self.num_workers * (self.max_load - self.mean_load)

    def balanced(self, label: str) -> LoadPoint:
        """Return the same work perfectly level: what no router can beat at this mean load."""
        return replace(
            self,
            label=label,
            max_load=self.mean_load,
            max_load_error=0.0,
            shared_error=0.0,
            longest_wait=None,
        )

    def at_work_of(self, today: LoadPoint) -> LoadPoint:
        """Return the same imbalance over the mean load and running requests of another point.

        Where requests arrive by a clock, a router with shorter steps has fewer of them running at once. That is no less
        work: tokens a second are what arrives, and only the step compares.
        """
        return replace(
            self,
            mean_load=today.mean_load,
            running=today.running,
            max_load=today.mean_load + self.max_load - self.mean_load,
        )

    def with_imbalance(self, imbalance: float, label: str) -> LoadPoint:
        """Return the same work at another imbalance, tokens; the error is this point's."""
        return replace(
            self,
            label=label,
            max_load=self.mean_load + imbalance / self.num_workers,
            max_load_error=0.0,
            shared_error=self.max_load_error,
            longest_wait=None,
        )

    @classmethod
    def of_loads(cls, loads: Sequence[float], running: float, slots: int | None = None) -> LoadPoint:
        """Return the point of one step with these loads, tokens a worker."""
        values = np.asarray(loads, dtype=np.float64)
        if values.size < 1:
            raise InputError("no loads were given; expected one number of tokens a worker, such as 100000,80000")
        if not np.isfinite(values).all() or (values < 0).any():
            raise InputError(f"loads hold {values[~(values >= 0)][0]:g}; expected tokens of zero or more")
        return cls(
            label=GIVEN,
            num_workers=values.size,
            slots_per_worker=slots or _slots_for(running),
            max_load=float(values.max()),
            mean_load=float(values.mean()),
            running=running,
        )

    @classmethod
    def of_means(
        cls, mean_load: float, imbalance: float, workers: int, running: float, slots: int | None = None
    ) -> LoadPoint:
        """Return the point of a mean load and a mean imbalance G * max L - sum L, both in tokens.

        Parameters
        ----------
        mean_load, imbalance
            Mean load of a worker and imbalance of the fleet, tokens.
        workers
            Number of workers.
        running
            Running requests of a worker.
        slots
            Slots of a worker; None where that is not known.
        """
        if imbalance < 0 or not math.isfinite(imbalance):
            raise InputError(f"imbalance is {imbalance:g}; expected tokens of zero or more")
        if workers < 1:
            raise InputError(f"workers are {workers}; expected at least 1")
        return cls(
            label=GIVEN,
            num_workers=workers,
            slots_per_worker=slots or _slots_for(running),
            max_load=mean_load + imbalance / workers,
            mean_load=mean_load,
            running=running,
        )

    @classmethod
    def of_metrics(cls, label: str, runs: Sequence[Mapping[str, Any]], workers: int, slots: int) -> LoadPoint:
        """Return the point of one router from the metrics of its runs, one a seed.

        Parameters
        ----------
        label
            The router.
        runs
            `Metrics.to_dict()` of each. The error of their mean is the larger of that over seeds and that of batches.
        workers, slots
            G and B.
        """

        for count, of in ((workers, "workers"), (slots, "slots")):
            whole(f"{label}: {of}", count, 1)
        for run in runs:
            _check(label, run)

        def mean(name: str) -> float:
            return float(np.mean([float(run[name]) for run in runs]))

        imbalance = np.array([float(run["imbalance_tokens"]) for run in runs])
        within = math.sqrt(float(np.mean([_batch_error(run) ** 2 for run in runs])) / len(runs))
        between = standard_error(imbalance) if len(runs) > 1 else 0.0
        error = max(within, between)  # two or three seeds may lie close together by chance
        return cls(
            label=label,
            num_workers=workers,
            slots_per_worker=slots,
            max_load=mean("mean_load_tokens") + float(imbalance.mean()) / workers,
            max_load_error=error / workers,
            mean_load=mean("mean_load_tokens"),
            running=mean("occupancy") * slots,
            longest_wait=max(int(run["waiting_max_steps"]) for run in runs),
        )


def _check(label: str, run: Mapping[str, Any]) -> None:
    """Refuse figures that no run has, before anything is divided by one."""
    for name in NEEDED:
        value = float(run[name])
        if not 0 <= value < math.inf or (value == 0 and name in _ABOVE_ZERO):
            least = "above zero" if name in _ABOVE_ZERO else "of zero or more"
            raise InputError(f"{label}: {name} is {value:g}; expected a finite number {least}")


def _slots_for(running: float) -> int:
    """Return the fewest slots that hold so many requests."""
    if not math.isfinite(running) or running <= 0:
        raise InputError(f"running requests a worker are {running:g}; expected a finite number above zero")
    return math.ceil(running)


def _batch_error(run: Mapping[str, Any]) -> float:
    """Return the standard error of a run's imbalance from its interval, which is Student's over its batches."""
    interval = run.get("imbalance_tokens_interval")
    if interval is None:
        return 0.0
    from lbopt.simulator.metrics import NUM_BATCHES  # compiled code comes with it, which plain numbers do not need

    low, high = interval
    half = (float(high) - float(low)) / 2
    return half / student_quantile(NUM_BATCHES - 1)
