"""Exact placements of one prefill batch, and how far the rules are from them (SBS, section 6.4)."""

from lbopt.prefill.exact.batch import PrefillBatch
from lbopt.prefill.exact.decode import (
    DecodeBatch,
    DecodePlacement,
    barrier_time,
    count_then_load,
    least_largest_count,
    level_then_load,
    water_level,
)
from lbopt.prefill.exact.decode_gap import DecodeRow, compare_decode
from lbopt.prefill.exact.fill import best_fill
from lbopt.prefill.exact.gap import allocation_gaps
from lbopt.prefill.exact.placement import Fill, Placement
from lbopt.prefill.exact.straggler import least_straggler

__all__ = [
    "DecodeBatch",
    "DecodePlacement",
    "DecodeRow",
    "Fill",
    "Placement",
    "PrefillBatch",
    "allocation_gaps",
    "barrier_time",
    "best_fill",
    "compare_decode",
    "count_then_load",
    "least_largest_count",
    "least_straggler",
    "level_then_load",
    "water_level",
]
