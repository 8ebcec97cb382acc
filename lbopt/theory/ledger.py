"""The ledger: every claim by its name, in the order of the report."""

from __future__ import annotations

from lbopt.spec import unknown
from lbopt.theory.claim import Claim
from lbopt.theory.claims import (
    adversaries,
    berry_esseen,
    fcfs,
    leader_drift,
    lemma_1,
    lemma_2,
    lemma_2_pools,
    lemma_2_printed,
    lemma_2_steps,
    lemma_3,
    lemma_4,
    lemma_8,
    pools,
    replete_optimum,
    slot_law,
    theorems,
    waiting_immediate,
    waiting_pooled,
    waiting_published,
    waiting_reference,
)

_ALL: tuple[Claim, ...] = (
    *theorems.CLAIMS,
    *pools.CLAIMS,
    *leader_drift.CLAIMS,
    *lemma_1.CLAIMS,
    *lemma_2_printed.CLAIMS,
    *lemma_2.CLAIMS,
    *lemma_2_pools.CLAIMS,
    *replete_optimum.CLAIMS,
    *lemma_2_steps.CLAIMS,
    *lemma_3.CLAIMS,
    *lemma_4.CLAIMS,
    *slot_law.CLAIMS,
    *fcfs.CLAIMS,
    *berry_esseen.CLAIMS,
    *lemma_8.CLAIMS,
    *waiting_immediate.CLAIMS,
    *waiting_pooled.CLAIMS,
    *waiting_published.CLAIMS,
    *waiting_reference.CLAIMS,
    *adversaries.CLAIMS,
)

CLAIMS: dict[str, Claim] = {claim.name: claim for claim in _ALL}


def find_claim(name: str) -> Claim:
    """Return the claim of that name; an InputError names the nearest ones."""
    if name not in CLAIMS:
        raise unknown("claim", name, CLAIMS, "; `lbopt check --list` shows all")
    return CLAIMS[name]
