"""`audit_group`: from a log of one barrier to a recommendation, through reconstruction, findings and rules."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from lbopt.exceptions import InputError
from lbopt.files import listed
from lbopt.instances.router_log import ColumnReading, RouterLog
from lbopt.model import Eligibility
from lbopt.simulator import ceilings
from lbopt.studies.audit.config import AuditConfig
from lbopt.studies.audit.course import Floats
from lbopt.studies.audit.findings import (
    Finding,
    OddWorker,
    counting,
    find_departures,
    no_barrier,
    odd_worker,
    waited_with_a_free_slot,
)
from lbopt.studies.audit.groups import names_of_served, served_by
from lbopt.studies.audit.happened import (
    Happened,
    OneStepGaps,
    modelled_seconds,
    modelled_tpot,
    one_step_gaps,
    what_happened,
    without_noise,
)
from lbopt.studies.audit.law_from_log import LawFromLog, Reconstruction, reconstruct
from lbopt.studies.audit.logging_rule import failed_check, is_of, recognised, spread_of_the_log
from lbopt.studies.audit.recommendation import Recommendation, recommend
from lbopt.studies.audit.rules import (
    RuleRun,
    beside_the_log,
    fewest_workers,
    kept_of,
    requests_of,
    run_rule,
    setting_of,
    shares_of,
)
from lbopt.studies.progress import Progress, Silent
from lbopt.studies.study import Outcome


@dataclass(frozen=True, slots=True)
class Moment:
    """Loads at a time of the log: seconds, and tokens of the heaviest and of the mean worker, means around it."""

    seconds: float
    heaviest: float
    mean: float


@dataclass(slots=True, eq=False, repr=False)
class AuditOutcome(Outcome):
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
    gaps: OneStepGaps | None = None

    @property
    def parts(self) -> dict[str, AuditOutcome]:
        """The outcome of the one group, which needs no name."""
        return {"": self}

    def __repr__(self) -> str:
        return f"<AuditOutcome {self.config.log}: {self.recommendation.verdict} {self.recommendation.rule or ''}>"

    def to_dict(self) -> dict[str, Any]:
        """Return the answers as plain data; no request's id is among them."""
        return {
            "columns": [asdict(reading) for reading in self.columns],
            "left_out": self.left_out,
            "endings": self.endings,
            "workers": list(self.workers),
            "law": {name: value for name, value in asdict(self.law).items() if name != "drawn"},
            "happened": self.happened.to_dict(),
            "findings": [finding.to_dict() for finding in self.findings],
            "over_time": [asdict(moment) for moment in self.over_time],
            "rules": [run.to_dict() for run in self.runs],
            "recommendation": self.recommendation.to_dict(),
            "one_step_gaps": None if self.gaps is None else self.gaps.to_dict(),
            "notes": self.notes,
        }


#: Fewer finished requests than this say nothing of a fleet.
LEAST_REQUESTS = 100
#: Share of attempts that may lack an end in the middle of a log.
MOST_ENDLESS = 0.005
#: Points of the picture of loads over time.
_MOMENTS = 120


def audit_group(
    log: RouterLog,
    config: AuditConfig,
    progress: Progress | None = None,
    *,
    tell: Callable[[AuditOutcome], None] | None = None,
) -> AuditOutcome:
    """Answer for a log whose workers meet at one barrier; Ctrl-C keeps what is done.

    Parameters
    ----------
    config
        What is asked; its file is not read.
    tell
        Is given the outcome before the one-step gaps are looked for, which take longest.
    """
    shown = progress or Silent()
    finished = int(log.is_finished.sum())
    if finished < LEAST_REQUESTS:
        raise InputError(
            f"log '{log.name}' has {finished} requests that ran to their end; expected at least {LEAST_REQUESTS}, "
            "because fewer do not tell one rule from another"
        )
    _refuse_endless(log)
    found, odd = fleet_of(log, config.seed)
    slots = _slots(config, found)
    happened = what_happened(found, slots)
    served = served_by(log)
    findings = [*_eligibility(log, served), *find_departures(found, slots, odd)]
    outcome = AuditOutcome(
        config=config,
        columns=log.columns,
        left_out=dict(log.left_out),
        endings=dict(Counter(log.ending.tolist())),
        workers=log.workers,
        law=found.law,
        happened=happened,
        findings=findings,
        over_time=_over_time(found),
        runs=[],
        recommendation=recommend(config, found.law, happened, findings, ()),
        notes=[*log.notes, *_notes(config, found, slots), *_notes_of(odd)],
    )
    with outcome.clocked():
        # Where load costs no time, every rule takes the same: there is nothing to be run.
        if not any(finding.forbids for finding in findings) and len(log.workers) > 1 and found.law.per_token > 0:
            _judge(outcome, found, (slots, served), shown)
        if tell is not None:
            tell(outcome)
        if config.states and odd is None and not any(finding.forbids for finding in findings):
            asked = (config.states, config.time_limit, config.seed)
            outcome.gaps = one_step_gaps(found, slots, *asked, shown, served)
    if outcome.interrupted and outcome.recommendation.rule is None and len(outcome.runs) <= len(config.rules):
        outcome.recommendation = Recommendation(
            verdict="withheld", sentences=("No recommendation: stopped before all rules had been run.",)
        )
    return outcome


