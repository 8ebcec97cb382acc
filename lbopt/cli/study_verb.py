"""The command of a study, made of its record: options and settings from its configuration, help from its text.

Three ask for more than their configuration: `audit` writes its page twice, `gap` runs no whole traces where problems
are given, and `prefill` has the instances beside the rules.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lbopt.cli.carry_out import carry_out
from lbopt.cli.from_config import as_verb, parameter
from lbopt.studies.configuration import from_words
from lbopt.studies.registry import find_study
from lbopt.studies.study import Study

if TYPE_CHECKING:
    from lbopt.studies.audit import AuditOfGroups, AuditOutcome
    from lbopt.studies.progress import Progress

_ENGINE = (
    "Where tasks run: **serial**, **joblib** or `joblib:jobs=8`, **isolated**, **dask** (processes of this machine), "
    "`dask://host:port` or `dask+tls://host:port`."
)
_STORE = "SQLite file of results; what it holds is not run again [default: none is kept]."

OUT = parameter("out", Annotated[str | None, typer.Option("--out", "-o", help="Output folder.")], None)
#: How tasks run.
EXECUTION = {
    "engine": parameter("engine", Annotated[str, typer.Option(help=_ENGINE)], "serial"),
    "store": parameter("store", Annotated[Path | None, typer.Option(help=_STORE)], None),
    "collect_only": parameter(
        "collect_only",
        Annotated[bool, typer.Option("--collect-only", help="Run nothing: take the results that the store holds.")],
        False,
    ),
}


def study_verb(name: str) -> Callable[..., None]:
    """Return the command of the study `name`: it asks for the configuration, where to run, and the folder."""
    study, kinds = find_study(name), list[type[Any]]()
    if name == "prefill":
        from lbopt.studies.prefill.study import Instances

        kinds.append(Instances)
    if name == "audit":
        from lbopt.studies.audit.ranks import RankOptions

        kinds.append(RankOptions)

    def verb(**given: Any) -> None:
        out = study.folder if given["out"] is None else given["out"]
        if name == "audit":
            from lbopt.cli.rank_audit import audit_of_ranks, is_of_ranks

            if is_of_ranks(given):
                of_ranks, run = audit_of_ranks(given)
                carry_out("ranks", of_ranks, out, run)
                return
        execution = {key: given[key] for key in EXECUTION} if study.tasks else {}
        config = _config(study, given)
        if name == "audit":
            execution["run"] = _audit(config, out)
        carry_out(name, config, out, **execution)

    more = (EXECUTION if study.tasks else {}) | {"out": _out(study.folder)}
    return as_verb(verb, name, study.help, [study.config, *kinds], more)


def _out(folder: str | None) -> Any:
    return OUT if folder is None else OUT.replace(default=folder)


def _config(study: Study, given: dict[str, Any]) -> Any:
    if study.name == "prefill":
        from lbopt.studies.prefill.study import Instances

        return from_words(study.config, given, setting=from_words(Instances, given).setting)
    if study.name == "gap" and given.get("problems") is not None:
        given = given | {"long_runs": False}
    return from_words(study.config, given)


def _audit(config: Any, out: str | None) -> Callable[[Progress], AuditOutcome | AuditOfGroups]:
    """Return what runs an audit: it writes the page, then looks at single decisions and writes it again with them."""
    from lbopt.studies.audit import run_audit

    def early(outcome: AuditOutcome) -> None:
        if out and config.states:
            from lbopt.cli.console import command_line, remark
            from lbopt.report.study_report import write_study_folder

            write_study_folder("audit", outcome, Path(out), command_line())
            remark(f"page: {Path(out) / 'report.html'}; now single decisions are compared with the best ones")

    return lambda progress: run_audit(config, progress, tell=early)
