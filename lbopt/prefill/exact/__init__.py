"""Exact placements of one prefill batch, and how far the rules are from them (what Algorithm 2 of SBS approximates)."""

from lbopt.prefill.exact.batch import Fill, Placement, PrefillBatch
from lbopt.prefill.exact.gap import allocation_gaps
from lbopt.prefill.exact.optimum import best_fill, least_straggler

__all__ = ["Fill", "Placement", "PrefillBatch", "allocation_gaps", "best_fill", "least_straggler"]
