"""`run_batches`: the recipe of a gap study of prefill batches. Ctrl-C ends it early and keeps what is done."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray

from lbopt.exceptions import InputError, LbOptError
from lbopt.files import repeated
from lbopt.model import Trace
from lbopt.prefill import PassTime, PrefillRequests, PrefillSetting, make_allocation
from lbopt.prefill.exact import (
    RULES,
    AllocationGap,
    Dispatch,
    Fill,
    Placement,
    PrefillBatch,
    allocation_gaps,
    dispatches,
)
from lbopt.solvers import check_solver
from lbopt.solvers.registry import require
from lbopt.solvers.warm_up import warm
from lbopt.studies.configuration import Configuration, Option, Without
from lbopt.studies.grid import Row
from lbopt.studies.progress import Progress, Silent
from lbopt.studies.requests import RequestSource
from lbopt.studies.study import Outcome, Study

DEFAULT_BEHAVIOURS = ("pbaa", "round-robin")
DEFAULT_RULES = RULES
DEFAULT_LOAD = 0.8
DEFAULT_TIME_LIMIT = 2.0


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchesConfig(Configuration):
    """Configuration of a gap study of prefill batches: prompts arrive at random times, as they come.

    Batches are sampled under each behaviour. `load` is a share of the rate at which prompts of mean length fill every
    chunk of passes that follow each other. Both optima of a batch have `time_limit` seconds each.
    """

    what = "prefill batches"

    requests: Annotated[RequestSource, Without.of("arrival_column", "train_share", "train_on")] = field(
        default_factory=RequestSource
    )
    behaviours: Annotated[
        tuple[str, ...],
        Option(
            "Allocation under which batches are sampled; may be given again.",
            key="behaviour",
            each=make_allocation,
        ),
    ] = DEFAULT_BEHAVIOURS
    rules: Annotated[
        tuple[str, ...],
        Option(
            "Allocation to judge; may be given again.",
            names=("--policy", "-p"),
            key="policy",
            first=True,
            each=make_allocation,
        ),
    ] = DEFAULT_RULES
    states: Annotated[int, Option("Batches per behaviour.", first=True, low=1)] = 50
    instances: Annotated[int, Option("Number of prefill instances.")] = 3
    units: Annotated[int, Option("Units of an instance.", names=("--workers", "-G"), key="workers", first=True)] = 8
    chunk: Annotated[int, Option("Most tokens of a unit in a pass.")] = 3072
    load: Annotated[
        float,
        Option(
            "Rate of random arrivals, as a share of that which fills every chunk.",
            low=0,
            high=math.inf,
            open=True,
            expected="a share above 0, such as 0.8 of full chunks",
        ),
    ] = DEFAULT_LOAD
    seed: Annotated[int, Option("First seed.", first=True, low=0)] = 0
    time_limit: Annotated[float | None, Option("Seconds for each of the two optima.", first=True)] = DEFAULT_TIME_LIMIT

    def check(self) -> None:
        """Call allocations by their full names, and refuse what cannot be run or solved."""
        for name in ("behaviours", "rules"):
            names = tuple(make_allocation(spec).name for spec in getattr(self, name))
            if (doubled := repeated(names)) is not None:
                raise InputError(f"allocation '{doubled}' is named twice among the {name}")
            object.__setattr__(self, name, names)
        check_solver("exact", self.time_limit)
        require("cp-sat")  # the best fill is its
        for behaviour in self.behaviours:
            self.setting(behaviour)

    def setting(self, behaviour: str) -> PrefillSetting:
        """Return the fleet of a behaviour."""
        return PrefillSetting(self.instances, self.units, "staggered", behaviour, chunk_tokens=self.chunk)

    def rate(self, mean_prompt: float) -> float:
        """Return the requests per second of this load."""
        return self.load * self.setting(self.behaviours[0]).saturating_rate(mean_prompt)


#: Sets the draw of dispatches apart from those of arrivals and phases.
_DRAW = 5


@dataclass(frozen=True, slots=True, eq=False)
class SampledBatch:
    """A batch, and the behaviour that had brought the fleet there."""

    behaviour: str
    dispatch: Dispatch

    @property
    def batch(self) -> PrefillBatch:
        """What is to be placed, and where."""
        return self.dispatch.batch

    def to_dict(self) -> dict[str, Any]:
        """Return plain data; ``batch`` is what `PrefillBatch` takes, ``chosen`` what the behaviour did."""
        one, batch = self.dispatch, self.batch
        return {
            "behaviour": self.behaviour,
            "time": one.time,
            "instance": one.instance,
            "turn": one.turn,
            "requests": one.requests.tolist(),
            "chosen": one.unit.tolist(),
            "batch": {
                "load": batch.load.tolist(),
                "length": batch.length.tolist(),
                "chunk": batch.chunk,
                "pending": batch.pending.tolist(),
            },
        }


def arrivals(config: BatchesConfig, trace: Trace) -> PrefillRequests:
    """Return the prompts of `trace` in its order, at random times of the configuration's rate."""
    return PrefillRequests.poisson(config.rate(float(trace.prompt.mean())), trace.prompt, config.seed)


