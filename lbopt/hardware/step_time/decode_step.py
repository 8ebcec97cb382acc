"""A decode step as a law is asked about it: device, model, how one stands on the other, batch, context, prompts."""

from __future__ import annotations

from dataclasses import dataclass

from lbopt.exceptions import InputError

#: The year that a forecast is of, where nothing else is said.
PRESENT = 2026.5

_ABOVE_ZERO = ("running", "context_tokens", "accepted", "drafted", "expert_bytes", "common_bytes", "kv_bytes")


@dataclass(frozen=True, slots=True, kw_only=True)
class DecodeStep:
    """One decode step of a balanced fleet.

    Parameters
    ----------
    device, model
        Names or paths of cards.
    devices, tp
        Devices that decode, and devices of one worker.
    expert_parallel
        Whether experts are spread over all workers.
    expert_bytes, common_bytes, kv_bytes
        Bytes of a parameter of an expert (or of a dense model), of any other parameter, and of a cached value.
    running, context_tokens
        Running requests of a worker, and mean cached tokens of a request.
    prompt_share
        Prompt tokens that the same devices compute for every output token.
    accepted, drafted
        Output tokens of a request in a step, and tokens of it that a step computes.
    overlap
        Whether messages between experts overlap with computation.
    year
        Of the engine, such as 2025.5.
    """

    device: str
    model: str
    devices: int
    tp: int
    expert_parallel: bool
    expert_bytes: float
    common_bytes: float
    kv_bytes: float
    running: float
    context_tokens: float
    prompt_share: float = 0.0
    accepted: float = 1.0
    drafted: float = 1.0
    overlap: bool = False
    year: float = PRESENT

    def __post_init__(self) -> None:
        where = f"{self.model} on {self.device}"
        if self.devices < 1 or self.tp < 1 or self.devices % self.tp:
            raise InputError(
                f"{where}: {self.devices} devices in workers of {self.tp}; expected a whole number of workers"
            )
        for name in _ABOVE_ZERO:
            if not getattr(self, name) > 0:
                raise InputError(f"{where}: {name} is {getattr(self, name)}; expected a number above 0")

    @property
    def workers(self) -> int:
        """Workers that meet in every step."""
        return self.devices // self.tp

    @property
    def load(self) -> float:
        """Cached tokens of a worker."""
        return self.running * self.context_tokens
