"""The waiting law of a staggering study as tables: N times the wait, so that what falls as 1/N stands still."""

from __future__ import annotations

from lbopt import numbers
from lbopt.report.staggered_words import interval_said, mean_of, share, values_of
from lbopt.statistics import MeanOverSeeds
from lbopt.studies.staggered import StaggeredOutcome
from lbopt.studies.staggered.items import law
from lbopt.studies.staggered.rows import Key
from lbopt.table import Table

_wait = numbers.fixed(3)


def law_tables(outcome: StaggeredOutcome) -> list[Table]:
    """Return a table without a capacity of passes, and one with."""
    return [_free_table(outcome), _bound_table(outcome)]


def scaled_wait(outcome: StaggeredOutcome, instances: Key, capacity: Key, load: float, policy: str) -> MeanOverSeeds:
    """Return N times the mean wait, in passes; NaN where no seed has it.

    Parameters
    ----------
    outcome
        The study.
    instances
        Number of prefill instances.
    capacity
        Most requests of a pass.
    load
        Requests of an instance in a pass.
    policy
        Name of the rule.
    """
    keys: dict[str, Key] = {"instances": instances, "capacity": capacity, "load": load, "policy": policy}
    N, found = float(instances), mean_of(outcome, "law", "wait", keys)
    if found is None:
        return MeanOverSeeds(float("nan"), None, None)
    if found.low is None or found.high is None:
        return MeanOverSeeds(N * found.mean, None, None)
    return MeanOverSeeds(N * found.mean, N * found.low, N * found.high)


def exact_scaled(policy: str, load: float, instances: float) -> float | None:
    """Return N times the exact wait, in passes, where it is known."""
    exact = law.expected(policy, load, int(instances))
    return None if exact is None else instances * exact


def _free_table(outcome: StaggeredOutcome) -> Table:
    fleets, rows = values_of(outcome, "law", "instances"), []
    for load in law.LOADS:
        for policy in law.POLICIES:
            cells = (_wait(scaled_wait(outcome, N, "none", load, policy).mean) for N in fleets)
            rows.append((f"{load:g}, {policy}", *cells, _exact(policy, load)))
    return Table(
        "Waiting law: N × mean wait by N, in passes, nothing binds but the gate",
        "Rows: requests of an instance in a pass, policy. Printed: N/2 of what is bound on arrival, 1/2 staggered. "
        f"{_seeds_said(outcome)}",
        ("load, policy", *map(str, fleets), "exact"),
        rows,
    )


def _bound_table(outcome: StaggeredOutcome) -> Table:
    fleets, rows = values_of(outcome, "law", "instances"), []
    for of_capacity in law.SHARES:
        for policy in law.POLICIES:
            load = law.CAPACITY * of_capacity
            cells = (_wait(scaled_wait(outcome, N, law.CAPACITY, load, policy).mean) for N in fleets)
            rows.append((f"{share(of_capacity)}, {policy}", *cells))
    return Table(
        f"Waiting law: N × mean wait by N, in passes of at most {law.CAPACITY} requests",
        f"Rows: load as a share of capacity, policy. Nothing is known exactly. {_seeds_said(outcome)}",
        ("load, policy", *map(str, fleets)),
        rows,
    )


def _exact(policy: str, load: float) -> str:
    alone = exact_scaled(policy, load, 1)
    if alone is None:
        return numbers.UNKNOWN
    return _wait(alone) if exact_scaled(policy, load, 2) == alone else f"{_wait(alone)} N"


def _seeds_said(outcome: StaggeredOutcome) -> str:
    said = interval_said(outcome, "law")
    return said if said.startswith("One seed") else f"Means over {len(outcome.rows['law'])} seeds."
