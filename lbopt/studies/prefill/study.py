"""`run_prefill`: every rule on the same prompts; Ctrl-C keeps the rules that have ended."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Annotated, Any

import numpy as np

from lbopt.exceptions import InputError
from lbopt.files import repeated
from lbopt.model import Trace
from lbopt.prefill import (
    PassTime,
    PrefillMetrics,
    PrefillRequests,
    PrefillRun,
    PrefillSetting,
    make_prefill_policy,
    simulate_prefill,
)
from lbopt.prefill.messages import Messages, protocol_setting
from lbopt.prefill.protocol.faults import faults_of
from lbopt.studies.configuration import Configuration, Option, Without, from_plain
from lbopt.studies.progress import Progress, Silent
from lbopt.studies.requests import RequestSource
from lbopt.studies.study import Outcome, Study

ARRIVALS = ("poisson", "trace")
#: Share of the saturating rate at which prompts come, where no rate is given.
DEFAULT_LOAD = 0.7
DEFAULT_CHUNK = 3072
#: How scheduler and instances talk where something goes wrong: one outlier moves no median, and polls find lost ends.
MESSAGES = Messages(polls=1.0, pace="median")
DEFAULT_RULES = (
    "round-robin",
    "jsq/least-loaded",
    "pooled/pbaa",
    "staggered:window=50/pbaa",
    "staggered:window=50,target=free/pbaa:whole=yes",
)


@dataclass(frozen=True, slots=True)
class Rule:
    """A dispatch policy and an allocation, written ``policy/allocation``.

    Without an allocation, policies that bind on arrival give prompts to units in turn, and the others by PBAA.
    """

    policy: str
    allocation: str

    @classmethod
    def of(cls, text: str) -> Rule:
        """Read ``policy`` or ``policy/allocation``."""
        policy, slash, allocation = text.partition("/")
        if slash and not allocation:
            raise InputError(f"rule '{text}' names no allocation behind its slash; expected e.g. {policy}/least-loaded")
        return cls(policy, allocation or ("round-robin" if make_prefill_policy(policy).immediate else "pbaa"))

    def __str__(self) -> str:
        return f"{self.policy}/{self.allocation}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Instances:
    """The prefill instances and their passes, as a user gives them.

    Parameters
    ----------
    instances, units
        N instances of D data-parallel units.
    chunk
        Most tokens of a unit in a pass; None = `DEFAULT_CHUNK`.
    no_chunk
        Whether a pass takes all that waits.
    per_pass
        Most requests of a unit in a pass; None = no limit.
    base, per_token, per_longest, per_mean
        The law of a pass, s and s a token, see `PassTime`.
    latency
        From the scheduler to an instance, s.
    engine
        "work-conserving" or "back-to-back".
    queue_limit
        A request is refused where so many have come and not begun; None = no limit.
    """

    instances: Annotated[int, Option("Prefill instances.", names=("--instances", "-N"), first=True)] = 3
    units: Annotated[int, Option("Data-parallel units of an instance.", names=("--units", "-D"), first=True)] = 8
    chunk: Annotated[int | None, Option("Most tokens of a unit in a pass.", shown="3072")] = None
    no_chunk: Annotated[bool, Option("Let a pass take all that waits.", names=("--no-chunk",))] = False
    per_pass: Annotated[int | None, Option("Most requests of a unit in a pass.")] = None
    base: Annotated[float, Option("Seconds of a pass that holds nothing.")] = 0.0943
    per_token: Annotated[float, Option("Seconds of a pass a token of its fullest unit.")] = 80.1e-6
    per_longest: Annotated[float, Option("Seconds of a pass a token of its longest chunk.")] = 0.0
    per_mean: Annotated[float, Option("Seconds of a pass a token of its mean unit.")] = 0.0
    latency: Annotated[float, Option("Seconds from the scheduler to an instance.")] = 0.0
    engine: Annotated[str, Option("**work-conserving** or **back-to-back**.")] = "work-conserving"
    queue_limit: Annotated[int | None, Option("Refuse a request where so many have come and not begun.")] = None

    @property
    def setting(self) -> PrefillSetting:
        """The setting that they make."""
        if self.no_chunk and self.chunk is not None:
            raise InputError(f"a chunk of {self.chunk} tokens and no_chunk are both given; expected one of them")
        chunk = DEFAULT_CHUNK if self.chunk is None else self.chunk
        return PrefillSetting(
            self.instances,
            self.units,
            pass_time=PassTime(self.base, self.per_token, self.per_longest, self.per_mean),
            chunk_tokens=None if self.no_chunk else chunk,
            requests_per_pass=self.per_pass,
            latency=self.latency,
            engine=self.engine,  # type: ignore[arg-type]  # checked there, with a sentence
            queue_limit=self.queue_limit,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class PrefillConfig(Configuration):
    """Configuration of a comparison: each rule gets the same prompts at the same times.

    `setting` are instances and passes; its policy and allocation are the rules'. With faults, rules run in the world of
    messages. A load is a share of the rate that instances in full passes can just keep up with.
    """

    what = "prefill rules"

    requests: Annotated[RequestSource, Without.of("train_share", "train_on")] = field(default_factory=RequestSource)
    rules: Annotated[
        tuple[str, ...],
        Option(
            "Dispatch policy with its allocation behind a slash, e.g. `staggered:window=50/pbaa`; may be given again.",
            names=("--policy", "-p"),
            key="rule",
            first=True,
            shown="five",
        ),
    ] = DEFAULT_RULES
    arrivals: Annotated[
        str,
        Option(
            "**poisson**, or **trace**: its times, stretched where a rate or load is given.",
            first=True,
            among=ARRIVALS,
        ),
    ] = "poisson"
    rate: Annotated[
        float | None,
        Option(
            "Requests a second, of all instances together.",
            first=True,
            low=0,
            high=math.inf,
            open=True,
            expected="more than 0 requests a second",
        ),
    ] = None
    load: Annotated[
        float | None,
        Option(
            "The same as a share of what full passes can keep up with.",
            first=True,
            shown="0.7 if poisson",
            low=0,
            high=math.inf,
            open=True,
            expected="more than 0, a share of saturation",
        ),
    ] = None
    setting: PrefillSetting = field(
        default_factory=lambda: PrefillSetting(3, 8, pass_time=PassTime(), chunk_tokens=DEFAULT_CHUNK)
    )
    seed: Annotated[int, Option("First seed.", first=True, low=0)] = 0
    faults: Annotated[
        tuple[str, ...],
        Option(
            "What goes wrong, e.g. `lose=0.1` (ends of passes), `slow=0.05`, `crash=0@20-30` (instance, s); may be "
            "given again.",
            key="fault",
            shown="none",
            empty=True,
            later="left out",
        ),
    ] = ()

    def check(self) -> None:
        """Refuse what excludes each other, a load without saturation, and rules that are one."""
        self._check_faults()
        if self.rate is not None and self.load is not None:
            raise InputError(f"rate {self.rate:g} and load {self.load:g} are both given; expected one of them")
        if self.setting.chunk_tokens is None and self.rate is None and (self.load or self.arrivals == "poisson"):
            raise InputError("without a chunk there is no saturation to take a load of; give a rate")
        settings = [self.setting_of(rule) for rule in map(Rule.of, self.rules)]
        if (doubled := repeated([f"{one.dispatch.name}/{one.rule.name}" for one in settings])) is not None:
            raise InputError(f"rule '{doubled}' is named twice")

    def _check_faults(self) -> None:
        for outage in faults_of(self.faults).outages:
            if outage.instance >= self.setting.num_instances:
                raise InputError(
                    f"a fault concerns instance {outage.instance}; expected 0 to {self.setting.num_instances - 1}"
                )
        if not self.faults:
            return
        for rule in map(Rule.of, self.rules):
            protocol_setting(self.setting_of(rule), MESSAGES)

    def setting_of(self, rule: Rule) -> PrefillSetting:
        """Return the setting with the policy and allocation of a rule."""
        return replace(self.setting, policy=rule.policy, allocation=rule.allocation)

    def draw(self) -> PrefillRequests:
        """Return the prompts with their times."""
        trace = self.requests.draw_for(self.seed)
        rate = self._rate(trace)
        if self.arrivals == "trace":
            return PrefillRequests.of_trace(trace, rate=rate)
        assert rate is not None
        drawn = PrefillRequests.poisson(rate, trace.prompt, seed=self.seed)
        return replace(drawn, name=trace.name)

    def _rate(self, trace: Trace) -> float | None:
        if self.rate is not None or (self.load is None and self.arrivals == "trace"):
            return self.rate
        load = DEFAULT_LOAD if self.load is None else self.load
        return load * self.setting.saturating_rate(float(np.mean(trace.prompt)))

    def to_dict(self) -> dict[str, Any]:
        """Return the configuration as plain data."""
        data = Configuration.to_dict(self)
        return data | {"setting": {name: data["setting"][name] for name in data["setting"] if name not in _OF_RULES}}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any], *, source: str = "the configuration") -> PrefillConfig:
        """Rebuild a configuration."""
        parts = {"requests": RequestSource.of, "setting": _setting_of}
        return from_plain(cls, data, what=cls.what, source=source, parts=parts, later={"faults": ()})


_OF_RULES = ("policy", "allocation")


def _setting_of(data: Mapping[str, Any]) -> PrefillSetting:
    """Rebuild the setting from plain data."""
    given = dict(data) | {"pass_time": PassTime(**data["pass_time"])}
    given["topology"] = tuple((latency, int(count)) for latency, count in data["topology"])
    if isinstance(data["phases"], list):
        given["phases"] = tuple(data["phases"])
    return PrefillSetting(**given)


@dataclass(frozen=True, slots=True)
class RuleRun:
    """One rule's run."""

    rule: Rule
    run: PrefillRun
    metrics: PrefillMetrics


