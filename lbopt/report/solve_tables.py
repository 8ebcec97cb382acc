"""Tables of results: of one problem, and of packaged ones.

The tables of one solved step problem: what is known, a line per worker that gets something, and who proved first.

The tables of the instance library: all entries, one entry, and what a solver made of some of them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from lbopt import numbers
from lbopt.instances.library import Entry, StoredRun
from lbopt.instances.library.collection import MEASURES, RUN_KIND
from lbopt.instances.library.entry import CERTIFICATES, PROOFS
from lbopt.model import StepProblem, loads_after
from lbopt.solvers import Result
from lbopt.studies.library import Attempt
from lbopt.table import Table


def result_table(problem: StepProblem, result: Result) -> Table:
    """Return the placement, one line per worker with free slots, under a sentence that says what it is worth."""
    rows = []
    if result.assignment is not None:
        after = loads_after(problem, result.assignment, result.paused)
        for g in np.flatnonzero(problem.slots > 0).tolist():
            placed = np.flatnonzero(result.assignment == g)
            sizes = ", ".join(f"#{i} ({numbers.tokens(problem.work[i, 0])})" for i in placed.tolist()) or "–"
            rows.append(
                (str(g), numbers.tokens(problem.base[g, 0]), str(problem.slots[g]), sizes, numbers.tokens(after[g, 0]))
            )
    waiting = 0 if result.assignment is None else int((result.assignment < 0).sum())
    return Table(
        title=result.summary(),
        caption=f"{problem.num_requests} requests, {_admitted(problem, result)} admitted, {waiting} keep waiting; "
        f"{_pauses(result)}problem {problem.digest[:12]}.{_unit(problem)}",
        headers=("worker", "load before", "free slots", "gets request (tokens)", "load after"),
        rows=rows,
    )


def comparison_table(results: Mapping[str, Result]) -> Table:
    """Return a line per solver: value, bound and seconds; the caption says who proved first."""
    best = min(map(_value, results.values()))
    rows = [
        (
            name,
            *map(numbers.tokens, (one.objective, one.bound)),
            f"{one.seconds:.3g}",
            "refuted" if one.bound > best else one.stop_reason,
        )
        for name, one in results.items()
    ]
    first = first_of(results)
    did = "proved it first" if results[first].proved else "claims it, and no solver proved it"
    if results[first].status != "optimal":
        did = "has the best of it, and no solver proved it"
    return Table(
        title=f"{first} {did}",
        caption="The solvers answered in turn. Refuted: another solver has a placement below the bound.",
        headers=("solver", "value", "bound", "seconds", "ended"),
        rows=rows,
    )


def first_of(results: Mapping[str, Result]) -> str:
    """Return who proved the optimum first; where none did, who claimed it first, else who has the best value."""
    best = min(map(_value, results.values()))
    sound = {name: one for name, one in results.items() if one.bound <= best}

    def rank(name: str) -> tuple[bool, bool, float, float]:
        one = sound[name]
        return not one.proved, one.status != "optimal", _value(one), one.seconds

    return min(sound, key=rank)


def _value(result: Result) -> float:
    return math.inf if result.objective is None else result.objective


def _admitted(problem: StepProblem, result: Result) -> int:
    """Return how many are admitted; under conditions fewer than slots permit may be."""
    plain = problem.conditions is None or result.assignment is None
    return problem.num_admitted if plain else int((result.placed() >= 0).sum())


def _pauses(result: Result) -> str:
    if result.paused is None:
        return ""
    return f"running requests that pause: {', '.join(map(str, np.flatnonzero(result.paused).tolist())) or 'none'}; "


def _unit(problem: StepProblem) -> str:
    if problem.conditions is None or problem.conditions.pace is None:
        return ""
    return " Loads after are in units of pace, as the objective is."


_HEADERS = ("name", "class", "G", "H", "N", "free slots", "best (tokens)", "bound (tokens)", "status")


def entry_facts(entry: Entry) -> dict[str, Any]:
    """Return the line of an entry in the list, as plain values."""
    problem = entry.problem
    return {
        "name": entry.name,
        "class": entry.kind,
        "workers": problem.num_workers,
        "horizon": problem.horizon,
        "requests": problem.num_requests,
        "free_slots": problem.num_free_slots,
        "best": entry.best,
        "bound": entry.bound,
        "proof": entry.record.proof,
        "claimed_bound": entry.record.claimed_bound,
        "status": entry.status,
    }


def list_table(entries: Sequence[Entry]) -> Table:
    """Return one line per entry."""
    rows = []
    for entry in entries:
        facts = entry_facts(entry)
        names = (facts["name"], facts["class"])
        shape = (str(facts[key]) for key in ("workers", "horizon", "requests", "free_slots"))
        rows.append((*names, *shape, numbers.tokens(facts["best"]), numbers.tokens(facts["bound"]), facts["status"]))
    counts = {
        status: sum(entry.status == status for entry in entries) for status in ("proved", "searched", "claimed", "open")
    }
    return Table(
        title=f"{len(entries)} entries of the instance library",
        caption=", ".join(f"{count} {status}" for status, count in counts.items() if count or status != "searched")
        + "; a bound is proved by lbopt itself, a claimed optimum is the word of a solver.",
        headers=_HEADERS,
        rows=rows,
    )


def entry_lines(entry: Entry) -> list[tuple[str, str]]:
    """Return the pedigree, the problem and what is known of it, as (what, is so)."""
    problem, record, origin = entry.problem, entry.record, entry.origin
    parameters = ", ".join(f"{name} {value}" for name, value in origin.parameters.items())
    claim = "none"
    if record.claimed_bound is not None:
        claim = f"{numbers.tokens(record.claimed_bound)}, claimed by {record.claimed_by}"
    certificate = CERTIFICATES[record.certificate]
    if record.certificate_note:
        certificate += f": {record.certificate_note}"
    if record.certificate_digest is not None:
        certificate += f" (SHA-256 {record.certificate_digest[:16]}…)"
    slots = "–" if origin.slots_per_worker is None else str(origin.slots_per_worker)
    return [
        ("class", entry.kind),
        ("origin", f"{origin.source}; recipe {origin.recipe}"),
        ("seed", "none" if origin.seed is None else str(origin.seed)),
        ("parameters", parameters or "none"),
        ("workers G", str(problem.num_workers)),
        ("slots per worker B", slots),
        ("free slots", str(problem.num_free_slots)),
        ("waiting requests N", f"{problem.num_requests}, {problem.num_admitted} of them start"),
        ("must be admitted", str(int(problem.must_admit.sum()))),
        ("horizon H", str(problem.horizon)),
        ("digest", problem.digest),
        ("status", entry.status),
        ("best (tokens)", f"{numbers.tokens(record.best)}, found by {record.best_by or 'no solver'}"),
        ("bound (tokens)", f"{numbers.tokens(record.bound)}, proved by {record.bound_by}"),
        ("proof", f"{record.proof}: {PROOFS[record.proof]}"),
        ("certificate", certificate),
        ("higher claimed bound", claim),
    ]


def attempt_table(attempts: Sequence[Attempt], solver: str) -> Table:
    """Return one line per attempt: what was reached, what is known, and how they compare."""
    rows = []
    for one in attempts:
        entry, result = one.entry, one.result
        verdict = f"{one.verdict}; {one.news}" if one.news and one.verdict != "contradiction" else one.verdict
        values = (result.objective, entry.best, result.bound, entry.bound)
        rows.append((entry.name, *map(numbers.tokens, values), result.stop_reason, f"{result.seconds:.2f}", verdict))
    counts = [f"{sum(one.verdict == verdict for one in attempts)} {verdict}" for verdict in _verdicts(attempts)]
    return Table(
        title=f"solver {solver} on {len(attempts)} entries",
        caption="; ".join(counts) or "nothing was solved",
        headers=("name", "value", "best known", "bound", "best proved", "ended", "seconds", "verdict"),
        rows=rows,
    )


def _verdicts(attempts: Sequence[Attempt]) -> list[str]:
    return list(dict.fromkeys(one.verdict for one in attempts))


def run_facts(run: StoredRun) -> dict[str, Any]:
    """Return the line of a run in the list, as plain values."""
    return {"name": run.name, "class": RUN_KIND, **run.to_dict(), "ratio": run.ratio, "command": run.command}


def run_table(runs: Sequence[StoredRun]) -> Table:
    """Return one line per run."""
    rows = [
        (
            run.name, run.rule, str(run.workers), str(run.slots), str(len(run.prompt)), numbers.tokens(run.reached),
            numbers.tokens(run.least), f"{run.ratio:.3f}",
        )
        for run in runs
    ]  # fmt: skip
    return Table(
        title=f"{len(runs)} whole runs of the instance library",
        caption="The worst found for each rule; every optimum is proved by exhaustion.",
        headers=("name", "rule", "G", "B", "N", "rule (tokens)", "optimum (tokens)", "ratio"),
        rows=rows,
    )


def run_explanation(run: StoredRun) -> str:
    """Say in a sentence what a run shows."""
    return f"Found by search: {run.rule} pays {run.reached:,} tokens where {run.least:,} are enough."


def run_lines(run: StoredRun) -> list[tuple[str, str]]:
    """Return the pedigree of a run and its requests, as (what, is so)."""
    excess = run.workers * (run.reached - run.least)
    return [
        ("class", RUN_KIND),
        ("rule", run.rule),
        ("measure", f"{run.measure}: {MEASURES[run.measure]}"),
        ("ratio", f"{run.ratio:.4f}"),
        ("rule (tokens)", numbers.tokens(run.reached)),
        ("optimum (tokens)", f"{numbers.tokens(run.least)}, proved by exhaustion"),
        ("a step's fixed part", f"{numbers.tokens(run.fixed)} tokens"),
        ("more imbalance", "–" if run.fixed else f"{numbers.tokens(excess)} tokens"),
        ("workers G", str(run.workers)),
        ("slots per worker B", str(run.slots)),
        ("requests N", str(len(run.prompt))),
        ("prompts", ", ".join(map(str, run.prompt))),
        ("outputs", ", ".join(map(str, run.output))),
        ("found by", run.command),
    ]
