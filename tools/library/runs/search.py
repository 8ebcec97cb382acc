"""Whole small runs that are bad for a rule: how the rule fares in one, the search for the worst, and what was found.

``python -m tools.library.runs`` searches and writes what the packaged ``data/runs.json`` holds. Every rule runs without
training; rules that draw random numbers do it with seed 0. A search begins with a few traps and with what the rules
before it were found to be bad at, so that what fools one rule is tried on all.
"""

from __future__ import annotations

import json
import time
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

import numpy as np

from lbopt.exceptions import InputError
from lbopt.files import read_text
from lbopt.hardware import AffineStepTime
from lbopt.instances.library.collection import MEASURES, StoredRun, read_runs
from lbopt.model import Fleet
from lbopt.model.integers import IntArray
from lbopt.policies import Policy, make_policy
from lbopt.simulator import ClosedLoop, SimulationSetting, simulate
from lbopt.whole_file import write_file
from tools.library.runs.climb import Bad, Judge, Room, climb, shrunk
from tools.library.runs.small_run import SmallRun, least_cost, least_placement, num_steps, timetable_of

#: Rules that run without training; those that are not here are in `LEFT_OUT`, with the reason.
RULES = (
    "fcfs", "jsq-load", "max-min", "max-min:scope=pool", "auto", "br-0", "iqr", "tensorrt-llm", "round-robin", "random",
    "power-of-two", "jsq", "jsq-load:admission=immediate", "br-0-bypass", "vllm", "vllm:version=2025",
    "sglang", "tpu-inference", "smg", "dynamo", "llm-d", "lmdeploy", "lightllm", "vllm-ascend",
    "bf-io:effort=300000,time_limit=none", "count-then-load:time_limit=none", "barrier-time:time_limit=none",
)  # fmt: skip

LEFT_OUT = {
    "br-h": "needs a forecast: trained, or the truth",
    "fast-phi": "needs outputs to learn from",
    "eldr": "needs the experts that requests use",
    "domain": "needs labels of requests",
    "level-then-load": "decides as count-then-load where every slot is filled, and asks another solver",
    "min-min": "largest first, `max-min`, stands for both",
    **dict.fromkeys(
        ("power-of-d", "throttled", "honey-bee", "olb-lbmm", "carton", "ant-colony"),
        "of cloud scheduling, for comparison, and nobody routes by it",
    ),
}

FLEETS = tuple((G, B) for G in (2, 3, 4) for B in (1, 2, 3))

#: States that the optimum's search may look at, some microseconds each: a run that needs more has no ratio.
_EFFORT = 3_000

#: The same where what was found for one rule is tried on the others.
_LAST_EFFORT = 50_000

#: Of what others were found to be bad at, the runs that a search begins with.
_HINTS = 6

#: The largest prompt of a search for seconds: below it a step's fixed part outweighs all loads.
_LARGEST_PROMPT = {"placing": 40, "barriers": 40, "seconds": 131_072}


def played(rule: str | Policy, run: SmallRun) -> tuple[IntArray, IntArray]:
    """Return the start and the worker of each request under a rule, all requests waiting from the beginning."""
    policy = make_policy(rule) if isinstance(rule, str) else rule
    fleet = Fleet(run.num_workers, run.slots_per_worker)
    setting = SimulationSetting(fleet=fleet, arrivals=ClosedLoop(len(run.prompt)))
    columns = simulate(run.trace, policy, setting).requests
    return columns["start_step"].astype(np.int64), columns["worker"].astype(np.int64)


def fixed_tokens(measure: str, slots: int) -> int:
    """Return the tokens that a step costs beside its largest load: C / t of the BF-IO experiments, for seconds only."""
    if measure not in MEASURES:
        raise InputError(f"the measure is {measure!r}; expected one of {', '.join(MEASURES)}")
    law = AffineStepTime.of_bf_io_paper(slots)
    return round(law.fixed_seconds / law.seconds_per_token) if measure == "seconds" else 0


