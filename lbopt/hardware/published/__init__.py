"""Published tables of routers and engines, and measured decode steps, as data with their pedigree."""

from lbopt.hardware.published.tables import (
    Column,
    MeasuredStep,
    Pedigree,
    PublishedTable,
    published_names,
    published_table,
)

__all__ = [
    "Column",
    "MeasuredStep",
    "Pedigree",
    "PublishedTable",
    "published_names",
    "published_table",
]