@dataclass(slots=True, repr=False)
class PrefillOutcome(Outcome):
    """All rules that have ended, in the order in which they were asked for.

    `saturation` is in requests a second, infinite without a chunk.
    """

    config: PrefillConfig
    traffic: PrefillRequests
    saturation: float
    runs: list[RuleRun] = field(default_factory=list)

    @property
    def rate(self) -> float:
        """Requests a second that came, between the first and the last; infinite where all came at one time."""
        span = float(self.traffic.arrival[-1] - self.traffic.arrival[0])
        return (len(self.traffic) - 1) / span if span > 0 else math.inf


#: Prompts not finished when the last one comes, as a share of all and beside those at half time, from which on a rule
#: is said not to keep up.
BEHIND, GROWS = 0.05, 1.5


def run_prefill(config: PrefillConfig, progress: Progress | None = None) -> PrefillOutcome:
    """Run the comparison."""
    progress = progress or Silent()
    traffic = config.draw()
    outcome = PrefillOutcome(config, traffic, config.setting.saturating_rate(float(np.mean(traffic.length))))
    outcome.notes += _too_late(config, float(traffic.arrival[-1]))
    progress.begin("prefill", len(config.rules))
    with outcome.clocked():
        for text in config.rules:
            rule = Rule.of(text)
            run = _run(config, traffic, rule)
            outcome.runs.append(RuleRun(rule, run, run.metrics()))
            if note := _falls_behind(rule, run):
                outcome.notes.append(note)
            progress.advance()
    if outcome.interrupted:
        outcome.notes.append(f"interrupted: {len(outcome.runs)} of {len(config.rules)} rules have ended")
    return outcome


