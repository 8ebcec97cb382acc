"""Requests on decode units by their counts and their tokens: the exact programs D1 to D3."""

from lbopt.solvers.decode.batch import DecodeBatch, DecodePlacement
from lbopt.solvers.decode.counts import fewest_requests_first, least_largest_count, water_level
from lbopt.solvers.decode.programs import barrier_time, count_then_load, level_then_load

__all__ = [
    "DecodeBatch",
    "DecodePlacement",
    "barrier_time",
    "count_then_load",
    "fewest_requests_first",
    "least_largest_count",
    "level_then_load",
    "water_level",
]
