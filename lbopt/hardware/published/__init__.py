"""Published tables of routers and engines, as data with their pedigree."""

from lbopt.hardware.published.table import Column, Pedigree, PublishedTable, published_names, published_table

__all__ = ["Column", "Pedigree", "PublishedTable", "published_names", "published_table"]
