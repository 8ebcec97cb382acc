"""`run_prefill`: every rule on the same prompts; Ctrl-C keeps the rules that have ended."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from lbopt.prefill import PrefillMetrics, PrefillRequests, PrefillRun, simulate_prefill
from lbopt.prefill.protocol.faults import faults_of
from lbopt.studies.prefill.config import MESSAGES, PrefillConfig, Rule
from lbopt.studies.progress import Progress, Silent
from lbopt.studies.study import Outcome, Study


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
