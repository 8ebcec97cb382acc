"""`run_hindsight`: run rules, take the timetable of each run, and say how far each was from its clairvoyant optimum.

Rules that admit the same requests in the same steps share a timetable, and each placement of one is tried for all.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from typing import Annotated, Any

import numpy as np

from lbopt.exceptions import InputError
from lbopt.hindsight.interval import ClairvoyantInterval, Ends, clairvoyant_interval, narrowed, seconds_of
from lbopt.hindsight.timetable import IntArray, Timetable
from lbopt.model import Trace
from lbopt.policies import Policy, make_policy
from lbopt.simulator import Run, ceilings, simulate
from lbopt.solvers.budget import Budget
from lbopt.studies.configuration import Configuration, Option
from lbopt.studies.grid import Row
from lbopt.studies.progress import Progress, Silent
from lbopt.studies.scenario import Scenario
from lbopt.studies.study import Outcome, Study
from lbopt.studies.training import refuse_logs_of_other_requests, said_of_training, training_for, with_training

DEFAULT_POLICIES = ("fcfs", "round-robin", "jsq-load", "max-min", "br-0", "auto")

#: Whose starts are those of first come, first served.
FIRST_COME = "fcfs"


@dataclass(frozen=True, slots=True, kw_only=True)
class HindsightConfig(Configuration):
    """Configuration of a study of hindsight.

    Its scenario has no workers in detail. `effort` are exchanges of chains for each step of a timetable, and, without a
    limit of time, seconds of the exact search of a small run (`lbopt.hindsight.optimum`). A search that `time_limit`
    ends may differ from run to run.
    """

    what = "a study of hindsight"

    scenario: Scenario = field(default_factory=Scenario)
    policies: Annotated[
        tuple[str, ...],
        Option(
            "Rule to judge, e.g. `auto`; may be given again.",
            names=("--policy", "-p"),
            key="policy",
            first=True,
        ),
    ] = DEFAULT_POLICIES
    seed: Annotated[int, Option("First seed.", first=True, low=0)] = 0
    effort: Annotated[
        int,
        Option(
            "Exchanges that the search tries, for each step of a run; without a time limit also seconds for the exact "
            "search of a small run.",
            first=True,
            low=1,
            expected="1 exchange for each step, or more",
        ),
    ] = 20
    time_limit: Annotated[
        float | None,
        Option(
            "Seconds of search for each timetable.",
            first=True,
            shown="no limit",
            low=sys.float_info.min,
            expected="seconds above 0, or none",
        ),
    ] = None

    def check(self) -> None:
        """Refuse workers in detail, and logs of other requests; keep requests to learn from."""
        if self.scenario.detail is not None:
            raise InputError(
                f"detail is '{self.scenario.detail}': where workers pre-empt, draft or leave, how long a request runs "
                "depends on its worker, and there is no timetable; leave detail out"
            )
        chosen = self.build()
        refuse_logs_of_other_requests(self.scenario.requests, chosen)
        object.__setattr__(self, "scenario", with_training(self.scenario, chosen))

    def build(self) -> list[Policy]:
        """Return the policies, built anew."""
        return [make_policy(spec) for spec in self.policies]


class RuleInHindsight(Row):
    """A rule's run beside what was possible with all lengths known.

    Parameters
    ----------
    rule, admission
        Its name, and "immediate" or "pooled".
    tokens, steps
        Tokens that the requests emit, and steps in which something runs.
    barriers, imbalance
        Sums over these steps, tokens.
    seconds
        Of these steps.
    timetable
        Place in `HindsightOutcome.intervals` of its starts.
    optimum_imbalance, optimum_seconds
        The least that any placement of the same starts has, between two certified ends.
    share_of_ceiling
        Least seconds of any rule, whomever it admits and when, over `seconds`.
    first_come_seconds
        `optimum_seconds` of the starts of first come, first served.
    is_proved
        Whether the least imbalance of its starts is proved: both ends are one number, which no solver claims.
    optimum
        How sure that number is: "checked", "by the search", "claimed by" and a solver, or "open".
    tokens_per_second, mean_imbalance
        While something runs; of a step in the mean, tokens.
    ratio, imbalance_ratio
        Its competitive ratio on this run, in time and in imbalance: between what is proved and what is possible; the
        latter's high end is infinite where an optimum without imbalance cannot be excluded.
    imbalance_above
        Its imbalance less that of the optimum, tokens summed over the steps; finite where the ratio is not.
    first_come_ratio
        Its seconds over those of the best placement of the starts of first come, first served; may be below 1.
    """


@dataclass(slots=True, eq=False, repr=False)
class HindsightOutcome(Outcome):
    """All rules, and the intervals of their timetables.

    Parameters
    ----------
    trace
        Name, digest and number of the requests.
    rules
        One row a rule, in the order asked for.
    intervals
        One a timetable, that of first come, first served at the beginning.
    ceiling_tokens_per_second
        What no rule can pass.
    """

    config: HindsightConfig
    trace: dict[str, Any]
    rules: list[RuleInHindsight] = field(default_factory=list)
    intervals: list[ClairvoyantInterval] = field(default_factory=list)
    ceiling_tokens_per_second: float = 0.0

    @property
    def fastest(self) -> RuleInHindsight:
        """The rule with most tokens a second."""
        return min(self.rules, key=lambda one: one.seconds)


#: Seconds of the exact search of a small run for each unit of effort, where there is no limit of time.
SECONDS_OF_EFFORT = 1.0

_STOPPED = (
    "a search was stopped before its end: its interval holds the optimum, but another run may find another one; a "
    "larger --time-limit, or none with a larger --effort, may prove the optimum or find the same interval each time"
)


@dataclass(slots=True, eq=False)
class _Starts:
    """A timetable, and the rules that keep it."""

    timetable: Timetable
    known: dict[str, IntArray] = field(default_factory=dict)


def timetable_of(run: Run) -> tuple[Timetable, IntArray]:
    """Return when the requests of a run start and end, and where each of them ran.

    Parameters
    ----------
    run
        A run of the simulator without workers in detail.
    """
    if run.happened is not None:
        raise InputError("a run of workers in detail has no timetable: how long a request runs depends on its worker")
    start, fleet = run.requests["start_step"], run.setting.fleet
    order = np.argsort(start, kind="stable")
    table = Timetable(
        fleet.num_workers, fleet.slots_per_worker, start[order], run.trace.prompt[order], run.trace.output[order]
    )
    return table, run.requests["worker"][order].astype(np.int64)


def run_hindsight(config: HindsightConfig, progress: Progress | None = None) -> HindsightOutcome:
    """Run the rules, and bound the optimum of each timetable; Ctrl-C keeps the rules that have run."""
    shown, scenario, policies = progress or Silent(), config.scenario, config.build()
    requests = scenario.requests.draw_for(config.seed)
    outcome = HindsightOutcome(config, {"name": requests.name, "digest": requests.digest, "requests": len(requests)})
    outcome.notes += said_of_training(scenario, policies)
    outcome.ceiling_tokens_per_second = ceilings(requests, scenario.setting).tokens_per_second
    runs: list[tuple[Run, int, IntArray]] = []
    starts: dict[bytes, _Starts] = {}
    with outcome.clocked():
        _run_rules(config, requests, policies, runs, starts, shown)
        shown.begin("what was possible with all lengths known", len(starts))
        for one in starts.values():
            outcome.intervals.append(_interval(config, requests, one, search=True))
            shown.advance()
            if outcome.intervals[-1].placed.interrupted:
                raise KeyboardInterrupt
    for one in list(starts.values())[len(outcome.intervals) :]:  # Ctrl-C ended the search
        outcome.intervals.append(_interval(config, requests, one, search=False))
    outcome.rules = [_judged(outcome, run, place, worker) for run, place, worker in runs]
    if not all(one.placed.complete for one in outcome.intervals):
        outcome.notes.append(_STOPPED)
    return outcome


def _run_rules(
    config: HindsightConfig,
    requests: Trace,
    policies: list[Policy],
    runs: list[tuple[Run, int, IntArray]],
    starts: dict[bytes, _Starts],
    shown: Progress,
) -> None:
    """Run first come, first served and each rule.

    Parameters
    ----------
    runs
        Each rule's run, the place of its timetable and its placement are appended.
    starts
        Timetables by their contents, in the order in which they come; added to.
    """
    scenario = config.scenario
    training = training_for(scenario, policies, config.seed)
    asked = [(policy, True) for policy in policies]
    if all(policy.name != FIRST_COME for policy in policies):
        asked.insert(0, (make_policy(FIRST_COME), False))
    else:  # its timetable is the first
        asked.sort(key=lambda one: one[0].name != FIRST_COME)
    shown.begin("rules", len(asked))
    found: dict[str, tuple[Run, int, IntArray]] = {}
    try:
        for policy, is_asked in asked:
            run = simulate(requests, policy, scenario.setting, seed=config.seed, training=training)
            table, worker = timetable_of(run)
            key = b"".join(getattr(table, name).tobytes() for name in ("start", "prompt", "output"))
            one = starts.setdefault(key, _Starts(table))
            one.known[policy.name] = worker
            if is_asked:
                found[policy.name] = (run, list(starts).index(key), worker)
            shown.advance()
    finally:  # Ctrl-C keeps what has ended
        runs += [found[policy.name] for policy in policies if policy.name in found]


def _interval(config: HindsightConfig, requests: Trace, one: _Starts, *, search: bool) -> ClairvoyantInterval:
    """Return the interval of a timetable: by chains, and in a small run by the exact search in the time left."""
    budget = Budget(config.time_limit)
    interval = clairvoyant_interval(
        one.timetable,
        config.scenario.setting.form_for(requests),
        one.known,
        effort=config.effort if search else 0,
        time_limit=config.time_limit,
        seed=config.seed,
    )
    if not search or interval.placed.interrupted:
        return interval
    left = budget.remaining()
    return narrowed(interval, SECONDS_OF_EFFORT * config.effort if left is None else left, seed=config.seed)


def _judged(outcome: HindsightOutcome, run: Run, place: int, worker: IntArray) -> RuleInHindsight:
    interval, first_come = outcome.intervals[place], outcome.intervals[0]
    table, form = interval.timetable, interval.form
    seconds = seconds_of(table, form, worker)
    tokens, steps, imbalance = int(run.trace.output.sum()), int((table.running() > 0).sum()), table.imbalance(worker)
    return RuleInHindsight(
        rule=run.policy,
        admission=run.admission,
        tokens=tokens,
        steps=steps,
        barriers=table.barriers(worker),
        imbalance=imbalance,
        seconds=seconds,
        timetable=place,
        optimum_imbalance=interval.imbalance,
        optimum_seconds=interval.seconds,
        share_of_ceiling=ceilings(run.trace, run.setting).seconds / seconds,
        first_come_seconds=first_come.seconds,
        is_proved=interval.is_proved,
        optimum=interval.said,
        tokens_per_second=tokens / seconds,
        mean_imbalance=imbalance / steps,
        ratio=interval.seconds.over(seconds),
        imbalance_ratio=interval.imbalance.over(imbalance),
        imbalance_above=Ends(imbalance - interval.imbalance.high, imbalance - interval.imbalance.low),
        first_come_ratio=first_come.seconds.over(seconds),
    )


def _facts(outcome: HindsightOutcome) -> dict[str, Any]:
    return {
        "trace": outcome.trace,
        "timetables": [one.to_dict() for one in outcome.intervals],
        "ceiling_tokens_per_second": outcome.ceiling_tokens_per_second,
    }


HELP = """Say how far rules were from what was possible with all lengths known.

Each rule runs over the trace. The best placement of the requests in the steps in which they started lies between two
ends, and so does the rule's ratio to it. In a small run (4 slots a worker, 100 requests) it is mostly one number.
With --out, writes hindsight.csv, searches.csv, a picture and run.json.

Example: `lbopt hindsight burstgpt-like --requests 3000 --policy jsq --policy auto`
"""

STUDY = Study(name="hindsight", config=HindsightConfig, help=HELP, run=run_hindsight, facts=_facts)
