"""What is checked (claims by name, in regimes of a level or of the user), `run_check`, and what it found."""

from __future__ import annotations

import math
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import lbopt
from lbopt.exceptions import InputError
from lbopt.runner import Task, canonical_json
from lbopt.spec import options_of
from lbopt.studies.running import RunTasks, of_tasks
from lbopt.studies.study import Outcome, Study
from lbopt.theory.claim import Claim, Regime
from lbopt.theory.finding import Finding, Plant, Verdict, gravest, smallest_exponent, smallest_plant
from lbopt.theory.ledger import CLAIMS, find_claim

MEASURED = "lbopt.studies.check.measured:measured"


@dataclass(frozen=True, slots=True)
class Chosen:
    """A claim and the regimes in which it is measured; `specs` is how the user asked for them."""

    claim: Claim
    regimes: tuple[Regime, ...]
    specs: tuple[str, ...]

    @classmethod
    def of(cls, spec: str, level: str) -> Chosen:
        """Read ``theorem-2`` or ``theorem-2:G=16,p=0.2``."""
        name, colon, text = spec.partition(":")
        claim = find_claim(name)
        if not colon:
            return cls(claim, tuple(claim.regimes(level)), (spec,))
        regime = options_of("claim", name, text, claim.measure)
        for option, value in regime.items():
            if isinstance(value, float) and not math.isfinite(value):  # no key of a store holds it
                raise InputError(f"claim '{name}': {option} is '{value}'; expected a finite number")
        return cls(claim, (regime,), (spec,))

    @classmethod
    def in_regimes(cls, name: str, regimes: Sequence[Regime], level: str) -> Chosen:
        """Return a claim in these regimes; those of the level count as asked for by the name alone."""
        claim = find_claim(name)
        usual = all(regime in regimes for regime in claim.regimes(level))
        return cls(claim, tuple(dict(regime) for regime in regimes), (name if usual else f"{name}:",))

    @property
    def own(self) -> bool:
        """Whether the user gave every regime."""
        return all(":" in spec for spec in self.specs)

    def joined(self, other: Chosen) -> Chosen:
        """Return the same claim in the regimes of both, each once: a claim has one verdict."""
        more = tuple(regime for regime in other.regimes if regime not in self.regimes)
        return Chosen(self.claim, self.regimes + more, self.specs + other.specs)


@dataclass(frozen=True, slots=True)
class CheckConfig:
    """A check.

    Parameters
    ----------
    chosen
        Claims with their regimes, in the order of the report.
    level
        "quick" or "full".
    seed
        From which every regime's own is derived.
    """

    chosen: tuple[Chosen, ...]
    level: str
    seed: int

    @classmethod
    def of(cls, specs: Sequence[str], *, everything: bool = False, level: str = "quick", seed: int = 0) -> CheckConfig:
        """Read the claims that a user names; `everything` takes the whole ledger.

        Parameters
        ----------
        specs
            Claims by name, each with a regime of its own where one follows the name.
        everything
            Whether the whole ledger is checked.
        level
            "quick" or "full".
        seed
            Seed from which that of every regime is derived.
        """
        if seed < 0:
            raise InputError(f"seed is {seed}; expected 0 or more")
        if everything and specs:
            raise InputError(f"all claims were asked for, and '{specs[0]}' by name; give one or the other")
        if not (everything or specs):
            raise InputError("no claim was named; `lbopt show claims` shows them, and `all` takes them all")
        chosen: dict[str, Chosen] = {}
        for spec in dict.fromkeys(CLAIMS if everything else specs):
            one = Chosen.of(spec, level)
            before = chosen.get(one.claim.name)
            chosen[one.claim.name] = before.joined(one) if before else one
        return cls(tuple(chosen.values()), level, seed)

    def tasks(self, chosen: Chosen) -> list[Task]:
        """Return the task of each regime; equal regimes have equal tasks, in whatever level they stand."""
        return [
            Task(
                MEASURED,
                {"claim": chosen.claim.name, "regime": dict(regime), "version": lbopt.__version__},
                self._seed(chosen.claim.name, regime),
            )
            for regime in chosen.regimes
        ]

    def to_dict(self) -> dict[str, Any]:
        """Return plain values that JSON holds."""
        claims = [{"claim": one.claim.name, "regimes": [dict(r) for r in one.regimes]} for one in self.chosen]
        return {"level": self.level, "seed": self.seed, "claims": claims}

    @classmethod
    def from_dict(cls, data: dict[str, Any], *, source: str = "the configuration") -> CheckConfig:
        """Rebuild a configuration; claims that the ledger no longer has are refused."""
        try:
            level, seed = data["level"], data["seed"]
            chosen = [Chosen.in_regimes(one["claim"], one["regimes"], level) for one in data["claims"]]
            return cls(tuple(chosen), str(level), int(seed))
        except (TypeError, KeyError, ValueError, AttributeError) as error:
            raise InputError(f"{source} is not a configuration of a check of this version: {error}") from None

    def _seed(self, name: str, regime: Regime) -> int:
        """Return a seed of the regime's own, which no other regime moves."""
        place = zlib.crc32(f"{name} {canonical_json(dict(regime), 'regime')}".encode())
        return int(np.random.SeedSequence((self.seed, place)).generate_state(1)[0])


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
class CheckOutcome(Outcome):
    """The claims of a check."""

    claims: list[ClaimOutcome] = field(default_factory=list)

    @property
    def refuting(self) -> dict[str, dict[str, Any]]:
        """The counterexamples, by the names of their files."""
        return {
            f"counterexample-{one.claim.name}-{place}.json": finding.counterexample
            for one in self.claims
            for place, finding in enumerate(one.findings)
            if finding.counterexample is not None
        }


@of_tasks("checking")
def run_check(config: CheckConfig, run: RunTasks) -> CheckOutcome:
    """Measure all regimes of all claims. Ctrl-C keeps what has ended; the rest is missing in the outcome."""
    tasks = [config.tasks(chosen) for chosen in config.chosen]
    stored = run([task for each in tasks for task in each])
    outcome = CheckOutcome(config, notes=list(stored.notes), interrupted=stored.interrupted)
    for chosen, each in zip(config.chosen, tasks, strict=True):
        answers = [stored.answers[task.key] for task in each if task.key in stored.answers]
        findings = tuple(Finding.from_dict(one) for answer in answers for one in answer)
        outcome.claims.append(ClaimOutcome(chosen, findings, len(each) - len(answers)))
    return outcome


def _facts(outcome: CheckOutcome) -> dict[str, Any]:
    refuting = outcome.refuting.items()
    return {
        "verdicts": {one.claim.name: one.verdict.value for one in outcome.claims},
        "counterexamples": {
            name: {"says": found["says"], "assignment": found.get("assignment")} for name, found in refuting
        },
    }


STUDY = Study(
    name="check",
    config=CheckConfig,
    run=run_check,
    facts=_facts,
    account=("interrupted", "seconds"),
    holds=lambda outcome: all(one.as_expected for one in outcome.claims),
)