def _eligibility(log: RouterLog, served: Eligibility | None) -> list[Finding]:
    """Return the finding that only some of the workers serve a model or an adapter."""
    if served is None:
        return []
    share = 1 - float(np.asarray(served.allowed.all(axis=1))[served.kind].mean())
    named = [f"{name} on {listed(workers)}" for name, workers in names_of_served(log, served).items()]
    return [
        Finding(
            "eligibility",
            f"Only some of the workers at this barrier serve the model or adapter of {share:.0%} of the requests: "
            f"{listed(named)}. Every rule below sends these requests to none but them",
        )
    ]


def fleet_of(log: RouterLog, seed: int = 0) -> tuple[Reconstruction, OddWorker | None]:
    """Return the log's fleet, and its worker of another speed, where it has one: its tokens then count accordingly.

    Parameters
    ----------
    log
        A log with at least some requests that ran to their end.
    """
    found = reconstruct(log, seed)
    odd = None if no_barrier(found) else odd_worker(found)
    return (found, None) if odd is None else counting(found, odd, seed)


def _refuse_endless(log: RouterLog) -> None:
    """Refuse a log with many attempts that have no end although they must have come to one: their ends were lost."""
    done = log.is_finished
    lasted = (log.finish - log.start)[done]
    per_token = float(np.median(lasted / log.output[done]))
    at_most = np.where(log.output > 0, 2 * per_token * log.output, 1.5 * float(lasted.max()))
    endless = np.isnan(log.finish) & (log.start + at_most < log.span)
    count = int(endless.sum())
    if count > max(3, MOST_ENDLESS * len(log)):
        raise InputError(
            f"log '{log.name}' has {count:,} attempts without a finish that would have run for far longer than "
            "requests of this log do; give their finish, or leave them out"
        )


def _slots(config: AuditConfig, found: Reconstruction) -> int:
    most = found.course.most_running
    if config.slots is not None and config.slots < most:
        raise InputError(
            f"slots is {config.slots}, but a worker of log '{found.log.name}' ran {most} requests at once; "
            f"expected at least {most}"
        )
    return config.slots or max(most, 1)


def _notes(config: AuditConfig, found: Reconstruction, slots: int) -> list[str]:
    notes = []
    if config.slots is None:
        notes.append(f"slots per worker are taken to be {slots}, the most that a worker ran at once; --slots says more")
    if len(found.log.workers) < 2:
        notes.append("the log has one worker: there is nothing to be balanced")
    return notes


def _notes_of(odd: OddWorker | None) -> list[str]:
    if odd is None:
        return []
    return [
        "one-step gaps and the fewest workers are left out: both would take all workers to be equally fast, which "
        f"worker {odd.worker} is not"
    ]


def _over_time(found: Reconstruction) -> list[Moment]:
    """Return mean loads in equal stretches of the time in which anything runs."""
    course, G = found.course, len(found.log.workers)
    weight = course.seconds * course.is_busy
    edges = np.linspace(course.begin[0], course.end[-1], _MOMENTS + 1)
    place = np.clip(np.searchsorted(edges, (course.begin + course.end) / 2, side="right") - 1, 0, _MOMENTS - 1)
    total = np.bincount(place, weight, _MOMENTS)
    heaviest = np.bincount(place, weight * course.heaviest, _MOMENTS)
    mean = np.bincount(place, weight * course.work / G, _MOMENTS)
    return [
        Moment(float((edges[k] + edges[k + 1]) / 2), float(heaviest[k] / total[k]), float(mean[k] / total[k]))
        for k in range(_MOMENTS)
        if total[k] > 0
    ]


