"""The ledger: every claim by its name, in the order of the report."""

from __future__ import annotations

import difflib

from lbopt.exceptions import InputError
from lbopt.files import shown
from lbopt.theory.claim import Claim
from lbopt.theory.claims import (
    adversaries,
    berry_esseen,
    binding,
    fcfs,
    leader_drift,
    lemma_1,
    lemma_2,
    lemma_2_definition_1,
    lemma_2_pools,
    lemma_2_printed,
    lemma_2_steps,
    lemma_3,
    lemma_4,
    lemma_8,
    online,
    pools,
    replete_optimum,
    slot_law,
    spacing,
    stale,
    theorem_1,
    theorems,
    waiting_immediate,
    waiting_pooled,
    waiting_published,
    waiting_reference,
)

_ALL: tuple[Claim, ...] = (
    *theorem_1.CLAIMS,
    *theorems.CLAIMS,
    *pools.CLAIMS,
    *spacing.CLAIMS,
    *leader_drift.CLAIMS,
    *lemma_1.CLAIMS,
    *lemma_2_printed.CLAIMS,
    *lemma_2.CLAIMS,
    *lemma_2_pools.CLAIMS,
    *lemma_2_definition_1.CLAIMS,
    *replete_optimum.CLAIMS,
    *lemma_2_steps.CLAIMS,
    *lemma_3.CLAIMS,
    *lemma_4.CLAIMS,
    *slot_law.CLAIMS,
    *fcfs.CLAIMS,
    *berry_esseen.CLAIMS,
    *lemma_8.CLAIMS,
    *stale.CLAIMS,
    *binding.CLAIMS,
    *waiting_immediate.CLAIMS,
    *waiting_pooled.CLAIMS,
    *waiting_published.CLAIMS,
    *waiting_reference.CLAIMS,
    *adversaries.CLAIMS,
    *online.CLAIMS,
)

CLAIMS: dict[str, Claim] = {claim.name: claim for claim in _ALL}

#: Names of earlier versions: commands and stored configurations that have them find the claim that took its place.
ALIASES = {"lemma-2-open": "lemma-2-definition-1"}


def find_claim(name: str) -> Claim:
    """Return the claim of that name or alias; an InputError names the nearest ones."""
    name = ALIASES.get(name, name)
    if name not in CLAIMS:
        near = difflib.get_close_matches(name, CLAIMS, n=3)
        hint = f"did you mean {' or '.join(near)}? " if near else ""
        raise InputError(f"unknown claim {shown(name, 80)}: {hint}`lbopt check --list` shows all {len(CLAIMS)}")
    return CLAIMS[name]
