"""Step-time laws of a device with its constants drawn, and how many devices a worker needs."""

from __future__ import annotations

import zlib
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lbopt.exceptions import InputError
from lbopt.hardware import make_step_time
from lbopt.hardware.cards import DeviceCard, ModelCard, calibration_of, device_card, model_card
from lbopt.hardware.quantity import Quantity
from lbopt.hardware.step_time import Deployment, RooflineStepTime, roofline_terms_at
from lbopt.studies.cost.config import CostConfig
from lbopt.studies.cost.drawn_step import DrawnForm
from lbopt.studies.cost.load_point import LoadPoint

Values = NDArray[np.float64]

#: Share of the memory that weights and tokens may fill; the rest is for activations and the engine.
_FILLED = 0.9

#: Constants of a card that are drawn together.
_RATES = ("memory_bandwidth", "flops_16bit", "flops_8bit")

ROOFLINE, PUBLISHED = "roofline", "published slope"


@dataclass(frozen=True, slots=True, eq=False)
class DeviceDraws:
    """One device with every constant drawn; the first entry of each array holds the card's own value."""

    config: CostConfig
    card: DeviceCard
    model: ModelCard

    @classmethod
    def of(cls, config: CostConfig, device: str) -> DeviceDraws:
        """Return the draws of a device for a study."""
        return cls(config, device_card(device), model_card(config.model))

    def of_quantity(self, name: str, quantity: Quantity) -> Values:
        """Return D + 1 values; the same constant of the same card is drawn alike in every study of one seed.

        Bandwidth and arithmetic lean the same way: whether a device is a package or one die of it, the better board or
        the lesser one, decides both.
        """
        leans = _RATES if name in _RATES else name
        rng = np.random.default_rng([self.config.seed, zlib.crc32(f"{self.card.name} {leans}".encode())])
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
        """Idle and peak W of a device; drawn apart, but never the idle one above."""
        idle, peak = self.of_constant("idle_power"), self.of_constant("peak_power")
        return np.minimum(idle, peak), peak

    def devices_per_worker(self, law: str, point: LoadPoint) -> int:
        """Return what the user or the law says, or the fewest, in powers of two, that hold weights and tokens."""
        if self.config.devices_per_worker is not None:
            return self.config.devices_per_worker
        known = calibration_of(self.card.name, self.model.name)
        if law == PUBLISHED and known is not None:
            return known.devices_per_worker
        given = None if self.config.step_time is None else make_step_time(self.config.step_time)
        if isinstance(given, RooflineStepTime):
            return given.deployment.devices_per_worker
        capacity = _FILLED * self.card["memory_capacity"].value
        devices = 1
        while self.bytes_per_device(point, devices) > capacity:
            devices *= 2
            if devices > self.model["heads"]:
                raise InputError(
                    f"a worker of {self.model.name} that holds {point.max_load:,.0f} tokens fits on no number of "
                    f"{self.card.name} devices; give a smaller load, or --devices-per-worker to price it all the same"
                )
        return devices

    def bytes_per_device(self, point: LoadPoint, devices: int) -> float:
        """Return bytes of weights and of the heaviest load's tokens on each of a worker's devices."""
        weight, kv = self.model.quantities["weight_bytes"].value, self.model.quantities["kv_bytes"].value
        embedding = self.model["vocabulary"] * self.model["hidden"]  # held by every worker, as what all read
        of_worker = self.model.common_parameters + embedding
        of_experts = self.model.total_parameters - of_worker
        holders = devices * (point.num_workers if self.config.experts == "parallel" and self.model.moe_layers else 1)
        copies = 1 if self.model.attention == "mla" else min(devices, self.model["kv_heads"])
        tokens = point.max_load * self.model.kv_values_per_token * kv / copies
        return weight * (of_worker / devices + of_experts / holders) + tokens

    def roofline(self, devices: int) -> RooflineStepTime:
        """Return the roofline law with the cards' values."""
        return RooflineStepTime(
            self.model,
            self.card,
            Deployment(
                devices_per_worker=devices,
                expert_parallel=self.config.experts == "parallel",
                query_tokens=self.config.tokens_per_request,
            ),
        )

    @property
    def laws(self) -> list[str]:
        """Names of the step-time laws to price by: what the user gave, or the roofline and what was published."""
        if self.config.step_time is not None:
            return [self.config.step_time]
        return [ROOFLINE] + ([PUBLISHED] if calibration_of(self.card.name, self.model.name) else [])

    def form(self, law: str, point: LoadPoint, devices: int) -> DrawnForm:
        """Return the step-time form of the fleet of `point` under every draw."""
        if law == ROOFLINE:
            return self._roofline_form(point, devices)
        if law == PUBLISHED:
            return self._published_form(point)
        form = make_step_time(law).form(point.num_workers, point.slots_per_worker)
        return DrawnForm.of([form] * (self.config.draws + 1), point.num_workers, point.running)

    def _published_form(self, point: LoadPoint) -> DrawnForm:
        """Return the law whose balanced step is the published one at the mean load of `point`."""
        known = calibration_of(self.card.name, self.model.name)
        assert known is not None, "asked for only where there is one"
        per_token = self.of_quantity("per_token", known.per_token)
        balanced = self.of_quantity("balanced_step", known.balanced_step)
        level = np.maximum(0.0, balanced - per_token * point.mean_load)
        return DrawnForm(level, per_token, np.zeros_like(per_token))

    def _roofline_form(self, point: LoadPoint, devices: int) -> DrawnForm:
        law = self.roofline(devices)
        running = np.array([point.running])
        drawn = {name: self.of_quantity(name, quantity) for name, quantity in law.quantities().items()}
        draws = ({name: float(values[i]) for name, values in drawn.items()} for i in range(self.config.draws + 1))
        return DrawnForm.of_entries(
            roofline_terms_at(
                numbers, law.model, law.deployment, point.num_workers, running, point.num_workers * running
            ).form()
            for numbers in draws
        )

    def parts_of_step(self, law: str, point: LoadPoint, devices: int) -> dict[str, float]:
        """Return what share of a mean step each kind binds, see `KINDS`; empty for laws that cannot say."""
        if law != ROOFLINE:
            return {}
        running = np.full(point.num_workers, max(1, round(point.running)))
        loads = np.full(point.num_workers, point.max_load)
        parts = self.roofline(devices).breakdown(loads, running)
        return {kind: float(seconds / parts.seconds) for kind, seconds in parts.by_kind.items()}