def _judge(
    outcome: AuditOutcome, found: Reconstruction, fleet: tuple[int, Eligibility | None], shown: Progress
) -> None:
    """Run the rules, recommend, and find the fewest workers.

    Parameters
    ----------
    fleet
        Slots of a worker, and which workers serve each request of the log.
    """
    slots, served = fleet
    config, log, law, happened = outcome.config, found.log, found.law, outcome.happened
    begin, ready = without_noise(found, log.start), without_noise(found, _ready(found, slots))
    requests = requests_of(log, ready, found.attempts.tokens, served)
    modelled, waited = modelled_tpot(found)[requests.rows], (begin - ready)[requests.rows]
    rows = requests.counted & np.isfinite(modelled)
    requests = replace(requests, counted=rows)
    setting = setting_of(len(log.workers), slots, law.fixed, law.per_token, found.scale)
    of_ceiling = ceilings(requests.trace, setting).seconds / modelled_seconds(found)
    outcome.runs.append(_of_the_log(happened, modelled[rows], waited[rows], of_ceiling))
    shares = shares_of(law, float(found.course.heaviest @ found.steps) / max(float(found.steps.sum()), 1e-12))
    logged = config.logged or log.rule or recognised(found, served)
    shown.begin("rules", len(config.rules))
    for rule in config.rules:
        outcome.runs.append(run_rule(rule, requests, setting, (modelled, waited), config.seed, shares=shares))
        shown.advance()
    runs = outcome.runs[1:]
    if logged is not None and not any(is_of(run, logged) for run in runs):
        runs.append(run_rule(logged, requests, setting, (modelled, waited), config.seed, shares=shares))
    spread = spread_of_the_log(logged, runs)
    runs = [beside_the_log(run, outcome.runs[0], spread) for run in runs]
    outcome.runs[1:] = runs[: len(config.rules)]
    if logged is not None:
        by = "" if config.logged else ", by the router's record" if log.rule else ", by its choices"
        outcome.notes.append(f"the rule that wrote the log is {logged}{by}")
    knows_waits = bool((log.arrival < log.start).any())
    asked = (config, law, happened, outcome.findings, outcome.runs)
    outcome.recommendation = recommend(*asked, knows_waits=knows_waits)
    wrong = None if config.accept_misfit else failed_check(logged, runs)
    if wrong is not None and outcome.recommendation.verdict != "withheld":
        outcome.recommendation = Recommendation(verdict="withheld", sentences=(f"No recommendation: {wrong}",))
    best = outcome.recommendation.rule
    if best is None:
        return
    shown.begin("fewest workers", 1)
    needed = None
    if found.scale is None:
        needed = fewest_workers(
            best,
            requests,
            law,
            (len(log.workers), slots),
            (outcome.runs[0], modelled, waited),
            wait_may_grow=outcome.happened.wait_may_grow,
            more_slots=config.slots is None,
            seed=config.seed,
        )
        if served is not None and needed < len(log.workers):
            given = np.delete(np.array(log.workers), kept_of(served, needed))
            outcome.notes.append(
                f"workers that serve the same models and adapters are given back in proportion: {listed(given)}"
            )
    outcome.recommendation = recommend(*asked, needed=needed, knows_waits=knows_waits)
    shown.advance()


def _ready(found: Reconstruction, slots: int) -> Floats:
    """Return the seconds from which each request may start, (N,).

    What every request waits, for prefill say, is no rule's merit: it is taken off every wait. Requests that wait longer
    than that with a free slot are ready when they start.
    """
    log = found.log
    waited = log.start - log.arrival
    always = float(np.quantile(waited, 0.02))
    ready = np.minimum(log.arrival + always, log.start)
    return np.asarray(np.where(waited_with_a_free_slot(found, slots), log.start, ready))


def _of_the_log(happened: Happened, modelled: np.ndarray, waited: np.ndarray, of_ceiling: float) -> RuleRun:
    return RuleRun(
        rule="as logged",
        admission="",
        tpot_mean=float(modelled.mean()),
        tpot_p95=float(np.quantile(modelled, 0.95)),
        wait_mean=float(waited.mean()),
        wait_p99=float(np.quantile(waited, 0.99)),
        idle_share=happened.idle_share,
        **{"change": 0.0, "change_interval": (0.0, 0.0), "wait_change_interval": (0.0, 0.0)},
        spread=(0.0, 0.0),
        share_of_ceiling=of_ceiling,
    )