def _run(config: PrefillConfig, traffic: PrefillRequests, rule: Rule) -> PrefillRun:
    setting = config.setting_of(rule)
    if not config.faults:
        return simulate_prefill(traffic, setting, seed=config.seed)
    return simulate_prefill(traffic, setting, seed=config.seed, faults=faults_of(config.faults), messages=MESSAGES)


def _too_late(config: PrefillConfig, end: float) -> list[str]:
    """Return a sentence where an instance fails only after the last prompt has come, at `end` s."""
    late = [o for o in faults_of(config.faults).outages if o.start > end] if config.faults else []
    if not late:
        return []
    first = min(late, key=lambda outage: outage.start)
    return [
        f"instance {first.instance} fails at {first.start:g} s, but the last prompt comes at {end:.3g} s: it changes "
        "little or nothing; let it fail earlier, or give more requests"
    ]


def _falls_behind(rule: Rule, run: PrefillRun) -> str | None:
    """Return a sentence where ever more prompts are not finished, or where the run is too short to tell."""
    n = len(run.traffic)
    half, end = _unfinished(run, 0.5), _unfinished(run, 1.0)
    if end <= BEHIND * n or end <= GROWS * half:
        return None
    if half == run.served[: max(1, n // 2)].sum():  # what is on its way grows at first under any rule
        return (
            f"whether {rule} keeps up with this rate is not seen: no prompt is finished at half time; its numbers "
            "depend on how long the run is"
        )
    return (
        f"{rule} does not keep up with this rate: {half:,} prompts are not finished at half time, {end:,} when the "
        "last one comes; its numbers depend on how long the run is"
    )


def _unfinished(run: PrefillRun, share: float) -> int:
    """Return how many prompts have come and are not finished when this share of them has come."""
    came = max(1, int(share * len(run.traffic)))
    finished = run.requests["finished"][:came][run.served[:came]]
    return int((finished > run.traffic.arrival[came - 1]).sum())


def _facts(outcome: PrefillOutcome) -> dict[str, Any]:
    rate = outcome.rate if math.isfinite(outcome.rate) else None
    return {"prompts": len(outcome.traffic), "requests_per_second": rate}


HELP = """Send prompts to prefill instances by several rules, and compare times to first token.

Policies: random, round-robin, jsq[:by=tokens], pooled, staggered[:window=, interval=, timer=, target=, idle_bypass=],
anticipating[:margin=, spacing=, error=]. Allocations to units: round-robin, least-loaded, longest-first,
backfill[:split=], pbaa[:whole=, n_limit=].

With --out, writes rules.csv, requests.csv, passes.csv and run.json.

Example: `lbopt prefill azure-like --load 0.8 -p round-robin -p staggered:window=50/pbaa`
"""

STUDY = Study(
    name="prefill",
    config=PrefillConfig,
    help=HELP,
    run=run_prefill,
    facts=_facts,
    account=("interrupted", "notes"),
    timings=(),
)
