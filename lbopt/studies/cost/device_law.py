"""Step-time laws of a device with its constants drawn, and how many devices a worker needs.

The mean step of a load point under a step-time law whose constants are drawn many times over.

The tables of the barrier form are read between their entries, because the mean number of running requests is no whole
number.

What today's price hangs on: one group of constants at a time at its 5 and 95 % ends, all others nominal.

Constants of the calibrated law are taken in groups that a reader knows: what the engine does beside bytes and
arithmetic, memory, arithmetic, experts, messages, and the effects of the engine's own run. The logarithm of the step is
taken as linear in them, so a group moves it by 1.645 standard deviations of g'x, where g are the slopes of the group's
constants and x is normal with their covariance under what is believed. The effects of a run of which no row is known
have Student's law, and move it by that law's quantile.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from lbopt.exceptions import InputError
from lbopt.hardware import BarrierForm, make_step_time
from lbopt.hardware.calibrated import PARAMETERS, Posterior, StepFeatures, shipped_posterior, step_parts, update
from lbopt.hardware.calibrated.read_rows import read_measured_rows
from lbopt.hardware.cards import Calibration, DeviceCard, ModelCard, calibration_of, device_card, model_card
from lbopt.hardware.price import SPIN
from lbopt.hardware.quantity import Quantity
from lbopt.hardware.step_time import Formats, RooflineStepTime
from lbopt.hardware.step_time.step_work import DecodeStep
from lbopt.studies.cost.audited_law import AuditedLaw, is_audit, read_audited_law
from lbopt.studies.cost.config import CostConfig
from lbopt.studies.cost.load_point import LoadPoint
from lbopt.studies.cost.memory import MemoryNeed
from lbopt.studies.cost.outcome import Sensitivity

Values = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class DrawnStep:
    """Seconds of a mean step, part by part; float64 (D,), one entry a draw of the constants.

    Parameters
    ----------
    seconds
        s, duration.
    waited_seconds
        s of it that the mean worker waits at the barrier.
    """

    seconds: Values
    waited_seconds: Values


@dataclass(frozen=True, slots=True, eq=False)
class DrawnForm:
    """The barrier form for a fleet and a number of running requests, float64 (D,) each.

    Parameters
    ----------
    level
        s, what no load changes: the fixed part and what the running requests cost.
    per_token, per_mean_token
        s per token of the heaviest, and of the mean load.
    """

    level: Values
    per_token: Values
    per_mean_token: Values

    @classmethod
    def of(cls, forms: Iterable[BarrierForm], num_workers: int, running: float) -> DrawnForm:
        """Return the forms, one a draw, at `running` requests a worker; each is let go before the next is made."""
        parts = np.array(
            [
                (
                    form.fixed + _between(form.of_running, running) + _between(form.of_active, running * num_workers),
                    form.per_token,
                    form.per_mean_token,
                )
                for form in forms
            ]
        )
        return cls(level=parts[:, 0], per_token=parts[:, 1], per_mean_token=parts[:, 2])

    @classmethod
    def of_entries(cls, forms: Iterable[BarrierForm]) -> DrawnForm:
        """Return forms whose tables hold nothing but the entry of the running requests that are asked for."""
        parts = [(f.fixed + f.of_running.sum() + f.of_active.sum(), f.per_token, f.per_mean_token) for f in forms]
        level, per_token, per_mean_token = np.array(parts).T
        return cls(level=level, per_token=per_token, per_mean_token=per_mean_token)

    def step(self, point: LoadPoint, own: Values, shared: Values) -> DrawnStep:
        """Return the mean step at `point`.

        Parameters
        ----------
        own, shared
            float64 (D,), standard errors that its heaviest load is off, by itself and as that of the first point is.
        """
        off = point.max_load_error * own + point.shared_error * shared
        heaviest = np.maximum(point.max_load + off, point.mean_load)
        waited = self.per_token * (heaviest - point.mean_load)
        together = (self.per_token + self.per_mean_token) * point.mean_load
        return DrawnStep(seconds=self.level + together + waited, waited_seconds=waited)


def _between(table: Values, at: float) -> float:
    return float(np.interp(at, np.arange(table.size), table)) if table.size else 0.0


CALIBRATED, PUBLISHED, SIMULATED, AUDITED = "calibrated", "published slope", "as simulated", "as audited"
_HOT = next(place for place, parameter in enumerate(PARAMETERS) if parameter.name == "hot")


@lru_cache(maxsize=1)
def _known() -> Posterior:
    return shipped_posterior()


@dataclass(frozen=True)
class DeviceDraws:
    """One device with every constant drawn; the first entry of each array holds the nominal value."""

    config: CostConfig
    card: DeviceCard
    model: ModelCard
    named: str
    simulated: str | None = None

    @classmethod
    def of(cls, config: CostConfig, device: str, simulated: str | None = None) -> DeviceDraws:
        """Return the draws of a device for a study; `simulated` is the law that the loads were simulated with."""
        return cls(config, device_card(device), model_card(config.model), device, simulated)

    def of_quantity(self, name: str, quantity: Quantity) -> Values:
        """Return D + 1 values; the same constant of the same card is drawn alike in every study of one seed."""
        rng = np.random.default_rng([self.config.seed, zlib.crc32(f"{self.card.name} {name}".encode())])
        return np.concatenate([[quantity.value], quantity.quantiles(rng.random(self.config.draws))])

    def of_constant(self, name: str) -> Values:
        """Return draws of a constant of the card, NaN where it has none."""
        if name not in self.card.constants:
            return np.full(self.config.draws + 1, np.nan)
        return self.of_quantity(name, self.card[name])

    @property
    def rental(self) -> Values:
        """USD an hour and device."""
        if self.config.rental is not None:
            return np.full(self.config.draws + 1, float(self.config.rental))
        return self.of_constant("rental")

    @property
    def watts(self) -> tuple[Values, Values]:
        """Idle and busy W of a device; drawn apart, but never the idle one above."""
        idle, peak = self.of_constant("idle_power"), self.of_constant("peak_power")
        return np.minimum(idle, peak), peak

    @property
    def spin(self) -> Values:
        """What a waiting worker draws between idle and busy; the same for all devices."""
        rng = np.random.default_rng([self.config.seed, zlib.crc32(b"spin")])
        return np.concatenate([[SPIN.value], SPIN.quantiles(rng.random(self.config.draws))])

    @property
    def formats(self) -> Formats:
        """Precision of cache and weights: the user's, else the model card's."""
        return Formats.of(self.model, self.config.kv_bytes, self.config.weight_bytes)

    @property
    def audited(self) -> AuditedLaw | None:
        """The law of an audit, where the step time names its folder."""
        named = self.config.step_time
        return read_audited_law(named) if named is not None and is_audit(named) else None

    @property
    def memory(self) -> MemoryNeed:
        """What the model needs on this device."""
        parallel = self.config.experts == "parallel"
        return MemoryNeed(self.card, self.model, self.formats, parallel, self.config.tokens_per_request)

    @property
    def published(self) -> Calibration | None:
        """What clusters have published of this model on this device."""
        return calibration_of(self.card.name, self.model.name)

    def devices_per_worker(self, law: str, point: LoadPoint) -> int:
        """Return what the user or the law says, or the fewest, in powers of two, that hold weights and tokens.

        Raises
        ------
        InputError
            The fleet does not fit into the devices' memory, with how many would do.
        """
        if self.config.devices_per_worker is not None:
            count = self.config.devices_per_worker
        elif law == PUBLISHED and self.published is not None:
            count = self.published.devices_per_worker
        else:
            spec = None if self.audited is not None else self.config.step_time
            given = None if spec is None else make_step_time(spec)
            if isinstance(given, RooflineStepTime):
                count = given.deployment.devices_per_worker
            else:
                self.card["memory_capacity"]  # a card without it is asked for by name
                fewest = self.memory.fewest(point)
                if fewest is None:
                    raise InputError(self.memory.says(point, self.model["heads"]))
                return fewest
        if not self.memory.fits(point, count):
            raise InputError(self.memory.says(point, count))
        return count

    def laws(self, point: LoadPoint) -> tuple[list[str], list[str]]:
        """Return the step-time laws to price by, and why a published one is left out."""
        audited = self.audited
        if audited is not None:
            audited.check(point.num_workers)
            return [AUDITED], []
        if self.config.step_time is not None:
            return [self.config.step_time], []
        own = [] if self.simulated is None else [SIMULATED]
        known = self.published
        if known is None:
            return [CALIBRATED, *own], []
        refusal = known.refusal(point.num_workers, point.running)
        if refusal is None:
            count = self.config.devices_per_worker or known.devices_per_worker
            if not self.memory.fits(point, count):
                refusal = self.memory.says(point, count)
        if refusal is not None:
            return [CALIBRATED, *own], [f"{self.card.name}: the published slope is left out: {refusal}"]
        return [CALIBRATED, PUBLISHED, *own], []

    def form(self, law: str, point: LoadPoint, devices: int) -> DrawnForm:
        """Return the step-time form of the fleet of `point` under every draw."""
        if law == CALIBRATED:
            return self._calibrated_form(point, devices)
        if law == PUBLISHED:
            return self._published_form(point)
        if law == AUDITED and self.audited is not None:
            rng = np.random.default_rng([self.config.seed, zlib.crc32(b"audited")])
            fixed, per_token = self.audited.draws(self.config.draws, rng)
            return DrawnForm(fixed, per_token, np.zeros_like(per_token))
        spec = self.simulated if law == SIMULATED and self.simulated is not None else law
        form = make_step_time(spec).form(point.num_workers, point.slots_per_worker)
        return DrawnForm.of([form] * (self.config.draws + 1), point.num_workers, point.running)

    def decode_step(self, point: LoadPoint, devices: int) -> DecodeStep:
        """Return the step of the fleet of `point` at its mean load, as a law is asked about it."""
        formats, config = self.formats, self.config
        return DecodeStep(
            device=self.named,
            model=config.model,
            devices=devices * point.num_workers,
            tp=devices,
            expert_parallel=config.experts == "parallel",
            expert_bytes=formats.expert_bytes,
            common_bytes=formats.common_bytes,
            kv_bytes=formats.kv_bytes,
            running=point.running,
            context_tokens=max(point.mean_load, 1.0) / point.running,
            prompt_share=config.prompt_share,
            drafted=float(config.tokens_per_request),
            accepted=self.accepted,
            overlap=config.overlap,
        )

    @property
    def accepted(self) -> float:
        """Output tokens of a request in a step."""
        return float(self.config.tokens_per_request) if self.config.accepted is None else self.config.accepted

    def believed(self, point: LoadPoint, devices: int) -> Posterior:
        """Return what is believed of the calibrated law: what is shipped, updated by the user's rows."""
        if self.config.calibrate is None:
            return _known()
        return update(_known(), read_measured_rows(Path(self.config.calibrate), self.decode_step(point, devices)))

    def shrinkage(self, point: LoadPoint, devices: int) -> tuple[float, float]:
        """Return by which factor the 90 % interval of the step is wide, without and with the user's rows."""
        features = StepFeatures.of([self.decode_step(point, devices)])
        widths = []
        for posterior in (_known(), self.believed(point, devices)):
            low, high = np.quantile(posterior.forecast(features, self.config.draws, self.config.seed), (0.05, 0.95))
            widths.append(float(high / low))
        return widths[0], widths[1]

    def _calibrated_form(self, point: LoadPoint, devices: int) -> DrawnForm:
        """Return the calibrated law, affine in the load: what a token adds, and what is there without any."""
        believed = self.believed(point, devices)
        one = replace(self.decode_step(point, devices), context_tokens=1 / point.running)  # a load of one token
        drawn, effects = believed.draws(self.config.draws, [self.config.seed, zlib.crc32(b"calibrated")])
        parameters = np.vstack([believed.mean[:-2], drawn])
        if self.config.balancedness is not None:
            parameters[:, _HOT] = -np.log(self.config.balancedness)
        effects = np.vstack([believed.mean[-2:], effects])
        parts = step_parts(parameters, StepFeatures.of([one]))
        per_token = parts.attention[:, 0] * np.exp(effects[:, 1])
        level = parts.of_run(effects[:, None, :])[:, 0] - per_token
        return DrawnForm(level, per_token, np.zeros_like(per_token))

    def _published_form(self, point: LoadPoint) -> DrawnForm:
        """Return the law whose balanced step is the published one at the mean load of `point`."""
        known = self.published
        assert known is not None, "asked for only where there is one"
        per_token = self.of_quantity("per_token", known.per_token)
        balanced = self.of_quantity("balanced_step", known.balanced_step)
        level = np.maximum(0.0, balanced - per_token * point.mean_load)
        return DrawnForm(level, per_token, np.zeros_like(per_token))

    def parts_of_step(self, law: str, point: LoadPoint, devices: int) -> dict[str, float]:
        """Return which share of a mean step each part takes, by the nominal values; empty for laws that cannot say."""
        if law != CALIBRATED:
            return {}
        believed = self.believed(point, devices)
        parts = step_parts(believed.mean[:-2], StepFeatures.of([self.decode_step(point, devices)]))
        named = {
            "launches and scheduling": parts.overhead,
            "attention": parts.attention,
            "weights": parts.common,
            "experts": parts.experts,
            "prompts": parts.prompts,
            "messages": parts.calls + parts.sent,
        }
        return {name: float(seconds[0] / parts.seconds[0]) for name, seconds in named.items()}


