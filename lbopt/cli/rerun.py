"""`lbopt rerun`: do it again, and name the first number that differs."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from lbopt.studies.progress import Progress
    from lbopt.studies.study import Study


def rerun(
    folder: Annotated[Path, typer.Argument(help="Output folder of any study, such as `lbopt gap` or `lbopt check`.")],
    allow_code: Annotated[
        bool, typer.Option("--allow-code", help="Run the policy files (file.py:function) that the folder names.")
    ] = False,
) -> None:
    """Repeat a study from its run.json and compare every number but the times.

    Exit code 1 if something differs. Python code that the folder names is run only with --allow-code, and only if it
    is what it was.

    Example: `lbopt gap burstgpt-like --requests 2000 --states 10 --out again && lbopt rerun again`
    """
    from lbopt.cli.console import ProgressBar, remark, say
    from lbopt.exceptions import InputError
    from lbopt.policies.editions import edition, edition_of
    from lbopt.policies.python_file import changed_code, refused_code
    from lbopt.report.difference import account_difference, folder_difference
    from lbopt.report.provenance import provenance
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
