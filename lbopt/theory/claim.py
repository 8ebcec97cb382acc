"""A claim: what a source says, how it is measured, and in which regimes.

`measure` takes the parameters of one regime as keywords (each with a default, so that a user may set any of them) and
`seed`; it refuses, by name, parameters that are none of the claim's, and returns what it found. `quick` and `full` list
the regimes of the two levels of effort, each as the keywords that differ from the defaults.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

from lbopt.exceptions import InputError
from lbopt.files import parse_toml
from lbopt.theory.finding import Finding, Verdict

Measure = Callable[..., Sequence[Finding]]
Regime = Mapping[str, Any]

LEVELS = ("quick", "full")


def crossed(first: Sequence[Regime], second: Sequence[Regime]) -> list[Regime]:
    """Return every regime of `first` joined with every one of `second`."""
    return [{**one, **two} for one in first for two in second]


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """One line of the ledger.

    Parameters
    ----------
    name
        As users write it: ``lemma-1-printed``.
    title
        A few words.
    source
        Paper, theorem, equation; "lbopt" for what is derived here.
    statement
        The statement, its formulas as one line of Unicode.
    refuted_by
        What would refute it, in one sentence.
    measure
        See the module.
    quick, full
        Regimes.
    expected
        The verdict that was found; a check that comes to another one says so.
    remark
        Where the statement says more than is true, what is true instead.
    """

    name: str
    title: str
    source: str
    statement: str
    refuted_by: str
    measure: Measure
    quick: Sequence[Regime]
    full: Sequence[Regime]
    expected: Verdict
    remark: str = ""

    def __post_init__(self) -> None:
        known = self.parameters()
        for level in LEVELS:
            for regime in self.regimes(level):
                if unknown := set(regime) - set(known):
                    raise ValueError(f"claim '{self.name}', level {level}: no parameter {sorted(unknown)}")

    def parameters(self) -> dict[str, Any]:
        """Return the parameters of a regime with their defaults."""
        found = inspect.signature(self.measure).parameters
        return {name: one.default for name, one in found.items() if name != "seed"}

    def regimes(self, level: str) -> Sequence[Regime]:
        """Return the regimes of a level."""
        if level not in LEVELS:
            raise InputError(f"level is '{level}'; expected one of {', '.join(LEVELS)}")
        return self.quick if level == "quick" else self.full


@cache
def _words() -> dict[str, dict[str, str]]:
    text = files("lbopt.theory.claims").joinpath("claims.toml").read_text(encoding="utf-8")
    return parse_toml(text, "the words of the claims")


def claim(name: str, measure: Measure, quick: Sequence[Regime], full: Sequence[Regime]) -> Claim:
    """Return a claim; what it says, in words, and the verdict that was found stand in `claims/claims.toml`."""
    said: dict[str, Any] = {key: " ".join(text.split()) for key, text in _words()[name].items()}
    said["expected"] = Verdict(said["expected"])
    return Claim(name=name, measure=measure, quick=quick, full=full, **said)