#: Groups of parameters; the last two entries of a posterior are the effects of the run.
GROUPS: dict[str, tuple[str, ...]] = {
    "launches and scheduling": ("fixed", "launch", "host", "latent", "year"),
    "memory of kernels": ("memory", "attention"),
    "arithmetic of kernels": ("compute", "prompt"),
    "experts": ("grouped", "hot"),
    "messages": ("link", "reduce", "beyond", "call", "overlap"),
}
RUN = "the engine's own tuning"
RENTAL = "rental"

_Z = 1.6449
_NUDGE = 1e-4
#: A group that moves the price by less is not in it: no prompt is read, or the arithmetic hides behind memory.
_FLAT = 1e-6


def sensitivities(device: DeviceDraws, point: LoadPoint, devices: int) -> list[Sensitivity]:
    """Return what the price a million tokens of `point` under the calibrated law hangs on, the largest first."""
    believed = device.believed(point, devices)
    heaviest = replace(device.decode_step(point, devices), context_tokens=max(point.max_load, 1.0) / point.running)
    features = StepFeatures.of([heaviest])

    def log_step(x: Values) -> float:
        return float(np.log(step_parts(x[:-2], features).of_run(x[-2:])[0]))

    mean = believed.mean
    slopes = np.array([_slope(log_step, mean, place) for place in range(mean.size)])
    nominal = np.exp(log_step(mean)) * device.rental[0] * devices / 3600 / (point.running * device.accepted) * 1e6
    if not np.isfinite(nominal):
        return []
    found = []
    names = [parameter.name.partition("/")[0] for parameter in PARAMETERS]
    places = {group: [i for i, name in enumerate(names) if name in members] for group, members in GROUPS.items()}
    places[RUN] = [mean.size - 2, mean.size - 1]
    for group, chosen in places.items():
        moved = slopes[chosen]
        spread = float(np.sqrt(moved @ believed.covariance[np.ix_(chosen, chosen)] @ moved))
        if spread < _FLAT:
            continue
        moves = np.exp((believed.reach if group == RUN else _Z) * spread)
        found.append(Sensitivity(group, float(nominal / moves), float(nominal * moves)))
    rental = np.quantile(device.rental[1:], (0.05, 0.95)) / device.rental[0] if device.rental[0] > 0 else np.ones(2)
    found.append(Sensitivity(RENTAL, float(nominal * rental[0]), float(nominal * rental[1])))
    return sorted(found, key=lambda one: -one.swing)


def _slope(log_step: Callable[[Values], float], mean: Values, place: int) -> float:
    step = np.zeros(mean.size)
    step[place] = _NUDGE
    return (log_step(mean + step) - log_step(mean - step)) / (2 * _NUDGE)
