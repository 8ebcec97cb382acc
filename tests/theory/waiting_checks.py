"""A claim's verdict over some regimes, as the ledger comes to it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from lbopt.theory.claim import Claim
from lbopt.theory.finding import Finding, Verdict, gravest


def measured(claim: Claim, regimes: Sequence[Mapping[str, Any]], seed: int) -> list[Finding]:
    return [finding for regime in regimes for finding in claim.measure(**regime, seed=seed)]


def verdict_of(claim: Claim, regimes: Sequence[Mapping[str, Any]], seed: int = 1) -> Verdict:
    found = measured(claim, regimes, seed)
    share = max(1, sum(finding.is_sampled for finding in found))
    return gravest(finding.verdict(share) for finding in found)
