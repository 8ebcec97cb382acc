"""The gap study of prefill batches on small fleets: what is sampled, what is averaged, what Ctrl-C keeps."""

import dataclasses
import json
import math
from itertools import product

import numpy as np
import pytest
from studies.small_batches import RULES, config, outcome

from lbopt.exceptions import BackendUnavailableError, InputError, LbOptError
from lbopt.prefill import PassTime
from lbopt.prefill.exact import PrefillBatch, sent_by
from lbopt.report.batch_gap_report import batch_record, batches_csv
from lbopt.solvers import registry
from lbopt.studies.batches import BatchesConfig, run_batches, study
from lbopt.studies.batches.study import seconds_until_done
from lbopt.studies.requests import RequestSource


def plain(found):
    return json.dumps([[batch_record(one) for one in found.judged], batches_csv(found), found.notes, found.trace])


@pytest.mark.parametrize("behaviour", RULES)
def test_a_behaviour_asked_again_does_what_it_did(behaviour):
    found = run_batches(config(behaviours=(behaviour,), rules=("round-robin",), load=0.9))
    assert len(found.judged) == 6
    for one in found.judged:
        state = one.state
        assert sent_by(state.batch, behaviour, state.dispatch.turn).tolist() == state.dispatch.unit.tolist()


def test_optima_by_exhaustion_and_rows_by_hand():
    checked = 0
    for one in outcome().judged:
        batch = one.state.batch
        if batch.num_requests > 8:
            continue
        checked += 1
        least, most = math.inf, 0
        for unit in product(range(-1, 3), repeat=batch.num_requests):
            loads = batch.loads_after(unit) if unit else batch.load.tolist()
            most = max(most, sum(min(tokens, 1024) for tokens in loads))
            least = min(least, max(loads)) if -1 not in unit else least
        assert (one.placement.straggler, one.fill.filled) == (least, most)
        assert (one.straggler_standing, one.fill_standing) != ("open", "open")
        for rule in one.rules:
            assert one.straggler_gap(rule) == (rule.straggler - least) / least
            assert one.fill_gap(rule) == (most - rule.filled) / (3 * 1024)
    assert checked >= 3


def test_seconds_of_passes():
    law = PassTime()
    assert seconds_until_done(0, 100) == 0
    assert seconds_until_done(100, 100) == law.seconds(100)
    assert seconds_until_done(250, 100) == pytest.approx(2 * law.seconds(100) + law.seconds(50))


def test_a_row_of_the_table():
    judged = outcome().judged
    assert all("open" not in (one.straggler_standing, one.fill_standing) for one in judged)
    row = outcome().row("round-robin")
    own = [(one, one.rules[RULES.index("round-robin")]) for one in judged]
    gaps = np.array([one.straggler_gap(r) for one, r in own])
    assert (row.batches, row.straggler_open, row.fill_open, row.proved + row.claimed) == (12, 0, 0, 12)
    assert row.straggler_gap_mean_share == pytest.approx(gaps.mean())
    assert row.straggler_gap_p95_share == pytest.approx(np.quantile(gaps, 0.95))
    assert row.straggler_gap_max_share == gaps.max() > 0
    assert row.straggler_optimal_share == (gaps == 0).mean()
    assert row.fill_gap_max_share == max(one.fill_gap(r) for one, r in own) > 0
    assert row.overshoot_mean_tokens == pytest.approx(np.mean([r.overshoot for _, r in own]))
    assert [(r.behaviour, r.rule) for r in outcome().rows()] == list(product(("all", "pbaa", "least-loaded"), RULES))


def test_open_optima_enter_no_average(monkeypatch):
    calls = iter(range(100))
    known = study.allocation_gaps

    def sometimes(*arguments, **options):
        rows, placement, fill = known(*arguments, **options)
        which = next(calls) % 3
        if which == 1:
            placement = dataclasses.replace(placement, bound=0)
        if which == 2:
            fill = dataclasses.replace(fill, bounds=(fill.filled + 1, 0, 0))
        return rows, placement, fill

    monkeypatch.setattr(study, "allocation_gaps", sometimes)
    found = run_batches(config())
    row = found.row("pbaa")
    assert (row.batches, row.straggler_open, row.fill_open, row.proved + row.claimed) == (12, 4, 4, 4)
    placed = [one for k, one in enumerate(found.judged) if k % 3 != 1]
    assert row.straggler_gap_mean_share == pytest.approx(np.mean([one.straggler_gap(one.rules[0]) for one in placed]))
    filled = [one for k, one in enumerate(found.judged) if k % 3 != 2]
    assert row.fill_gap_mean_share == pytest.approx(np.mean([one.fill_gap(one.rules[0]) for one in filled]))
    empty = [r for r in batches_csv(found) if r["batch"] % 3 == 1]
    assert all(r["straggler_gap_share"] is r["seconds_lost"] is None for r in empty)


