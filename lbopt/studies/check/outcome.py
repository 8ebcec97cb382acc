"""What a check found."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from lbopt.display import Displayed
from lbopt.studies.check.config import CheckConfig, Chosen
from lbopt.theory.claim import Claim
from lbopt.theory.finding import Finding, Plant, Verdict, gravest, smallest_exponent, smallest_plant


@dataclass(frozen=True, slots=True)
class ClaimOutcome:
    """The findings of a claim and what follows from them.

    Parameters
    ----------
    chosen
        Claim and regimes.
    findings
        Of the regimes that were measured, in their order.
    missing
        Regimes without an answer: failed, or not run.
    """

    chosen: Chosen
    findings: tuple[Finding, ...]
    missing: int = 0

    @property
    def claim(self) -> Claim:
        """The claim."""
        return self.chosen.claim

    @property
    def share(self) -> int:
        """Sampled findings among which the joint region is divided."""
        return max(1, sum(one.is_sampled for one in self.findings))

    def judged(self, finding: Finding) -> Verdict:
        """Return the verdict on one of the findings."""
        return finding.verdict(self.share)

    @property
    def verdict(self) -> Verdict:
        """Return the verdict on the claim; while regimes are missing nothing but a refutation is final."""
        found = gravest(self.judged(one) for one in self.findings)
        return Verdict.UNDECIDED if self.missing and found is not Verdict.REFUTED else found

    @property
    def as_expected(self) -> bool:
        """Whether the verdict is the ledger's; outside its hypotheses a claim says nothing that could differ.

        A claim that the ledger refutes may well hold in a regime of the user's own.
        """
        own = (Verdict.HOLDS,) if self.chosen.own else ()
        return self.verdict in (self.claim.expected, Verdict.OUTSIDE, Verdict.NOTHING_LEFT, *own)

    def plant(self, finding: Finding) -> Plant | None:
        """Return the smallest planted errors that one of the findings detects."""
        return smallest_plant(finding, self.share)

    @property
    def exponent(self) -> float | None:
        """The smallest error of an exponent of B that the findings detect together."""
        return smallest_exponent(self.findings, self.share)

    @property
    def tightest(self) -> Finding | None:
        """The finding that decides the verdict, and among those the least probable or tightest one."""
        grave = [one for one in self.findings if self.judged(one) is self.verdict] or list(self.findings)
        return min(grave, key=lambda one: (one.p_value(), -one.strain()), default=None)


@dataclass(slots=True, repr=False)
class CheckOutcome(Displayed):
    """The claims of a check."""

    config: CheckConfig
    claims: list[ClaimOutcome] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    interrupted: bool = False
    seconds: float = 0.0

    def __repr__(self) -> str:
        return f"<CheckOutcome {len(self.claims)} claims, level {self.config.level}>"

    @property
    def refuting(self) -> dict[str, dict[str, Any]]:
        """The counterexamples, by the names of their files."""
        return {
            f"counterexample-{one.claim.name}-{place}.json": finding.counterexample
            for one in self.claims
            for place, finding in enumerate(one.findings)
            if finding.counterexample is not None
        }
