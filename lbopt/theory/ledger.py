"""The ledger: every claim by its name, in the order of the report."""

from __future__ import annotations

import difflib

from lbopt.exceptions import InputError
from lbopt.files import shown
from lbopt.theory.claim import Claim
from lbopt.theory.claims import (
    binding,
    fcfs,
    lemma_1,
    lemma_2,
    lemma_2_printed,
    lemma_2_steps,
    lemma_3,
    lemma_4,
    moments,
    online,
    pools,
    spacing,
    stale,
    theorems,
    waiting,
    waiting_published,
)

_ALL: tuple[Claim, ...] = (
    *theorems.CLAIMS,
    *pools.CLAIMS,
    *spacing.CLAIMS,
    *lemma_1.CLAIMS,
    *lemma_2_printed.CLAIMS,
    *lemma_2.CLAIMS,
    *lemma_2_steps.CLAIMS,
    *lemma_3.CLAIMS,
    *lemma_4.CLAIMS,
    *fcfs.CLAIMS,
    *moments.CLAIMS,
    *stale.CLAIMS,
    *binding.CLAIMS,
    *waiting.CLAIMS,
    *waiting_published.CLAIMS,
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
        raise InputError(f"unknown claim {shown(name, 80)}: {hint}`lbopt show claims` shows all {len(CLAIMS)}")
    return CLAIMS[name]
