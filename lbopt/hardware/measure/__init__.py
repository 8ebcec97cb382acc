"""Measuring a device: attention's time against resident tokens, a barrier of unequal workers, a plain read."""

from lbopt.hardware.measure.backend import BACKENDS, Backend, make_backend
from lbopt.hardware.measure.card import card_text, make_card
from lbopt.hardware.measure.config import MeasureConfig
from lbopt.hardware.measure.measurement import AttentionTimes, Measurement, measure

__all__ = [
    "BACKENDS",
    "AttentionTimes",
    "Backend",
    "MeasureConfig",
    "Measurement",
    "card_text",
    "make_backend",
    "make_card",
    "measure",
]
