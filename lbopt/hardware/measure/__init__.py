"""Measuring a device: attention against resident tokens, a barrier of unequal workers, products of a layer, power."""

from lbopt.hardware.measure.attention import AttentionTimes
from lbopt.hardware.measure.backend import BACKENDS, Backend, make_backend
from lbopt.hardware.measure.card import card_text, compare, forecasts, make_card
from lbopt.hardware.measure.measurement import MeasureConfig, Measurement, layers_of, measure

__all__ = [
    "BACKENDS",
    "AttentionTimes",
    "Backend",
    "MeasureConfig",
    "Measurement",
    "card_text",
    "compare",
    "forecasts",
    "layers_of",
    "make_backend",
    "make_card",
    "measure",
]
