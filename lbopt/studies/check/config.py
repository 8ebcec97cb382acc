"""What to check: claims by name, each in the regimes of a level or in one that the user gives."""

from __future__ import annotations

import math
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

import lbopt
from lbopt.exceptions import InputError
from lbopt.runner import Task, canonical_json
from lbopt.spec import options_of
from lbopt.theory.claim import Claim, Regime
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
            raise InputError("no claim was named; `lbopt check --list` shows them, and --all takes them all")
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
