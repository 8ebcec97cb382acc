"""Seeded families of synthetic traces, each fitted to a public one; small tables stand in for the files."""

from lbopt.instances.families.sample import generate
from lbopt.instances.families.table import NAMES, FamilyTable, Provenance, family_table

__all__ = ["NAMES", "FamilyTable", "Provenance", "family_table", "generate"]
