"""What an audit found."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

from lbopt.display import Displayed
from lbopt.instances.router_log import ColumnReading
from lbopt.studies.audit.config import AuditConfig
from lbopt.studies.audit.findings import Finding
from lbopt.studies.audit.gaps import OneStepGaps
from lbopt.studies.audit.happened import Happened
from lbopt.studies.audit.law_from_log import LawFromLog
from lbopt.studies.audit.recommendation import Recommendation
from lbopt.studies.audit.rules import RuleRun


@dataclass(frozen=True, slots=True)
class Sensitivity:
    """The recommended rule's change when the law is at an end of its interval."""

    law: str
    change: float


@dataclass(frozen=True, slots=True)
class Moment:
    """Loads at a time of the log: seconds, and tokens of the heaviest and of the mean worker, means around it."""

    seconds: float
    heaviest: float
    mean: float


@dataclass(slots=True, eq=False, repr=False)
class AuditOutcome(Displayed):
    """The answers, in the order in which they are found.

    Parameters
    ----------
    config
        What was asked.
    columns, left_out, endings
        How the log was read, why rows of it are not in it, and how the attempts ended.
    workers
        Names of the workers.
    law, happened, findings
        The step-time law, what happened, and what the model does not have.
    over_time
        Loads over the logged time.
    runs
        The log itself, then each rule; empty where none was run.
    recommendation
        What to do.
    sensitivity
        The change under other laws.
    gaps
        One-step gaps to the optimum; None where none were asked for or found.
    notes, interrupted
        As for every study.
    """

    config: AuditConfig
    columns: tuple[ColumnReading, ...]
    left_out: dict[str, int]
    endings: dict[str, int]
    workers: tuple[str, ...]
    law: LawFromLog
    happened: Happened
    findings: list[Finding]
    over_time: list[Moment]
    runs: list[RuleRun]
    recommendation: Recommendation
    sensitivity: list[Sensitivity] = field(default_factory=list)
    gaps: OneStepGaps | None = None
    notes: list[str] = field(default_factory=list)
    interrupted: bool = False

    def __repr__(self) -> str:
        return f"<AuditOutcome {self.config.log}: {self.recommendation.verdict} {self.recommendation.rule or ''}>"

    def to_dict(self) -> dict[str, Any]:
        """Return the answers as plain data; no request's id is among them."""
        return {
            "columns": [asdict(reading) for reading in self.columns],
            "left_out": self.left_out,
            "endings": self.endings,
            "workers": list(self.workers),
            "law": asdict(self.law),
            "happened": self.happened.to_dict(),
            "findings": [finding.to_dict() for finding in self.findings],
            "over_time": [asdict(moment) for moment in self.over_time],
            "rules": [asdict(run) for run in self.runs],
            "recommendation": self.recommendation.to_dict(),
            "sensitivity": [asdict(one) for one in self.sensitivity],
            "one_step_gaps": None if self.gaps is None else self.gaps.to_dict(),
            "notes": self.notes,
        }
