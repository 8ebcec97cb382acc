"""Published tables of routers and engines, and measured decode steps, as data with their pedigree."""

from lbopt.hardware.published.tables import (
    Column,
    MeasuredStep,
    Pedigree,
    PublishedTable,
    held_out_sources,
    measured_sources,
    measured_steps,
    published_names,
    published_table,
    the_draw,
)

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
