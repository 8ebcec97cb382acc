"""Seeded families of synthetic traces: two fitted to public traces, two of requests that use experts."""

from lbopt.instances.families.experts import EXPERT_NAMES, EXPERT_RATE, generate_experts
from lbopt.instances.families.fitted import NAMES, FamilyTable, Provenance, family_table, generate

#: Every word that stands for a family.
ALL_NAMES = (*NAMES, *EXPERT_NAMES)

__all__ = [
    "ALL_NAMES",
    "EXPERT_NAMES",
    "EXPERT_RATE",
    "NAMES",
    "FamilyTable",
    "Provenance",
    "family_table",
    "generate",
    "generate_experts",
]
