"""Published tables of routers and engines, and measured decode steps, as data with their pedigree."""

from lbopt.hardware.published.measured_steps import (
    MeasuredStep,
    held_out_sources,
    measured_sources,
    measured_steps,
    the_draw,
)
from lbopt.hardware.published.table import Column, Pedigree, PublishedTable, published_names, published_table

__all__ = [
    "Column",
    "MeasuredStep",
    "Pedigree",
    "PublishedTable",
    "held_out_sources",
    "measured_sources",
    "measured_steps",
    "published_names",
    "published_table",
    "the_draw",
]
