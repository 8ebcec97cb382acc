"""Memory of a worker's devices: weights, the heaviest load's cache, and activations, against what a device has.

    bytes = weights of what every worker reads / TP + weights of experts / their devices + cache of the heaviest load
            + running * query tokens * (4 * vocabulary + 20 * hidden)

The last term holds logits in 32 bit and some ten activations of the residual stream in 16 bit. A tenth of the memory is
left for the engine: graphs, buffers of collectives, fragmentation.
"""

from __future__ import annotations

from dataclasses import dataclass

from lbopt.hardware.cards import DeviceCard, ModelCard
from lbopt.hardware.step_time import Formats
from lbopt.studies.cost.load_point import LoadPoint

#: Share of the memory that weights, cache and activations may fill.
FILLED = 0.9

_OF_LOGIT = 4
_OF_RESIDUAL = 20


@dataclass(frozen=True, slots=True)
class MemoryNeed:
    """What a model needs on the devices of a fleet.

    Parameters
    ----------
    card, model, formats
        The device, the model, and its precision.
    expert_parallel
        Whether experts are spread over all workers.
    query_tokens
        Tokens of a request that a step computes.
    """

    card: DeviceCard
    model: ModelCard
    formats: Formats
    expert_parallel: bool
    query_tokens: int = 1

    def bytes_per_device(self, point: LoadPoint, devices: int) -> float:
        """Return bytes on each of a worker's devices."""
        embedding = self.model["vocabulary"] * self.model["hidden"]  # held by every worker, as what all read
        of_worker = self.model.common_parameters + embedding
        of_experts = self.model.total_parameters - of_worker
        holders = devices * (point.num_workers if self.expert_parallel and self.model.moe_layers else 1)
        copies = 1 if self.model.attention == "mla" else min(devices, self.model["kv_heads"])
        cache = point.max_load * self.model.kv_values_per_token * self.formats.kv_bytes / copies
        of_token = _OF_LOGIT * self.model["vocabulary"] + _OF_RESIDUAL * self.model["hidden"]
        weights = self.formats.common_bytes * of_worker / devices + self.formats.expert_bytes * of_experts / holders
        return weights + cache + point.running * self.query_tokens * of_token

    def fits(self, point: LoadPoint, devices: int) -> bool:
        """Return whether workers of so many devices hold model and heaviest load; True where memory is unknown."""
        known = self.card.constants.get("memory_capacity")
        return known is None or self.bytes_per_device(point, devices) <= FILLED * known.value

    def fewest(self, point: LoadPoint) -> int | None:
        """Return the fewest devices of a worker, in powers of two up to the heads, or None where none are enough."""
        devices = 1
        while devices <= self.model["heads"]:
            if self.fits(point, devices):
                return devices
            devices *= 2
        return None

    def says(self, point: LoadPoint, devices: int) -> str:
        """Return a sentence of what workers of so many devices lack, and of how many would do."""
        need, has = self.bytes_per_device(point, devices), self.card["memory_capacity"].value
        fewest = self.fewest(point)
        way_out = (
            f"a worker needs {fewest} devices"
            if fewest is not None
            else "no number of devices up to the heads is enough: give a smaller load or more workers"
        )
        on = (
            f"on each of {devices} devices a worker, which have"
            if devices > 1
            else "on a worker's one device, which has"
        )
        return (
            f"{self.model.name} on {self.card.name}: {need / 1e9:,.0f} GB of weights, cache and activations would be "
            f"{on} {has / 1e9:,.0f} GB, a tenth of it for the engine; {way_out}"
        )