def sample_batches(
    config: BatchesConfig, requests: PrefillRequests, behaviour: str
) -> tuple[list[SampledBatch], list[str]]:
    """Return batches of dispatches after the first tenth of the arrivals and up to the last, and remarks on them."""
    begin, end = requests.arrival[len(requests) // 10], requests.arrival[-1]
    run = dispatches(requests, config.setting(behaviour), seed=config.seed)
    found = [one for one in run if begin <= one.time <= end]
    if not found:
        raise InputError(
            f"the run under {behaviour} has no dispatch between the first tenth of the {len(requests)} requests and "
            "the last; use more requests"
        )
    notes = []
    if len(found) < config.states:
        notes.append(
            f"behaviour {behaviour}: {len(found)} batches instead of {config.states}; its run has no more dispatches "
            "after the first tenth of the requests"
        )
    early, late = (float(np.mean([one.requests.size for one in part])) for part in _halves(found))
    if late > 1.5 * early and late > early + config.units:
        notes.append(
            f"behaviour {behaviour} falls behind at this load: {early:.0f} requests wait at a dispatch of the first "
            f"half, {late:.0f} of the second; its batches are those of an overloaded fleet"
        )
    draw = np.random.default_rng([config.seed, _DRAW])
    chosen = np.sort(draw.choice(len(found), min(config.states, len(found)), replace=False))
    return [SampledBatch(behaviour, found[i]) for i in chosen], notes


def _halves(found: list[Dispatch]) -> tuple[list[Dispatch], list[Dispatch]]:
    middle = (len(found) + 1) // 2
    return found[:middle], found[middle:] or found


ALL = "all"
_LAW = PassTime()


@dataclass(frozen=True, slots=True, eq=False)
class JudgedBatch:
    """A batch, its two optima as far as they are known, and every rule's answer."""

    state: SampledBatch
    placement: Placement
    fill: Fill
    rules: tuple[AllocationGap, ...]

    @property
    def straggler_standing(self) -> str:
        """How sure the least straggler is: "proved", "claimed" by a solver, or "open" (unchecked searches too)."""
        return _standing(self.placement.optimal, self.placement.proof)

    @property
    def fill_standing(self) -> str:
        """How sure the fullest pass is; what exceeds the chunks plays no part."""
        return _standing(self.fill.filled == self.fill.bounds[0], self.fill.proof)

    def straggler_gap(self, rule: AllocationGap) -> float:
        """How much longer the fullest unit is than it has to be, as a share of the least."""
        least = self.placement.straggler
        return (rule.straggler - least) / max(1, least)

    def seconds_lost(self, rule: AllocationGap) -> float:
        """By how many seconds of passes the batch takes longer than it has to."""
        chunk = self.state.batch.chunk
        return seconds_until_done(rule.straggler, chunk) - seconds_until_done(self.placement.straggler, chunk)

    def fill_gap(self, rule: AllocationGap) -> float:
        """Share of the chunks of all units that could be filled and is not."""
        return (self.fill.filled - rule.filled) / (self.state.batch.num_units * self.state.batch.chunk)


def seconds_until_done(tokens: int, chunk: int) -> float:
    """Return the seconds of passes in which the fullest unit computes `tokens`, up to `chunk` in each."""
    whole, rest = divmod(tokens, chunk)
    return whole * _LAW.seconds(chunk) + (_LAW.seconds(rest) if rest else 0.0)


class BatchGap(Row):
    """How far one rule is from the optima, over the batches of one behaviour (or of "all").

    `proved`: both optima proved; `claimed`: both known, one of them at least by a solver's word. Optima that are open
    enter no average: each is over the batches in which that optimum is known.
    """


@dataclass(slots=True, eq=False, repr=False)
class BatchesOutcome(Outcome):
    """Everything a gap study of prefill batches found."""

    config: BatchesConfig
    trace: dict[str, Any]
    judged: list[JudgedBatch] = field(default_factory=list)

    def rows(self) -> list[BatchGap]:
        """Return a row per rule over all batches, then per behaviour where there are several."""
        behaviours = list(dict.fromkeys(one.state.behaviour for one in self.judged))
        groups = [ALL, *behaviours] if len(behaviours) > 1 else behaviours
        return [self.row(rule, behaviour) for behaviour in groups for rule in self.config.rules]

    def row(self, rule: str, behaviour: str = ALL) -> BatchGap:
        """Return one line of the gap table."""
        judged = [one for one in self.judged if behaviour in (ALL, one.state.behaviour)]
        answers = [(one, next(r for r in one.rules if r.rule == rule)) for one in judged]
        both = [(one.straggler_standing, one.fill_standing) for one in judged]
        placed = [pair for pair in answers if pair[0].straggler_standing != "open"]
        filled = [pair for pair in answers if pair[0].fill_standing != "open"]
        gaps = np.array([one.straggler_gap(r) for one, r in placed])
        fills = np.array([one.fill_gap(r) for one, r in filled])
        proved = both.count(("proved", "proved"))
        lost = [one.seconds_lost(r) for one, r in placed]

        def over(values: Sequence[float] | NDArray[Any], mean: Callable[..., Any] = np.mean) -> float:
            return float(mean(values)) if len(values) else np.nan

        return BatchGap(
            **{"behaviour": behaviour, "rule": rule, "batches": len(judged), "proved": proved},
            claimed=sum("open" not in pair for pair in both) - proved,
            straggler_open=len(answers) - len(placed),
            fill_open=len(answers) - len(filled),
            straggler_gap_mean_share=over(gaps),
            straggler_gap_p95_share=over(gaps, partial(np.quantile, q=0.95)),
            straggler_gap_max_share=over(gaps, np.max),
            straggler_optimal_share=over(gaps == 0),
            seconds_lost_mean=over(lost),
            fill_gap_mean_share=over(fills),
            fill_gap_max_share=over(fills, np.max),
            overshoot_mean_tokens=over([r.overshoot for _, r in filled]),
        )


def _standing(closed: bool, proof: str) -> str:
    if not closed or proof == "search":
        return "open"
    return "claimed" if proof.startswith("claimed:") else "proved"


def judge(state: SampledBatch, config: BatchesConfig) -> JudgedBatch:
    """Solve the batch and let every rule place it.

    Raises
    ------
    LbOptError
        Where an optimum does not stand a recount, or a rule is better than a bound allows.
    """
    rules, placement, fill = allocation_gaps(
        state.batch, config.rules, config.time_limit, config.seed, turn=state.dispatch.turn, stages=1
    )
    judged = JudgedBatch(state, placement, fill, tuple(rules))
    _recount(judged)
    return judged


def _recount(judged: JudgedBatch) -> None:
    batch, where = judged.state.batch, f"the batch of {judged.state.dispatch.time} s under {judged.state.behaviour}"
    placement, fill = judged.placement, judged.fill
    if (placement.unit < 0).any() or int(_loads(batch, placement.unit).max()) != placement.straggler:
        raise LbOptError(f"{where}: the least straggler is not what its units have")
    if int(np.minimum(_loads(batch, fill.unit), batch.chunk).sum()) != fill.filled:
        raise LbOptError(f"{where}: the fullest pass is not what its units have")
    stragglers = [placement.straggler, *(one.straggler for one in judged.rules)]
    fills = [fill.filled, *(one.filled for one in judged.rules)]
    if min(stragglers) < placement.bound or max(fills) > fill.bounds[0]:
        raise LbOptError(
            f"{where}: a straggler of {min(stragglers)} and a fill of {max(fills)} tokens refute the bounds "
            f"{placement.bound} ({placement.proof}) and {fill.bounds[0]} ({fill.proof})"
        )


def _loads(batch: PrefillBatch, unit: NDArray[np.int64]) -> NDArray[np.int64]:
    loads = batch.load.copy()
    placed = np.flatnonzero(unit >= 0)
    np.add.at(loads, unit[placed], batch.cost[placed, unit[placed]])
    return loads


def run_batches(config: BatchesConfig, progress: Progress | None = None) -> BatchesOutcome:
    """Run the fleet under each behaviour, sample its dispatches, solve them, and let every rule place them."""
    progress = progress or Silent()
    trace = config.requests.draw_for(config.seed)
    requests = arrivals(config, trace)
    described = {
        "name": trace.name,
        "requests": len(trace),
        "left_out": dict(trace.left_out),
        "digest": trace.digest,
        "prompt_mean_tokens": float(trace.prompt.mean()),
        "rate_per_second": config.rate(float(trace.prompt.mean())),
    }
    outcome = BatchesOutcome(config, described)
    with outcome.clocked():
        progress.begin("sampling batches", len(config.behaviours))
        states: list[SampledBatch] = []
        for behaviour in config.behaviours:
            found, notes = sample_batches(config, requests, behaviour)
            states += found
            outcome.notes += notes
            progress.advance()
        warm("exact", window=False)  # compiled within the time limit of the first batch, it would leave that one open
        progress.begin("solving and placing", len(states))
        for state in states:
            outcome.judged.append(judge(state, config))
            progress.advance()
    return outcome


HELP = """Sample batches of prompts, solve each to optimality, and measure how far every allocation stays behind.

Writes batches.csv, gap.csv, batches.jsonl, a picture and run.json.

Example: `lbopt study batches burstgpt-like --requests 2000 --states 20 --out demo-batches`
"""

STUDY = Study(
    name="batches",
    named="lbopt-batch-gap",
    config=BatchesConfig,
    help=HELP,
    folder="lbopt-batch-gap",
    run=run_batches,
    account=("trace", "interrupted", "notes", "seconds"),
)
