"""`lbopt audit`: from a router's log to a decision."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from lbopt.cli.carry_out import carry_out
from lbopt.cli.from_config import parameters
from lbopt.cli.study_verb import as_verb
from lbopt.studies.audit import AuditConfig, run_audit
from lbopt.studies.audit.study import STUDY
from lbopt.studies.configuration import from_words

if TYPE_CHECKING:
    from lbopt.studies.audit import AuditOutcome
    from lbopt.studies.progress import Progress


def audit(**given: Any) -> None:
    """Read the log, write the page, then look at single decisions and write it again with them."""
    config, out = from_words(AuditConfig, given), given["out"]

    def early(outcome: AuditOutcome) -> None:
        if out and config.states:
            from lbopt.cli.console import command_line, remark
            from lbopt.report.study_report import write_study_folder

            write_study_folder("audit", outcome, Path(out), command_line())
            remark(f"page: {Path(out) / 'report.html'}; now single decisions are compared with the best ones")

    def run(progress: Progress) -> AuditOutcome:
        return run_audit(config, progress, tell=early)

    carry_out("audit", config, out, run)


as_verb(audit, "audit", STUDY.help, parameters(AuditConfig).values())
