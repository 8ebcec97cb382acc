"""From loads to seconds, joules and money. Knows nothing of requests, policies or solvers."""

from lbopt.hardware.cards import DeviceCard, ModelCard, device_card, device_names, model_card, model_names
from lbopt.hardware.energy import PowerLaw
from lbopt.hardware.quantity import Quantity
from lbopt.hardware.step_time import (
    AffineStepTime,
    BarrierForm,
    Deployment,
    ExpertStepTime,
    MeanTermStepTime,
    RooflineStepTime,
    StepTime,
    make_step_time,
)

__all__ = [
    "AffineStepTime",
    "BarrierForm",
    "Deployment",
    "DeviceCard",
    "ExpertStepTime",
    "MeanTermStepTime",
    "ModelCard",
    "PowerLaw",
    "Quantity",
    "RooflineStepTime",
    "StepTime",
    "device_card",
    "device_names",
    "make_step_time",
    "model_card",
    "model_names",
]


def __dir__() -> list[str]:
    return sorted(__all__)
