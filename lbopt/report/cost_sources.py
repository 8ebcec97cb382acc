"""Load points from the output folders of other verbs: a gap report or a simulation.

Of a gap report come: today's router, the rule of its long runs with the least imbalance, the best next step, and the
same work perfectly level. The best next step is today's router with its imbalance less the mean gap of its decisions in
the report's solved states: what one optimal decision is worth, in states that the router itself has made where it
was among the behaviours of the report, else in all. It understates
what better placement is worth over time, and perfect balance overstates it; the truth lies between.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from lbopt.exceptions import InputError
from lbopt.files import called, csv_table, exists, json_lines, read_json, read_text
from lbopt.policies.editions import edition, edition_of, spelled_out
from lbopt.policies.python_file import changed_code, refused_code
from lbopt.report.folder import MARK
from lbopt.report.study_report import read_account, read_config
from lbopt.spec import unknown
from lbopt.statistics import standard_error
from lbopt.studies.cost import LEVEL, NEXT_STEP, LoadPoint, Rerun
from lbopt.studies.cost.load_point import NEEDED
from lbopt.studies.cost.source import CostSource
from lbopt.studies.gap.study import STUDY as GAP
from lbopt.studies.gap.study import baseline_of
from lbopt.studies.scenario import Scenario
from lbopt.studies.simulation import STUDY as SIMULATION

Row = dict[str, Any]


def read_cost_source(folder: Path, router: str | None, *, allow_code: bool = False) -> CostSource:
    """Read an output folder of `lbopt gap` or `lbopt simulate`.

    Parameters
    ----------
    router
        Today's router, where there are several; None = the baseline of the study.
    allow_code
        Whether policy files that the folder names may be run.

    Raises
    ------
    InputError
        If it is no such folder, it names policy files that may not be run, or one of them has changed.
    """
    account, mark = _account(folder), f"'{folder / MARK}'"
    kind = account.get("format")
    if kind == GAP.format:
        with refused_code(mark, allowed=allow_code), edition(edition_of(account, mark)):
            return _of_gap(folder, router)
    if kind == SIMULATION.format:
        with edition(edition_of(account, mark)):
            return _of_simulation(folder, router)
    raise InputError(f"'{folder}' was written as '{kind}'; a cost is computed from folders of lbopt gap or simulate")


def _account(folder: Path) -> dict[str, Any]:
    if not exists(folder / MARK):
        raise InputError(f"'{called(folder)}' is not an output folder of lbopt gap or lbopt simulate: it has no {MARK}")
    account = read_json(folder / MARK, f"'{called(folder / MARK)}'")
    if not isinstance(account, dict):
        raise InputError(f"'{called(folder / MARK)}' is not the account of an lbopt folder")
    return account


def _of_gap(folder: Path, router: str | None) -> CostSource:
    changed = changed_code(read_account(folder, "gap")[1].get("code", {}))
    if changed is not None:
        raise InputError(f"'{folder}' cannot be priced: {changed}; run lbopt gap again")
    config, account = read_config(folder, "gap")
    runs = _long_runs(folder)
    names = list(runs)
    today = _named(router or baseline_of(config), names, folder)
    G, B = config.scenario.num_workers, config.scenario.slots_per_worker
    points = {name: LoadPoint.of_metrics(name, rows, G, B) for name, rows in runs.items()}
    notes = []
    if config.scenario.arrivals == "trace":
        points = {name: point.at_work_of(points[today]) for name, point in points.items()}
        notes.append(
            f"requests arrived by a clock: every router is priced at its own imbalance over the mean load and the "
            f"running requests of {today}"
        )
    chosen = [points[today]]
    rest = [point for name, point in points.items() if name != today]
    best = min(rest, key=lambda point: point.imbalance, default=points[today])
    if best.imbalance < points[today].imbalance:
        chosen.append(best)
    gap = _mean_gap(folder, today)
    if config.horizon > 0:
        notes.append("the report judges windows, not steps: the best next step is left out")
    elif gap is None:
        notes.append(f"no solved state was decided by {today}: the best next step is left out")
    else:
        mean, error, states, behaviour = gap
        nearer = points[today].with_imbalance(max(0.0, points[today].imbalance - mean), NEXT_STEP)
        chosen.append(replace(nearer, max_load_error=error / G))
        notes.append(
            f"{NEXT_STEP}: {today} less its mean gap of {mean:,.0f} ± {error:,.0f} tokens (one standard error) in "
            f"{states} solved states under {behaviour}"
        )
    chosen.append(points[today].balanced(LEVEL))
    if account["interrupted"]:
        notes.append("the report was interrupted: it covers what was done until then")
    given = {"horizon": config.horizon or None, "predictor": config.predictor}
    specs = {config.build(spec).name: spelled_out(spec) for spec in config.policies}
    return CostSource(
        title=f"{folder}: {config.scenario.requests.trace}, {config.scenario}",
        points=chosen,
        notes=notes,
        rerun=Rerun(
            config.scenario,
            {p.label: (specs[p.label], given) for p in chosen if p.label in specs},
            tuple(range(config.seed, config.seed + config.seeds)),
        ),
        step_time=config.scenario.step_time,
    )


def _of_simulation(folder: Path, router: str | None) -> CostSource:
    account = _account(folder)
    try:
        setting, name = account["setting"], account["policy"]
        point = LoadPoint.of_metrics(name, [account["metrics"]], setting["num_workers"], setting["slots_per_worker"])
        asked = account["asked"]
        scenario = Scenario.from_dict(asked["scenario"])
        seed = int(account["seed"])
        spec, given = spelled_out(str(asked["policy"])), {"horizon": asked["horizon"], "predictor": asked["predictor"]}
        rerun = Rerun(scenario, {str(name): (spec, given)}, (seed,))
    except InputError as error:
        raise InputError(f"'{folder / MARK}': {error}") from None
    except (KeyError, TypeError, ValueError) as error:
        raise InputError(
            f"'{folder / MARK}' is not an account of this version of lbopt simulate ({error!r}); run its command again"
        ) from None
    if router is not None and router != name:
        raise InputError(f"'{folder}' holds a run of '{name}' alone, not of '{router}'; leave router out")
    return CostSource(
        title=f"{folder}: {name} on {scenario.requests.trace}, {scenario}",
        points=[point, point.balanced(LEVEL)],
        rerun=rerun,
        step_time=scenario.step_time,
    )


def _long_runs(folder: Path) -> dict[str, list[Row]]:
    """Return the metrics of the long runs by policy, one row a seed."""
    path = folder / "long_runs.csv"
    name = f"'{called(path)}'"
    if not exists(path):
        raise InputError(
            f"'{called(folder)}' has no long runs to take loads from (no {path.name}); run lbopt gap without "
            "--no-long-runs"
        )
    runs: dict[str, list[Row]] = {}
    header, rows = csv_table(read_text(path, name), name, or_none=True)
    if not rows:
        raise InputError(f"{name} holds no run; the gap study was interrupted before its long runs")
    if "policy" not in header:
        raise InputError(f"{name} has no column policy; it is not what lbopt gap wrote")
    for line, cells in rows:
        row = dict(zip(header, cells, strict=True))
        runs.setdefault(row["policy"], []).append(_metrics(row, f"{name}, line {line}"))
    return runs


def _metrics(row: dict[str, str], where: str) -> Row:
    """Return the numbers that a load point needs."""
    try:
        found: Row = {name: float(row[name]) for name in NEEDED}
        low, high = row["imbalance_tokens_interval_low"], row["imbalance_tokens_interval_high"]
        found["imbalance_tokens_interval"] = (float(low), float(high)) if low and high else None
    except (KeyError, TypeError, ValueError) as error:
        raise InputError(f"{where} is not a long run of lbopt gap: {error}") from None
    return found


def _named(wanted: str, names: list[str], folder: Path) -> str:
    if wanted.startswith("replay:"):  # a log is called after its file, wherever it lies
        wanted = f"replay:{Path(wanted.removeprefix('replay:')).name}"
    if wanted not in names:
        raise unknown("router", wanted, names, f"; long runs of '{folder}'")
    return wanted


def _mean_gap(folder: Path, policy: str) -> tuple[float, float, int, str] | None:
    """Return mean, standard error, number and origin of a policy's gaps in solved states.

    Its own states count if there are any, else those of the same rule with other options (pooled JSQ for JSQ), else
    all.
    """
    gaps: dict[str, list[float]] = {}
    try:
        source = f"'{called(folder / 'steps.jsonl')}'"
        for _, record in json_lines(read_text(folder / "steps.jsonl", source, largest=2**30), source):
            if record["standing"] != "open" and policy in record["decisions"]:
                gap = record["decisions"][policy] - record["result"]["objective"]
                gaps.setdefault(record["behaviour"], []).append(gap)
    except InputError:
        raise
    except (KeyError, TypeError) as wrong:
        raise InputError(f"'{folder / 'steps.jsonl'}' is not what lbopt gap wrote: {wrong!r}") from None
    alike = [name for name in gaps if name.partition(":")[0] == policy.partition(":")[0]]
    own = [policy] if policy in gaps else alike or list(gaps)
    values = np.array([gap for name in own for gap in gaps[name]], dtype=np.float64)
    if values.size == 0:
        return None
    behaviour = " and ".join(own) if policy in gaps or alike else "all behaviours"
    error = standard_error(values) if values.size > 1 else 0.0
    return float(values.mean()), error, int(values.size), behaviour
