"""Cards: what documents or measurements say of devices and models."""

from lbopt.hardware.cards.catalogue import (
    CONSTANTS,
    Calibration,
    DeviceCard,
    calibration_of,
    calibrations,
    device_card,
    device_names,
    model_card,
    model_names,
)
from lbopt.hardware.cards.model import ARCHITECTURE, ModelCard

__all__ = [
    "ARCHITECTURE",
    "CONSTANTS",
    "Calibration",
    "DeviceCard",
    "ModelCard",
    "calibration_of",
    "calibrations",
    "device_card",
    "device_names",
    "model_card",
    "model_names",
]