def paid(run: SmallRun, start: IntArray, worker: IntArray, fixed: int) -> int:
    """Return the cost of a timetable, tokens.

    Parameters
    ----------
    run
        The requests and the fleet.
    start, worker
        int64, (N,): of each request.
    fixed
        Tokens that a step costs beside its largest load.
    """
    order = np.argsort(start, kind="stable")
    return timetable_of(run, start).barriers(worker[order]) + fixed * num_steps(run, start)


def judge(rule: str | Policy, measure: str, run: SmallRun, effort: int = _EFFORT) -> Bad | None:
    """Return what a rule pays for a run and the optimum; None where that is not proved, or is 0.

    Parameters
    ----------
    rule, measure
        The rule, and one of `MEASURES`.
    run
        The requests and the fleet.
    effort
        States that the optimum's search may look at.
    """
    fixed = fixed_tokens(measure, run.slots_per_worker)
    start, worker = played(rule, run)
    reached = paid(run, start, worker, fixed)
    best = least_placement(run, start) if measure == "placing" else least_cost(run, fixed, known=reached, effort=effort)
    return Bad(run, reached, best.cost) if best.proved and best.cost > 0 else None


def recomputed(stored: StoredRun) -> Bad | None:
    """Judge a stored run anew."""
    return judge(stored.rule, stored.measure, small_run(stored), _LAST_EFFORT)


def small_run(stored: StoredRun) -> SmallRun:
    """Return the requests and the fleet of a stored run."""
    return SmallRun(stored.workers, stored.slots, stored.prompt, stored.output)


@dataclass(frozen=True, slots=True)
class Searched:
    """One line of a search: the rule, the measure, the fleet, the seed, and the runs that are judged."""

    rule: str
    measure: str
    workers: int
    slots: int
    seed: int
    trials: int

    def found(self, hints: Iterable[StoredRun]) -> StoredRun | None:
        """Search; None where no run had a proved optimum.

        Parameters
        ----------
        hints
            Runs that are bad for others; the worst of this measure and fleet are tried first.
        """
        policy = make_policy(self.rule)
        rng = np.random.default_rng([self.seed, zlib.crc32(self._line.encode())])
        room = Room(self.workers, self.slots, largest_prompt=_LARGEST_PROMPT[self.measure])
        near = [h for h in hints if (h.measure, h.workers, h.slots) == (self.measure, self.workers, self.slots)]
        starts = [*map(small_run, sorted(near, key=lambda h: -h.ratio)[:_HINTS]), *self._traps(policy, room)]
        judge = self._judge(policy)
        bad = climb(judge, room, rng, self.trials, list(dict.fromkeys(starts)))
        if bad is None:
            return None
        return self._stored(shrunk(judge, bad))

    def tried(self, found: StoredRun, others: Iterable[StoredRun]) -> StoredRun:
        """Return what others were found to be bad at where this rule is worse at it than at its own, shrunk for it."""
        policy, own = make_policy(self.rule), small_run(found)
        careful = self._judge(policy, _LAST_EFFORT)
        best = max(filter(None, map(careful, dict.fromkeys([own, *map(small_run, others)]))), key=lambda bad: bad.ratio)
        return found if best.run == own else self._stored(shrunk(self._judge(policy), best))

    def _stored(self, bad: Bad) -> StoredRun:
        return StoredRun(
            rule=self.rule, measure=self.measure, workers=self.workers, slots=self.slots, prompt=bad.run.prompt,
            output=bad.run.output, fixed=fixed_tokens(self.measure, self.slots), reached=bad.reached, least=bad.least,
            seed=self.seed, trials=self.trials,
        )  # fmt: skip

    def is_of(self, stored: StoredRun) -> bool:
        """Whether a stored run is what this search found."""
        return all(getattr(self, name) == getattr(stored, name) for name in self.__slots__)

    @property
    def _line(self) -> str:
        return f"{self.rule} {self.measure} {self.workers} {self.slots}"

    def _traps(self, policy: Policy, room: Room) -> list[SmallRun]:
        """Return requests alike, of which those last that the rule puts on one worker, and heavy ones in turn."""
        G, B = self.workers, self.slots
        traps = []
        for count in {min(G * B, room.most_requests), room.most_requests}:
            plain = SmallRun(G, B, (1,) * count, (1,) * count)
            there = np.flatnonzero(played(policy, plain)[1] == 0)[: min(G, B)]
            output = tuple(room.longest_output if i in there else 1 for i in range(count))
            traps.append(SmallRun(G, B, plain.prompt, output))
            in_turn = tuple(room.largest_prompt if i % G == 0 else 1 for i in range(count))
            traps.append(SmallRun(G, B, in_turn, (room.longest_output,) * count))
        return traps

    def _judge(self, policy: Policy, effort: int = _EFFORT) -> Judge:
        return lambda run: judge(policy, self.measure, run, effort)