@pytest.mark.parametrize(
    ("which", "wrong", "says"),
    [
        (1, lambda p: dataclasses.replace(p, straggler=p.straggler - 1), "least straggler is not what its units have"),
        (1, lambda p: dataclasses.replace(p, bound=p.bound + 9999), "refute the bounds"),
        (2, lambda f: dataclasses.replace(f, filled=f.filled + 1), "fullest pass is not what its units have"),
        (2, lambda f: dataclasses.replace(f, bounds=(f.filled - 1, 0, 0)), "refute the bounds"),
    ],
)
def test_an_optimum_that_does_not_stand_a_recount_ends_the_study(monkeypatch, which, wrong, says):
    known = study.allocation_gaps

    def lying(*arguments, **options):
        found = list(known(*arguments, **options))
        found[which] = wrong(found[which])
        return found

    monkeypatch.setattr(study, "allocation_gaps", lying)
    with pytest.raises(LbOptError, match=says):
        run_batches(config())


def test_equal_configurations_give_equal_numbers():
    again = BatchesConfig.from_dict(json.loads(json.dumps(config().to_dict())))
    assert again == config()
    assert plain(run_batches(again)) == plain(outcome())


def test_frozen_batches_can_be_built_again():
    for one in outcome().judged:
        batch = PrefillBatch(**json.loads(json.dumps(one.state.to_dict()))["batch"])
        assert batch.loads_after(one.placement.unit) == one.state.batch.loads_after(one.placement.unit)
        assert batch.pending.tolist() == one.state.batch.pending.tolist()


def test_dispatches_lie_between_the_first_tenth_and_the_last_arrival():
    times = [one.state.dispatch.time for one in outcome().judged if one.state.behaviour == "pbaa"]
    assert times == sorted(set(times))
    requests = study.arrivals(config(), config().requests.draw_for(3))
    assert requests.arrival[40] <= times[0] and times[-1] <= requests.arrival[-1]


def test_an_overloaded_behaviour_and_too_few_dispatches_are_noted():
    found = run_batches(config(behaviours=("round-robin",), rules=("pbaa",), load=3.0, states=500, time_limit=0.01))
    assert found.notes[0].startswith(f"behaviour round-robin: {len(found.judged)} batches instead of 500")
    assert "behaviour round-robin falls behind at this load" in found.notes[1]
    assert outcome().notes == []


def test_ctrl_c_keeps_what_is_done(monkeypatch):
    calls = iter(range(100))
    known = study.judge

    def interrupted(*arguments):
        if next(calls) == 4:
            raise KeyboardInterrupt
        return known(*arguments)

    monkeypatch.setattr(study, "judge", interrupted)
    found = run_batches(config())
    assert found.interrupted
    assert [batch_record(one) for one in found.judged] == [batch_record(one) for one in outcome().judged[:4]]


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"states": 0}, "states is 0"),
        ({"seed": -1}, "seed is -1"),
        ({"load": math.nan}, "load is nan; expected a share above 0"),
        ({"chunk": 0}, "chunk_tokens is 0"),
        ({"units": 0}, "units_per_instance is 0"),
        ({"instances": 0}, "there are 0 instances"),
        ({"rules": ()}, "no policy was named"),
        ({"rules": ("pbaa", "pbaa:whole=no")}, "allocation 'pbaa' is named twice among the rules"),
        ({"behaviours": ("pbba",)}, "unknown allocation 'pbba': did you mean pbaa"),
        ({"time_limit": 0.0}, "time_limit is 0.0"),
    ],
)
def test_a_configuration_that_cannot_be_is_refused(changes, says):
    with pytest.raises(InputError, match=says):
        config(**changes)


def test_one_request_gives_no_batch():
    with pytest.raises(InputError, match="use more requests"):
        run_batches(config(requests=RequestSource(trace="burstgpt-like", count=1), behaviours=("pbaa",)))


def test_without_cp_sat_it_says_so(monkeypatch):
    monkeypatch.setattr(registry, "find_spec", lambda name: None)
    with pytest.raises(BackendUnavailableError, match="solver 'cp-sat' needs the package ortools"):
        config()


def test_nothing_is_compiled_within_a_time_limit(monkeypatch):
    asked = []
    monkeypatch.setattr(study, "warm", lambda solver, window: asked.append((solver, window)))
    monkeypatch.setattr(study, "judge", lambda state, config: asked.append("judge"))
    run_batches(config())
    assert asked[:2] == [("exact", False), "judge"]
