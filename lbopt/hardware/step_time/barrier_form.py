"""The barrier form, to which every step-time law comes down for a given fleet, and the two laws that are nothing else.

    seconds = fixed + max_g (per_token * L_g + of_running[n_g] + per_expert * U_g)
              + per_mean_token * mean_g L_g + of_active[sum_g n_g]

L_g are the resident tokens of worker g, n_g its running requests, and U_g the different experts of a layer that they
use, where that is known. The maximum is the barrier: what a worker does
alone, and all wait for. What all do together is outside of it. The two tables hold whatever depends on how many
requests run: weights that are read once however many use them, arithmetic per request, the number of experts that a
batch wakes, the payload of a collective. They are empty where nothing does.

The compiled loop (`lbopt/kernels/simulation/step.py`) evaluates the same form; this is the readable twin.

Step time, affine in the heaviest load: all workers wait at the barrier for the one with most resident tokens.

    seconds = fixed_seconds + seconds_per_token * max_g L_g            (BF-IO, eq. 6)

The constants of the BF-IO experiments: t = 1.5 * 2 * 576 * 61e-6 / 2**20 s a token and C = (0.6 ms * B + 35 ms) / 16,
4.8875 ms at B = 72 (the authors' code; they reproduce every digit of their Table 1).

Step time with a mean term: what a worker does alone waits for the heaviest, the rest is proportional to the mean.

    seconds = fixed + alone * max_g L_g + together * mean_g L_g              (Li, The EP Barrier Tax, section 1)

The first term is attention over the worker's own tokens. The second stands for what all workers do together: expert
all-to-all, expert layers, reductions. In a balanced state balancing cannot touch together / (alone + together) of it:
0.23, 0.33 and 0.5 at ratios of 0.3, 0.5 and 1. The post takes alone = 1 and together = 0.5, in units of its own.

Step time by the number of experts that a batch wakes.

    seconds = other + max_g (per_request * n_g + per_token * L_g + layers * (layer_fixed + per_expert * U_g))

U_g is the number of distinct experts that the n_g requests of worker g use in a layer, the mean over its layers. A
layer reads the weights of each once, however many use them: on one MI300X a layer of Qwen3-30B-A3B takes 4.7 times
as long with 128 active experts as with 16, and its batch size barely moves it (ELDR, arXiv 2607.00466). So
(c0 + 128 c1) / (c0 + 16 c1) = 4.7, the fixed part is that of c0 / c1 = (128 - 4.7 * 16) / 3.7 = 14.27 experts, and c1
is the 9,437,184 B of an expert over 5.3 TB/s times the share of it that is reached: 2.54 us at 0.7.

Independent requests that choose k of E experts with probabilities p_e (of sum k) wake, in expectation,

    U(n) = sum_e (1 - (1 - p_e) ** n)        and        E * (1 - (1 - k/E) ** n)  where the gate is uniform.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lbopt.exceptions import InputError


def _nothing() -> NDArray[np.float64]:
    return np.zeros(0)


def require_seconds(law: Any, *names: str, of: str = "", unit: str = "") -> None:
    """Refuse a law one of whose named numbers is no finite number of zero or more."""
    for name in names:
        value = getattr(law, name)
        if not math.isfinite(value) or value < 0:
            raise InputError(f"{name}{of} is {value}{unit}; expected a finite number of zero or more")


@dataclass(frozen=True, slots=True, eq=False)
class BarrierForm:
    """Seconds of a step, ready to be evaluated.

    Parameters
    ----------
    fixed
        s, whatever the load is.
    per_token
        s per token of a worker's own load.
    per_mean_token
        s per token of the mean load of the workers.
    of_running
        float64 (B + 1,), s that a worker with n running requests spends on them, or empty.
    of_active
        float64 (G * B + 1,), s that the fleet spends together on n running requests, or empty.
    per_expert
        s per different expert of a layer that the requests of a worker use, mean over its layers.
    """

    fixed: float
    per_token: float
    per_mean_token: float = 0.0
    of_running: NDArray[np.float64] = field(default_factory=_nothing)
    of_active: NDArray[np.float64] = field(default_factory=_nothing)
    per_expert: float = 0.0

    def __post_init__(self) -> None:
        require_seconds(self, "fixed", "per_token", "per_mean_token", "per_expert", of=" of a step", unit=" s")
        for name in ("of_running", "of_active"):
            table = getattr(self, name)
            if table.ndim != 1 or not np.isfinite(table).all() or (table < 0).any():
                raise InputError(f"{name} of a step is not a table of finite seconds of zero or more")
        if not (
            self.fixed
            or self.per_token
            or self.per_mean_token
            or self.per_expert
            or self.of_running.any()
            or self.of_active.any()
        ):
            raise InputError("every part of the step time is 0 s: a step would take no time")

    def seconds(
        self, loads: NDArray[Any], running: NDArray[np.int64] | None = None, experts: NDArray[Any] | None = None
    ) -> NDArray[np.float64]:
        """Return the seconds of each step.

        Parameters
        ----------
        loads
            (..., G), resident tokens of every worker during the step.
        running
            int64 (..., G), running requests of every worker; may be left out where no table is in the form.
        experts
            (..., G), different experts of a layer that they use; may be left out where `per_expert` is 0.
        """
        own = self.per_token * loads
        together: Any = self.per_mean_token * loads.mean(axis=-1)
        if self.of_running.size or self.of_active.size:
            if running is None:
                raise InputError("this step time depends on the running requests, which were not given")
            if self.of_running.size:
                own = own + self.of_running[running]
            if self.of_active.size:
                together = together + self.of_active[running.sum(axis=-1)]
        if self.per_expert:
            if experts is None:
                raise InputError("this step time depends on the experts in use, which were not given")
            own = own + self.per_expert * experts
        total: NDArray[np.float64] = self.fixed + own.max(axis=-1) + together
        return total


BF_IO_SECONDS_PER_TOKEN = 1.5 * 2 * 576 * 61e-6 / 2**20


@dataclass(frozen=True, slots=True)
class AffineStepTime:
    """Seconds of a step as a function of the heaviest load in tokens."""

    fixed_seconds: float
    seconds_per_token: float

    def __post_init__(self) -> None:
        require_seconds(self, "fixed_seconds", "seconds_per_token")
        self.form(1, 1)  # refuses a step that takes no time

    @classmethod
    def of_bf_io_paper(cls, slots_per_worker: int) -> AffineStepTime:
        """Return the constants of the BF-IO experiments for B slots a worker."""
        return cls(
            fixed_seconds=(slots_per_worker * 0.6e-3 + 35e-3) / 16,
            seconds_per_token=BF_IO_SECONDS_PER_TOKEN,
        )

    @property
    def name(self) -> str:
        """As users name it."""
        return f"affine:fixed={self.fixed_seconds!r},per_token={self.seconds_per_token!r}"

    def form(self, num_workers: int, slots_per_worker: int) -> BarrierForm:
        """Return the same law for any fleet."""
        return BarrierForm(self.fixed_seconds, self.seconds_per_token)

    def describe(self) -> dict[str, Any]:
        """Return the law as plain data."""
        return {"kind": "affine", "fixed_seconds": self.fixed_seconds, "seconds_per_token": self.seconds_per_token}

    def seconds(self, heaviest_load: float) -> float:
        """Return the seconds of a step whose heaviest worker holds `heaviest_load` tokens."""
        return self.fixed_seconds + self.seconds_per_token * heaviest_load


@dataclass(frozen=True, slots=True)
class MeanTermStepTime:
    """Seconds of a step as a function of the heaviest and of the mean load in tokens."""

    seconds_per_token: float
    seconds_per_mean_token: float
    fixed_seconds: float = 0.0

    def __post_init__(self) -> None:
        require_seconds(self, "seconds_per_token", "seconds_per_mean_token", "fixed_seconds")
        self.form(1, 1)  # refuses a step that takes no time

    @property
    def name(self) -> str:
        """As users name it."""
        return (
            f"mean-term:per_token={self.seconds_per_token!r},per_mean_token={self.seconds_per_mean_token!r},"
            f"fixed={self.fixed_seconds!r}"
        )

    def form(self, num_workers: int, slots_per_worker: int) -> BarrierForm:
        """Return the same law for any fleet."""
        return BarrierForm(self.fixed_seconds, self.seconds_per_token, self.seconds_per_mean_token)

    def describe(self) -> dict[str, Any]:
        """Return the law as plain data."""
        return {
            "kind": "mean-term",
            "seconds_per_token": self.seconds_per_token,
            "seconds_per_mean_token": self.seconds_per_mean_token,
            "fixed_seconds": self.fixed_seconds,
        }


def expected_active(
    requests: ArrayLike, experts: int, per_token: int, gate: tuple[float, ...] | None = None
) -> NDArray[np.float64]:
    """Return the expected number of distinct experts that independent requests use in a layer.

    Parameters
    ----------
    requests
        Numbers of requests, any shape, zero or more; they need not be whole.
    experts, per_token
        E and k.
    gate
        E probabilities, of sum k, that a request uses each expert; without them all are k / E.
    """
    batch = np.asarray(requests, dtype=np.float64)
    if not 0 < per_token <= experts:
        raise InputError(f"experts per token is {per_token} of {experts} experts; expected 1 to {experts}")
    if gate is None:
        active: NDArray[np.float64] = experts * (1 - (1 - per_token / experts) ** batch)
        return active
    chances = np.asarray(gate, dtype=np.float64)
    if chances.shape != (experts,) or not ((chances >= 0) & (chances <= 1)).all():
        raise InputError(f"the gate has {chances.size} chances; expected {experts}, each from 0 to 1")
    if not math.isclose(chances.sum(), per_token, rel_tol=1e-6):
        raise InputError(f"the gate's chances sum to {chances.sum():g}; expected {per_token}, the experts of a token")
    total = np.zeros(batch.shape)
    for chance in chances:  # one expert at a time: a fleet's table times 256 experts would not fit
        total += 1 - (1 - chance) ** batch
    return total


def number_text(value: float) -> str:
    """Return the shortest text that is read back as the same number."""
    short = f"{value:g}"
    return short if float(short) == value else repr(float(value))


@dataclass(frozen=True, slots=True)
class ExpertStepTime:
    """Seconds of a step from requests, tokens and active experts, of workers that hold all experts themselves.

    Parameters
    ----------
    other_seconds
        s, outside of experts, requests and tokens.
    seconds_per_request, seconds_per_token
        s for each request, and for each token of the load, of a worker.
    layer_seconds, seconds_per_expert
        c0 and c1: s of a layer with experts, and for each active one.
    layers, experts, experts_per_token
        Of the model.
    gate
        As in `expected_active`.
    """

    other_seconds: float
    seconds_per_request: float
    seconds_per_token: float
    layer_seconds: float
    seconds_per_expert: float
    layers: int
    experts: int
    experts_per_token: int
    gate: tuple[float, ...] | None = None

    def __post_init__(self) -> None:
        require_seconds(
            self,
            *("other_seconds", "seconds_per_request", "seconds_per_token", "layer_seconds", "seconds_per_expert"),
        )
        if self.layers < 1:
            raise InputError(f"layers is {self.layers}; expected 1 or more")
        self.form(1, 1)  # refuses a step that takes no time, and experts or a gate that cannot be

    @classmethod
    def of_eldr(cls, efficiency: float = 0.7) -> ExpertStepTime:
        """Return the law of Qwen3-30B-A3B on an MI300X, calibrated as above; 6 ms and 50 us a request illustrate."""
        if not 0 < efficiency <= 1:
            raise InputError(f"the share of bandwidth reached is {efficiency}; expected above 0 and at most 1")
        rate = 5.3e12 * efficiency
        per_expert = 3 * 2048 * 768 * 2 / rate
        fixed = (128 - 4.7 * 16) / (4.7 - 1) * per_expert
        return cls(6e-3, 50e-6, 2 * 2 * 4 * 128 * 48 / rate, fixed, per_expert, 48, 128, 8)

    @property
    def name(self) -> str:
        """As users name it; a gate has no text."""
        reals = {
            "other": self.other_seconds,
            "per_request": self.seconds_per_request,
            "per_token": self.seconds_per_token,
            "layer": self.layer_seconds,
            "per_expert": self.seconds_per_expert,
        }
        text = ",".join(f"{option}={number_text(value)}" for option, value in reals.items())
        return f"experts:{text},layers={self.layers},experts={self.experts},chosen={self.experts_per_token}"

    def form(self, num_workers: int, slots_per_worker: int) -> BarrierForm:
        """Return the barrier form with the expected number of active experts of each batch."""
        batch = np.arange(slots_per_worker + 1)
        active = expected_active(batch, self.experts, self.experts_per_token, self.gate)
        return BarrierForm(self.other_seconds, self.seconds_per_token, of_running=self._of_requests(batch, active))

    def form_of_use(self, num_workers: int, slots_per_worker: int) -> BarrierForm:
        """Return the barrier form that gets the experts in use instead of their expectation."""
        batch = np.arange(slots_per_worker + 1)
        return BarrierForm(
            self.other_seconds,
            self.seconds_per_token,
            of_running=self._of_requests(batch, np.zeros(batch.shape)),
            per_expert=self.layers * self.seconds_per_expert,
        )

    def seconds(
        self, loads: NDArray[Any], running: NDArray[np.int64], active: NDArray[Any] | None = None
    ) -> NDArray[np.float64]:
        """Return the seconds of each step.

        Parameters
        ----------
        loads, running
            (..., G), resident tokens and running requests of every worker.
        active
            (..., G), distinct experts that the requests of a worker really use, mean over layers; left out, the
            expected number.
        """
        if active is None:
            active = expected_active(running, self.experts, self.experts_per_token, self.gate)
        if not loads.shape == running.shape == active.shape:
            raise InputError(
                f"loads, running requests and active experts have shapes {loads.shape}, {running.shape} and "
                f"{active.shape}; expected the same"
            )
        if not ((active >= 0) & (active <= self.experts)).all():
            raise InputError(f"active experts lie outside of 0 to {self.experts}, the experts of a layer")
        own = self.seconds_per_token * loads + self._of_requests(running, active)
        total: NDArray[np.float64] = self.other_seconds + own.max(axis=-1)
        return total

    def describe(self) -> dict[str, Any]:
        """Return the law as plain data."""
        fields = {name: getattr(self, name) for name in self.__slots__ if name != "gate"}
        return {"kind": "experts", **fields, "gate": None if self.gate is None else list(self.gate)}

    def _of_requests(self, running: NDArray[Any], active: NDArray[Any]) -> NDArray[np.float64]:
        of_layers = self.layers * (self.layer_seconds + self.seconds_per_expert * active)
        seconds: NDArray[np.float64] = self.seconds_per_request * running + np.where(running > 0, of_layers, 0.0)
        return seconds