def searches(
    rules: Sequence[str], measures: Sequence[str], fleets: Sequence[tuple[int, int]], seed: int, trials: int
) -> list[Searched]:
    """Return the lines of a search, fleet by fleet, so that what one rule is bad at is tried on the next.

    Parameters
    ----------
    rules, measures, fleets
        What to search for: rules as users name them, measures, and pairs of G and B.
    seed, trials
        Of each line.
    """
    for rule in rules:
        make_policy(rule)
    for measure in measures:
        fixed_tokens(measure, 1)
    for G, B in fleets:
        SmallRun(G, B, (1,), (1,))  # refuses what is too large for exact optima
    return [Searched(rule, measure, G, B, seed, trials) for measure in measures for G, B in fleets for rule in rules]


def search(
    lines: Sequence[Searched],
    file: Path | None,
    *,
    seconds: float | None = None,
    advance: Callable[[StoredRun | None], None] = lambda found: None,
) -> list[StoredRun]:
    """Search line by line and write the file after each; what the file has is not searched again.

    When the last rule of a measure and fleet is done, what was found for one rule is tried on all the others, and what
    was found for the fleet by the measures before.

    Parameters
    ----------
    lines
        From `searches`.
    file
        To write to, and to go on from; None writes nothing.
    seconds
        No line is begun after so many; None: no limit.
    advance
        Hears of each line that is done.
    """
    before = read_runs(read_text(file), str(file)) if file is not None and file.is_file() else []
    begin, done = time.monotonic(), list[StoredRun]()
    for _, group in groupby(lines, lambda line: (line.measure, line.workers, line.slots)):
        there, is_new = dict[Searched, StoredRun](), False
        for line in group:
            found = next((run for run in before if line.is_of(run)), None)
            if found is None:
                if seconds is not None and time.monotonic() - begin > seconds:
                    return [*done, *there.values()]
                is_new = True
                found = line.found(there.values())
            if found is not None:
                there[line] = found
            _write(file, [*done, *there.values()], before)
            advance(found)
        done.extend(exchanged(there, done) if is_new else there.values())
        _write(file, done, before)
    return done


def exchanged(found: Mapping[Searched, StoredRun], earlier: Sequence[StoredRun] = ()) -> list[StoredRun]:
    """Return the worst run for each line, among those found for all lines of one measure and fleet.

    Runs found earlier for the same fleet, by another measure, are tried too: the best starts and workers cost no more
    than the best workers.
    """
    fleets = {(line.workers, line.slots) for line in found}
    runs = [*found.values(), *(run for run in earlier if (run.workers, run.slots) in fleets)]
    return [line.tried(run, runs) for line, run in found.items()]


def _write(file: Path | None, done: Sequence[StoredRun], before: Sequence[StoredRun]) -> None:
    """Write what is known, whole or not at all: what was found, then what the file had beside it."""
    if file is None:
        return
    names = {run.name for run in done}
    rows = [*done, *(run for run in before if run.name not in names)]
    write_file(file, "[\n" + ",\n".join(json.dumps(run.to_dict()) for run in rows) + "\n]\n")
