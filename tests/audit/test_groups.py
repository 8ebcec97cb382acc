"""Groups of workers at one barrier: found from labels and clocks, audited by themselves, added up."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from audit.as_log import as_log
from audit.engine import Engine, Faults, Served, run, run_once
from audit.fleets import FLEETS

from lbopt.exceptions import InputError
from lbopt.instances.router_log import RouterLog
from lbopt.model import Eligibility
from lbopt.report.audit_report import audit_tables, headline, render_audit_page, rule_rows
from lbopt.studies.audit import AuditConfig, AuditOfGroups, AuditOutcome, audit_log
from lbopt.studies.audit.groups import groups_of, only, part_of, served_by
from lbopt.studies.audit.rules import kept_of

_SECONDS = ("arrival", "start", "finish")
_ARRAYS = ("ids", *_SECONDS, "prompt", "output", "worker", "ending")


def ordered(log: RouterLog, **columns: np.ndarray) -> RouterLog:
    """The log with other columns, in the order of start."""
    known = {name: getattr(log, name) for name in _ARRAYS} | columns
    order = np.argsort(known["start"], kind="stable")
    return replace(log, **{name: values[order] for name, values in known.items()})


def beside(one: RouterLog, other: RouterLog, later: float = 7.3) -> RouterLog:
    """Two logs as one: workers of the second follow those of the first, and its clock is behind."""
    columns = {name: np.concatenate([getattr(one, name), getattr(other, name)]) for name in _ARRAYS}
    second = np.arange(len(one) + len(other)) >= len(one)
    for name in _SECONDS:
        columns[name] = columns[name] + later * second
    columns["worker"] = columns["worker"] + len(one.workers) * second
    names = (*(f"a{g}" for g in one.workers), *(f"b{g}" for g in other.workers))
    order = np.argsort(columns["start"], kind="stable")
    found = replace(one, workers=names, **{name: values[order] for name, values in columns.items()})
    return replace(found, labels={"model": np.where(second, "b", "a")[order]})


def ticks(log: RouterLog, tick: float) -> RouterLog:
    """The log with a clock of so many seconds a tick."""
    return ordered(log, **{name: np.floor(getattr(log, name) / tick) * tick for name in _SECONDS})


def small(name: str = "small-busy", **other: object) -> RouterLog:
    """The log of a fleet."""
    return as_log(run(replace(FLEETS[name], **other)) if other else run_once(FLEETS[name]))  # type: ignore[arg-type]


def sizes(log: RouterLog) -> list[int]:
    """Workers of each group."""
    return [len(group.log.workers) for group in groups_of(log)[0]]


def test_two_clocks_are_two_groups_and_one_clock_is_one():
    one = small()
    both = replace(beside(one, small(seed=33)), labels={})
    for tick, two in ((0.0, True), (1e-3, True), (1.0, False)):
        apart = both if not tick else ticks(both, tick)
        groups, notes = groups_of(apart)
        assert [set(group.log.workers) for group in groups] == (
            [{f"aw{g}" for g in range(4)}, {f"bw{g}" for g in range(4)}] if two else [set(both.workers)]
        )
        assert any("--group COLUMN" in note for note in notes) != two
        assert sizes(one if not tick else ticks(one, tick)) == [4]


def test_the_noise_of_steps_does_not_move_the_answer():
    for noise in (0.2, 0.5):
        one, other = small(noise=noise), small(noise=noise, seed=33)
        assert sizes(one) == [4]
        assert sizes(replace(beside(one, other), labels={})) == [4, 4]


def test_two_models_are_audited_each_and_their_money_is_added():
    log = beside(small("eight-half", rule="round-robin"), small("eight-half", rule="round-robin"))
    config = AuditConfig(log="two", rules=("jsq", "jsq-load"), states=0, price=2.5, gpus=32)
    found = audit_log(log, config)
    assert isinstance(found, AuditOfGroups)
    assert list(found.groups) == ["model a", "model b"]
    alone = audit_log(only(log, ["model=a"]), replace(config, gpus=16))
    assert found.groups["model a"].recommendation == alone.recommendation
    assert found.recommendation.per_month == pytest.approx(2 * alone.recommendation.per_month)
    assert found.recommendation.workers == 2 * alone.recommendation.workers
    assert {row["group"] for row in rule_rows(found)} == {"model a", "model b"}
    assert audit_tables(found)[0].rows[-1][0] == "together"
    page = render_audit_page(found, [[], []], {"versions": {"lbopt": "0"}}, "lbopt audit")
    assert headline(found) in page
    assert "model b: " in page
    with pytest.raises(InputError, match="31, which 16 workers"):
        audit_log(log, replace(config, gpus=31))
    assert not isinstance(audit_log(log, replace(config, only=("model=b",), rules=("jsq",))), AuditOfGroups)


def test_labels_of_one_barrier_do_not_split_it():
    log = small("eight-busy")
    rng = np.random.default_rng(0)
    few = np.array([f"t{k}" for k in rng.permutation(len(log))])
    assert sizes(replace(log, labels={"tenant": few})) == [8]  # one request a tenant: each has one worker, by chance
    adapter = np.where(log.worker < 4, "low", "high")
    assert sizes(replace(log, labels={"adapter": adapter})) == [8]  # adapters on disjoint workers of one barrier
    assert sizes(replace(log, labels={"model": adapter})) == [8]


def test_what_the_clocks_do_not_show_is_asked():
    log = ticks(small("eight-busy"), 1.0)
    half = np.where(log.worker < 4, "low", "high")
    assert sizes(replace(log, labels={"model": half})) == [4, 4]
    for quantity in ("adapter", "tenant"):
        with pytest.raises(InputError, match=f"share no {quantity}.*--group COLUMN"):
            groups_of(replace(log, labels={quantity: half}))
    assert sizes(replace(log, labels={"adapter": half, "group": np.full(len(log), "all")})) == [8]
    with pytest.raises(InputError, match="in 2 groups"):
        groups_of(replace(log, labels={"group": np.where(np.arange(len(log)) % 2, "x", "y")}))


def test_only_names_what_there_is():
    log = beside(small(), small())
    assert part_of(log, log.worker > 3).workers == ("bw0", "bw1", "bw2", "bw3")
    with pytest.raises(InputError, match=r"no model 'c'; it has a, b"):
        only(log, ["model=c"])
    with pytest.raises(InputError, match="names no tenant"):
        only(log, ["tenant=x"])
    with pytest.raises(InputError, match="QUANTITY=NAME"):
        AuditConfig(log="x", only=("model",))


def test_workers_that_never_serve_an_adapter_are_not_eligible():
    log = small("eight-busy")
    assert served_by(log) is None
    rare = np.where((log.worker < 4) & (np.arange(len(log)) % 3 == 0), "lora", "base")
    served = served_by(replace(log, labels={"adapter": rare}))
    assert served is not None
    allowed = served.allowed[served.kind]
    assert allowed[rare == "base"].all()
    assert allowed[rare == "lora"].sum(axis=1).tolist() == [4] * int((rare == "lora").sum())


def test_an_adapter_on_some_workers_is_kept_there_and_the_change_is_the_true_one():
    """An engine of its own serves 30 % of the requests on three of eight workers, by turns and by the fewest tokens."""
    fleet = FLEETS["eight-half"]
    asked = fleet.draw()
    lora = np.random.default_rng(1).random(len(asked.arrival)) < 0.3
    allowed = np.where(lora[:, None], np.arange(fleet.G) < 3, True)

    def serve(rule: str) -> Served:
        engine = Engine(fleet, rule, 0, asked, Faults())
        engine.router.allowed = allowed
        return engine.run()

    before, after = serve("round-robin"), serve("jsq-load")
    log = as_log(before)
    log = replace(log, labels={"adapter": np.where(lora, "lora", "")[log.ids.astype(int)]})
    best = "jsq-load:admission=immediate"
    found = audit_log(log, AuditConfig(log="x", rules=("round-robin", best), states=5, price=2.5, gpus=8))
    assert isinstance(found, AuditOutcome)
    said, truth = found.recommendation, after.tpot / before.tpot - 1
    assert said.rule == best
    assert said.change_interval is not None
    assert said.change_interval[0] < truth < said.change_interval[1]
    assert said.change == pytest.approx(truth, abs=0.02)
    turns = found.runs[1].change_interval  # round-robin, again
    assert turns[0] < 0 < turns[1]
    assert "31% of the requests: lora on w0, w1, w2" in found.findings[0].sentence
    assert found.gaps is not None
    assert found.gaps.proved == found.gaps.sampled
    blind = audit_log(replace(log, labels={}), AuditConfig(log="x", rules=(best,), states=0))
    assert isinstance(blind, AuditOutcome)
    assert blind.runs[1].change < said.change - 0.02


def test_fewer_workers_keep_the_share_of_those_that_serve_the_same():
    served = Eligibility(kind=[0, 1], allowed=[[1] * 8, [1, 1, 0, 0, 0, 0, 0, 0]])
    assert kept_of(served, 7).tolist() == [0, 1, 2, 3, 4, 5, 6]
    assert kept_of(served, 4).tolist() == [0, 2, 3, 4]
    assert kept_of(served, 2).tolist() == [0, 2]
    assert kept_of(served, 1).size == 0
