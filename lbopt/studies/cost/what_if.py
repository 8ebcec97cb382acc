"""The same work on another fleet: routers run again, or, where only means are known, a law of order statistics.

A fleet of twice the workers gets twice the requests, drawn with replacement where the trace has not as many. In a
closed loop, or at a stated load, its workers are then as busy as before; by the trace's own clock requests do not come
faster, and each worker has half of the load.

From means alone: if loads of single workers are alike and near normal, the heaviest stands e_G standard deviations
above the mean, e_G the expected maximum of G standard normals; so imbalance / G goes with e_G while the mean stays.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from lbopt.exceptions import InputError
from lbopt.studies.cost.load_point import LEVEL, MOST_RUNNING, LoadPoint
from lbopt.studies.progress import Progress

if TYPE_CHECKING:
    from lbopt.studies.scenario import Scenario

#: What may be changed.
CHANGES = ("workers", "slots")


@dataclass(frozen=True, slots=True)
class Rerun:
    """What it takes to run routers again.

    Parameters
    ----------
    scenario
        Requests, fleet and arrivals as they were.
    routers
        Label of a load point -> what `make_policy` reads, and what it is told beside.
    seeds
        Of the runs.
    """

    scenario: Scenario
    routers: Mapping[str, tuple[str, Mapping[str, Any]]]
    seeds: tuple[int, ...]

    def on(self, name: str, value: int, progress: Progress) -> list[LoadPoint]:
        """Return the load points of all routers run on another fleet, and the first of them perfectly level."""
        points = _run_again(replace(self, scenario=changed(self.scenario, name, value)), progress)
        if self.scenario.arrivals == "trace":
            points = [point.at_work_of(points[0]) for point in points]
        return [*points, points[0].balanced(LEVEL)]


def parse_change(text: str, rerun: Rerun | None) -> tuple[str, list[int]]:
    """Read ``workers=16,32,64``: what is changed, and to which values; without a `rerun` only workers can be."""
    name, equals, rest = text.partition("=")
    if name not in CHANGES or not equals:
        raise InputError(f"what-if '{text}' is not understood; expected workers=16,32,64 or slots=32,64")
    values = []
    for part in rest.split(","):
        if not part.strip().isdecimal() or int(part) < (2 if name == "workers" else 1):
            least = "2 workers, as one alone never waits" if name == "workers" else "1 slot"
            raise InputError(f"what-if '{text}': '{part}' is not a number of {name}; expected at least {least}")
        values.append(int(part))
    if rerun is None and name != "workers":
        raise InputError(f"plain numbers say nothing of other {name}; give a folder, whose study is run again")
    if rerun is not None:
        logs = [label for label, (spec, _) in rerun.routers.items() if spec.startswith("replay:")]
        if logs:
            raise InputError(
                f"what-if '{text}': '{logs[0]}' is a log of what was done on {rerun.scenario.num_workers} workers with "
                f"{rerun.scenario.slots_per_worker} slots and says nothing of another fleet; leave what_if out"
            )
        for value in values:
            changed(rerun.scenario, name, value)
    return name, list(dict.fromkeys(values))


def changed(scenario: Scenario, name: str, value: int) -> Scenario:
    """Return the scenario on another fleet, with requests in proportion to its slots; refuse one of too many."""
    before = scenario.num_workers * scenario.slots_per_worker
    bigger = replace(scenario, num_workers=value) if name == "workers" else replace(scenario, slots_per_worker=value)
    after = bigger.num_workers * bigger.slots_per_worker
    if after > MOST_RUNNING:
        raise InputError(
            f"what-if {name}={value}: {bigger.num_workers:,} workers with {bigger.slots_per_worker:,} slots run up to "
            f"{after:,} requests; expected at most {MOST_RUNNING:,}"
        )
    source = scenario.requests
    count = source.count if source.count is not None else (None if source.is_family else source.num_to_run)
    asked = max(1, round((count or 10_000) * after / before))
    draw = source.draw
    if not source.is_family and asked > source.num_to_run:
        draw = "resample"
    reveal = scenario.reveal_target
    if reveal is not None:
        reveal = max(1, round(reveal * after / before))
    return replace(bigger, requests=replace(source, count=asked, draw=draw), reveal_target=reveal)


def _run_again(given_run: Rerun, progress: Progress) -> list[LoadPoint]:
    from lbopt.policies import make_policy  # compiled code comes with these, which a price of means does not need
    from lbopt.simulator import simulate
    from lbopt.studies.training import training_for

    scenario, seeds = given_run.scenario, given_run.seeds
    points = []
    for label, (spec, given) in given_run.routers.items():
        runs: list[dict[str, Any]] = []
        for seed in seeds:
            policy = make_policy(spec, {name: value for name, value in given.items() if value is not None})
            requests = scenario.requests.draw_for(seed, num_seeds=len(seeds))
            training = training_for(scenario, [policy], seed, num_seeds=len(seeds))
            run = simulate(requests, policy, scenario.setting, seed=seed, training=training)
            runs.append(run.metrics().to_dict())
            progress.advance()
        points.append(LoadPoint.of_metrics(label, runs, scenario.num_workers, scenario.slots_per_worker))
    return points


def by_order_statistics(point: LoadPoint, workers: int) -> LoadPoint:
    """Return the point on another number of workers with loads spread alike."""
    if point.num_workers < 2:
        raise InputError("one worker has no imbalance from which that of more could follow; give loads of two or more")
    from lbopt.theory.laws.normal_maximum import expected_maximum

    ratio = expected_maximum(workers) / expected_maximum(point.num_workers)
    return replace(point, num_workers=workers).with_imbalance(
        workers * (point.max_load - point.mean_load) * ratio, point.label
    )
