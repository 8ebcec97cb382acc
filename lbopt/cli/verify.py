"""`lbopt verify`: does what was written down hold? A result, the folder of a study, a store."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lbopt.cli.from_config import as_verb, refuse_others
from lbopt.exceptions import InputError
from lbopt.files import called, check_name
from lbopt.studies.configuration import Configuration, Option, from_words

if TYPE_CHECKING:
    from lbopt.studies.progress import Progress
    from lbopt.studies.study import Study


@dataclass(frozen=True, slots=True, kw_only=True)
class _Asked(Configuration):
    subject: Annotated[
        Path, Option("A step problem, JSON, with its result; the output folder of a study; or a store.", argument=True)
    ]
    result: Annotated[
        Path | None, Option("The result of the problem, JSON as `lbopt solve --out` writes it.", argument=True)
    ] = None
    strict: Annotated[
        bool,
        Option("Exit code 1 also where a claim on an answer is not established.", names=("--strict",), first=True),
    ] = False
    formal: Annotated[
        bool,
        Option(
            "Also ask the checker that is proved correct in Coq; `make proofs` builds it.",
            names=("--formal",),
            first=True,
        ),
    ] = False
    allow_code: Annotated[
        bool,
        Option("Run the policy files (file.py:function) that a folder names.", names=("--allow-code",), first=True),
    ] = False
    rescue: Annotated[Path | None, Option("New store for the rows of a store that are sound.", first=True)] = None


def _verify(**given: Any) -> None:
    """Check a result without a solver, repeat a study from its folder, or compare every row of a store with its hash.

    A result is checked in exact integers by code that shares nothing with the solvers, which says what of it is
    established. Exit code 1 if a claim is false. A bound that is only claimed, because the file holds no certificate
    for it, is listed as not verified; with --strict that is exit code 1 as well. Solver, seconds and stop reason cannot
    be verified. With --formal the certificate also has to satisfy the verified checker, or the exit code is 1.

    A study is repeated from its run.json, and every number but the times is compared. Exit code 1 if something differs.
    Python code that the folder names is run only with --allow-code, and only if it is what it was.

    Of a store damaged rows are named; the command that filled it computes them again. Exit code 1 if there is one, or
    if the file is damaged as a whole.

    Examples: `lbopt solve examples/one_step.json --out r.json && lbopt verify examples/one_step.json r.json` and
    `lbopt gap burstgpt-like --requests 2000 --states 10 --out again && lbopt verify again`
    """
    asked = from_words(_Asked, given)
    check_name(asked.subject, f"'{called(asked.subject)}'")
    if asked.result is not None:
        refuse_others(asked, "a result", ("strict", "formal"))
        _verify_result(asked, asked.result)
    elif asked.subject.is_dir() or not asked.subject.suffix:
        refuse_others(asked, "the folder of a study", ("allow_code",))
        rerun(asked.subject, asked.allow_code)
    elif asked.subject.suffix == ".json":
        raise InputError(f"'{called(asked.subject)}' is no folder and no store; of a problem name the result, too")
    else:
        refuse_others(asked, "a store", ("rescue",))
        _check_store(asked.subject, asked.rescue)


verify = as_verb(_verify, "verify", _verify.__doc__ or "", (_Asked,), {})


def _verify_result(asked: _Asked, result: Path) -> None:
    from lbopt import CertificateError, Result, StepProblem
    from lbopt import verify as check
    from lbopt.cli.console import remark, say
    from lbopt.solvers.certificates.formal import formal_bound

    chosen, claimed = StepProblem.from_json(asked.subject), Result.from_json(result)
    try:
        report = check(chosen, claimed)
        proved = formal_bound(chosen, claimed) if asked.formal else None
    except CertificateError as error:
        remark(f"rejected: {error}")
        raise typer.Exit(1) from None
    say(str(report))
    if proved is not None:
        say(f"established: no assignment is below {proved}, by the verified checker")
    if asked.strict and (report.unverified or not report.bound_established):
        raise typer.Exit(1)


def rerun(folder: Path, allow_code: bool) -> None:
    """Repeat a study from its run.json and compare every number but the times."""
    from lbopt.cli.console import ProgressBar, remark, say
    from lbopt.policies.editions import edition, edition_of
    from lbopt.policies.python_file import changed_code, refused_code
    from lbopt.report.difference import account_difference, folder_difference
    from lbopt.report.folder import provenance
    from lbopt.report.study_report import read_account, write_study_folder

    study, before = read_account(folder)
    if before.get("interrupted") or not before.get("finished", True):
        raise InputError(f"'{folder}' holds an interrupted study; run its command again: {before['command']}")
    if allow_code and (changed := changed_code(before.get("code", {}))) is not None:
        say(f"differs: {changed}")
        raise typer.Exit(1)
    source = f"'{folder / 'run.json'}'"
    with (
        tempfile.TemporaryDirectory() as scratch,
        refused_code(source, allowed=allow_code),
        edition(edition_of(before, source)),
    ):
        again = Path(scratch) / "again"
        with ProgressBar() as bar:
            outcome = _run_again(study, before, folder, bar, allow_code)
        if outcome.interrupted:
            raise KeyboardInterrupt
        difference = account_difference(study, before, outcome)
        if difference is None:
            write_study_folder(study.name, outcome, again, before["command"])
            difference = folder_difference(study, folder, again)
    if difference is None:
        say("identical: every number but the times")
        return
    say(f"differs: {difference}")
    now = provenance(before["command"])["versions"]
    for name, version in before["versions"].items():
        if now.get(name) != version and name != "rules":  # those of then were run
            remark(f"note: {name} was {version}, is {now.get(name, 'missing')}")
    raise typer.Exit(1)


def _run_again(study: Study, before: dict[str, Any], folder: Path, progress: Progress, allow_code: bool) -> Any:
    """Return the outcome of the study that a `run.json` describes."""
    if study.name == "cost":  # its loads are not in its folder: its command names them
        from lbopt.cli.cost import run_command

        return run_command(before["command"], progress, allow_code=allow_code)
    config = study.config_of(before, str(folder / "run.json"))
    return study.run(config, progress)


def _check_store(path: Path, rescue: Path | None) -> None:
    from lbopt.cli.console import remark, say
    from lbopt.runner.store import check_store
    from lbopt.runner.store import rescue as save

    found = check_store(path)
    for row in found.damaged:
        say(f"damaged: {row}")
    if found.structure is not None:
        say(f"damaged: the file as a whole ({found.structure}); rows may be missing altogether")
    say(f"{found.sound} rows are what was written, {len(found.damaged)} are damaged: {path}")
    if found.version == 1:
        remark("note: this store has no hashes of rows; the next run that writes to it adds them")
    if rescue is not None:
        save(found, rescue)
        say(f"saved {found.sound} rows: {rescue}")
    if not found.whole:
        raise typer.Exit(1)
