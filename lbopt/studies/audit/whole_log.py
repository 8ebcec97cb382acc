"""`run_audit`: a log read, its groups of workers found, each audited by itself, and their money added.

Requests never move between groups, and no worker waits for one of another group: each has a step-time law, rules, a
recommendation and workers that it needs. GPUs are shared among groups by their workers.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from lbopt.exceptions import InputError
from lbopt.instances.router_log import RouterLog, read_router_log, with_record
from lbopt.studies.audit.config import AuditConfig
from lbopt.studies.audit.groups import Group, groups_of, only
from lbopt.studies.audit.recommendation import Recommendation
from lbopt.studies.audit.study import LEAST_REQUESTS, AuditOutcome, audit_group
from lbopt.studies.progress import Progress
from lbopt.studies.study import Outcome, Study

Tell = Callable[[AuditOutcome], None]


@dataclass(slots=True, eq=False, repr=False)
class AuditOfGroups(Outcome):
    """The answers for a log whose workers meet at several barriers.

    Parameters
    ----------
    config
        What was asked.
    groups
        The answers for each group of workers, by its name.
    recommendation
        What to do together: workers and money are sums.
    notes, interrupted
        As for every study.
    """

    config: AuditConfig
    groups: dict[str, AuditOutcome]
    recommendation: Recommendation = field(default_factory=lambda: Recommendation(verdict="withheld"))

    @property
    def parts(self) -> dict[str, AuditOutcome]:
        """The groups."""
        return self.groups

    def __repr__(self) -> str:
        return f"<AuditOfGroups {self.config.log}: {len(self.groups)} groups, {self.recommendation.verdict}>"

    def to_dict(self) -> dict[str, Any]:
        """Return the answers as plain data; no request's id is among them."""
        return {
            "groups": {name: outcome.to_dict() for name, outcome in self.groups.items()},
            "recommendation": self.recommendation.to_dict(),
            "notes": self.notes,
        }


def run_audit(
    config: AuditConfig, progress: Progress | None = None, *, tell: Tell | None = None
) -> AuditOutcome | AuditOfGroups:
    """Read a log and answer; Ctrl-C keeps what is done.

    Parameters
    ----------
    tell
        Of a log of one group, is given the outcome before the one-step gaps are looked for, which take longest.
    """
    log = read_router_log(config.log, columns=config.named_columns, unit=config.unit)
    log = with_record(log, config.log)
    return audit_log(log, config, progress, tell=tell)


def audit_log(
    log: RouterLog, config: AuditConfig, progress: Progress | None = None, *, tell: Tell | None = None
) -> AuditOutcome | AuditOfGroups:
    """Answer for a log that is read already; the parameters are those of `run_audit`.

    Parameters
    ----------
    config
        What is asked; its file is not read.
    progress, tell
        As for `run_audit`.
    """
    log = only(log, config.only)
    groups, notes = ([Group("", log)], []) if config.is_one_group else groups_of(log)
    if len(groups) == 1:
        outcome = audit_group(log, config, progress, tell=tell)
        outcome.notes += notes
        return outcome
    found = AuditOfGroups(config=config, groups={}, notes=notes)
    workers = len(log.workers)
    with found.clocked():
        for group in groups:
            finished, share = int(group.log.is_finished.sum()), len(group.log.workers)
            if finished < LEAST_REQUESTS:
                found.notes.append(
                    f"{group.name}: {finished} requests ran to their end; it is left out, since fewer than "
                    f"{LEAST_REQUESTS} do not tell one rule from another"
                )
                continue
            asked = replace(config, gpus=_gpus(config, share, workers))
            try:
                found.groups[group.name] = audit_group(group.log, asked, progress)
            except InputError as error:
                raise InputError(f"{group.name}: {error}") from None
            if found.groups[group.name].interrupted:
                found.interrupted = True
                break
    if not found.groups:
        raise InputError(f"log '{log.name}' has {len(groups)} groups of workers: {'; '.join(found.notes)}")
    found.recommendation = _together(found)
    return found


def _gpus(config: AuditConfig, share: int, workers: int) -> int | None:
    """Return the GPUs of a group, by its share of the workers."""
    if config.gpus is None:
        return None
    if config.gpus * share % workers:
        raise InputError(
            f"gpus is {config.gpus}, which {workers} workers in several groups cannot share evenly; audit each group "
            "with its own: --only, as in --only model=NAME"
        )
    return config.gpus * share // workers


def _together(found: AuditOfGroups) -> Recommendation:
    """Return the sum of the groups' recommendations: workers that are needed, and money."""
    config, parts = found.config, found.groups
    best = {name: outcome.recommendation for name, outcome in parts.items()}
    switching = [name for name, one in best.items() if one.verdict == "switch"]
    total = sum(outcome.happened.workers for outcome in parts.values())
    needed = sum(best[name].workers or outcome.happened.workers for name, outcome in parts.items())
    months = [one.per_month for one in best.values() if one.per_month is not None]
    sentences = [
        f"The workers of this log meet at {len(parts)} barriers, and requests do not move between them; each group is "
        "judged by itself."
    ]
    if not switching:
        verdict = "stay" if any(one.verdict == "stay" for one in best.values()) else "withheld"
        return Recommendation(verdict=verdict, sentences=(*sentences, "None has to switch."))
    for name in switching:
        one = best[name]
        assert one.change is not None
        change = f"{100 * one.change:+.1f}".replace("-", "−")
        sentences.append(f"{name}: switch to {one.rule}, {change} % time per token.")
    text = f"Together {needed} of {total} workers serve these requests no slower than the log"
    if months:
        text += f": worth {sum(months):,.0f} {config.currency} a month, if the others are given back"
    return Recommendation(
        verdict="switch",
        workers=needed,
        per_month=sum(months) if months else None,
        sentences=(*sentences, f"{text}."),
    )


HELP = """Read a router's log and say whether another rule would serve the same requests faster.

The log has one row a request: id, arrival, start of decoding, finish, prompt tokens, output tokens, worker. Columns are
recognised by their names and contents, and shown. Workers that meet at one barrier are found from the models that they
serve and from their clocks; each group is audited by itself. The step-time law is fitted to the log's own times; each
rule then runs over the same requests with that law. With --out, writes report.html, audit.json, rules.csv, rules.png,
rules.svg and run.json; none of them shows a request's id.

Example: `lbopt audit examples/logs/fleet.csv --price 2.5 --gpus 8 --out my-audit`
"""

STUDY = Study(name="audit", config=AuditConfig, help=HELP, run=run_audit, account=("interrupted", "notes"))
