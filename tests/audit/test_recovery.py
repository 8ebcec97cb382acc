"""An audit of what an independent engine logged finds that engine's law, its idle time, and its order of rules."""

from __future__ import annotations

from dataclasses import replace
from itertools import permutations

import numpy as np
import pytest
from audit.as_log import as_log
from audit.engine import run, run_once
from audit.fleets import FLEETS, LARGE

from lbopt.studies.audit import AuditConfig, audit_log
from lbopt.studies.audit.happened import what_happened
from lbopt.studies.audit.law_from_log import reconstruct

#: The engine's rules and lbopt's of the same meaning.
SAME = {
    "round-robin": "round-robin",
    "random": "random",
    "jsq": "jsq",
    "jsq-load": "jsq-load:admission=immediate",
    "lightest": "jsq-load",
}
#: Fleets whose rules are ranked in every run of the tests: saturated, half full, a fifth full, long tails.
RANKED = ("small-idle", "eight-half", "eight-at-once", "sixteen-tail")

EACH = [pytest.param(n, marks=pytest.mark.slow if n in LARGE else []) for n in FLEETS]


@pytest.mark.parametrize("name", EACH)
def test_law_and_figures_of_the_engine_are_recovered(name):
    """Slope and fixed part within 5 %, time per token within 2 %, idle share within a point."""
    served = run_once(FLEETS[name])
    found = reconstruct(as_log(served))
    seen = what_happened(found, found.course.most_running)
    fixed, per_token = served.law
    assert found.law.fixed == pytest.approx(fixed, rel=0.05)
    assert found.law.per_token == pytest.approx(per_token, rel=0.05)
    assert seen.tpot_mean == pytest.approx(served.tpot, rel=0.02)
    assert seen.misfit.worst < 0.02
    assert seen.idle_share == pytest.approx(served.idle, abs=0.01)
    assert seen.steps == pytest.approx(served.steps, rel=0.02)
    assert found.course.most_running <= served.B


@pytest.mark.parametrize("name", EACH)
def test_times_with_a_delay_of_their_own_still_give_the_law(name):
    """Ends are written up to a fifth of a step late: no whole numbers of steps are seen, and requests are fitted."""
    served = run_once(FLEETS[name])
    rng = np.random.default_rng(1)
    step = float(np.median(served.step_time))
    late = rng.uniform(0, 0.2 * step, served.finish.size)
    served = replace(served, finish=served.finish + late)
    found = reconstruct(as_log(served))
    seen = what_happened(found, found.course.most_running)
    assert found.law.by == "requests"
    assert seen.idle_share == pytest.approx(served.idle, abs=0.01)
    assert seen.misfit.worst < 0.05
    heaviest = float(found.course.heaviest @ found.steps / found.steps.sum())
    mean_step = served.law[0] + served.law[1] * heaviest
    assert found.mean_step_seconds == pytest.approx(mean_step, rel=0.02)


def ranks(name: str, seeds: int) -> tuple[int, list[str]]:
    """Pairs of rules that the engine tells apart, and those of them that the audit decides the other way round."""
    fleet = FLEETS[name]
    outcome = audit_log(as_log(run_once(fleet)), AuditConfig(log="engine", rules=tuple(SAME.values()), states=0))
    audited = {rule: next(one for one in outcome.runs if one.rule == own) for rule, own in SAME.items()}
    engine = {rule: [run_once(fleet, rule=rule, seed=seed).tpot for seed in range(seeds)] for rule in SAME}
    pairs, wrong = 0, []
    for better, worse in permutations(SAME, 2):
        if max(engine[better]) < min(engine[worse]):
            pairs += 1
            if audited[better].change_interval[0] > audited[worse].change_interval[1]:
                wrong.append(f"{name}: the engine prefers {better} to {worse}, the audit is sure of the opposite")
    return pairs, wrong


@pytest.mark.some(1)
@pytest.mark.jit
@pytest.mark.parametrize("name", [pytest.param(n, marks=[] if n in RANKED else pytest.mark.slow) for n in FLEETS])
def test_rules_are_ranked_as_the_engine_ranks_them(name):
    """Of pairs that the engine tells apart in every seed, none is decided the other way round."""
    pairs, wrong = ranks(name, 3)
    assert wrong == []
    assert pairs >= 3


@pytest.mark.some(1)
@pytest.mark.jit
@pytest.mark.parametrize(("name", "rule"), [("eight-half", "round-robin"), ("sixteen-busy", "random")])
def test_the_engine_does_with_fewer_workers_what_the_audit_promises(name, rule):
    """With the workers that are said to be enough, the engine is as fast as the log, within two per cent."""
    fleet = FLEETS[name]
    requests = fleet.draw()
    served = run(fleet, rule=rule, requests=requests)
    rules = (SAME["jsq"], SAME["jsq-load"])
    best = audit_log(as_log(served), AuditConfig(log="engine", rules=rules, slots=fleet.B, states=0)).recommendation
    assert best.rule == SAME["jsq-load"]
    assert best.workers is not None and best.workers < fleet.G
    smaller = run(replace(fleet, G=best.workers), rule="jsq-load", requests=requests)
    assert smaller.tpot < 1.02 * served.tpot
    assert smaller.wait < served.wait + 0.05


@pytest.mark.jit
def test_the_recommended_rule_is_faster_in_the_engine():
    """What the audit promises for a fleet under round robin, the engine delivers, within two points."""
    fleet = FLEETS["eight-half"]
    served = run_once(fleet, rule="round-robin")
    outcome = audit_log(as_log(served), AuditConfig(log="engine", rules=tuple(SAME.values()), states=0))
    best = outcome.recommendation
    assert best.verdict == "switch"
    own = next(rule for rule, name in SAME.items() if name == best.rule)
    change = run_once(fleet, rule=own).tpot / served.tpot - 1
    assert change == pytest.approx(best.change, abs=0.02)
