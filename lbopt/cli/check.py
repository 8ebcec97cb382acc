"""`lbopt check`: does the theory hold?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

from lbopt.cli.from_config import as_verb
from lbopt.cli.study_verb import EXECUTION, OUT
from lbopt.exceptions import InputError
from lbopt.studies.configuration import Configuration, Option, from_words


@dataclass(frozen=True, slots=True, kw_only=True)
class _Asked(Configuration):
    claims: Annotated[
        tuple[str, ...],
        Option(
            "Claims by name, each with a regime of your own if wanted: `theorem-2:G=16,p=0.2`; or **all**.",
            argument=True,
            empty=True,
        ),
    ] = ()
    full: Annotated[
        bool, Option("Half an hour with tight intervals, or a minute.", names=("--full/--quick",), first=True)
    ] = False
    seed: Annotated[int, Option("First seed.", first=True)] = 0
    workers: Annotated[
        int | None, Option("Processes that measure side by side; short for `--engine joblib:jobs=N`.", low=1)
    ] = None


def _check(**given: Any) -> None:
    """Check theorems and lemmas, as printed and as corrected, and say of each whether it holds.

    `lbopt show claims` lists them. With --out, writes report.html, theory.md, findings.csv, a JSON file per
    counterexample (`lbopt solve` opens it) and run.json. Exit code 1 if a verdict is not the one that the ledger
    expects.

    Example: `lbopt check lemma-1-printed --seed 1 --out my-check`
    """
    from lbopt.cli.carry_out import carry_out
    from lbopt.studies.check import CheckConfig

    asked, execution = from_words(_Asked, given), {name: given[name] for name in EXECUTION}
    if asked.workers is not None:
        if execution["engine"] != "serial":
            raise InputError("workers and --engine both say where tasks run; give one of them")
        execution["engine"] = "serial" if asked.workers == 1 else f"joblib:jobs={asked.workers}"
    named = [claim for claim in asked.claims if claim != "all"]
    level = "full" if asked.full else "quick"
    config = CheckConfig.of(named, everything="all" in asked.claims, level=level, seed=asked.seed)
    carry_out("check", config, given["out"], **execution)


check = as_verb(_check, "check", _check.__doc__ or "", (_Asked,), EXECUTION | {"out": OUT})
