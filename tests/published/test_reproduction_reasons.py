"""Reasons of the reproductions: each is computed from its runs or its requests, and others make another one."""

from __future__ import annotations

import dataclasses
import json

import pytest
from published.reproduction_answers import FIGURES

from tools.studies.reproduction import ITEMS, ReproductionConfig, Row, balance_route, reasons
from tools.studies.reproduction.drawn import pool_of
from tools.studies.reproduction.study import QUESTIONS

QUICK = {"requests": 600, "seeds": 2, "seed": 3}

#: Every figure larger, each by another factor, so that no ratio stays.
OTHERS = {name: value * (1.2 + 0.1 * place) for place, (name, value) in enumerate(FIGURES.items())}


def answered(question, *figures):
    """Return a row whose cells returned these figures, cells beyond them the last, and that does not agree."""
    cells = [figures[min(place, len(figures) - 1)] for place in range(len(question.cells))]
    return Row(question, (1e9, 1.001e9), tuple(cells))


@pytest.mark.parametrize("item", ITEMS)
def test_other_runs_or_other_requests_have_another_reason(item, tmp_path):
    """No reason is printed whatever the data say."""
    file = tmp_path / "others.json"
    lengths = [{"input_length": 300 + i, "output_length": 400 + 2 * i} for i in range(600)]
    file.write_text(json.dumps({"data": lengths}))
    config = ReproductionConfig(items=(item,), **QUICK)
    other = ReproductionConfig(items=(item,), burstgpt=str(file), azure=str(file), **QUICK)
    asked = [(one, two) for one, two in zip(QUESTIONS[item](config), QUESTIONS[item](other), strict=True) if one.cells]
    assert asked
    for question, of_others in asked:
        first, second = answered(question, FIGURES, OTHERS), answered(question, OTHERS, FIGURES)
        text = first.question.why(first)
        assert text
        assert first.why == ("" if first.verdict == "agrees" else text)
        changed = second.question.why(second) != text or of_others.why(answered(of_others, FIGURES, OTHERS)) != text
        assert changed, (question.quantity, text)


def test_a_reason_is_asked_for_with_the_means_over_seeds():
    asked = next(q for q in QUESTIONS["kv-spread"](ReproductionConfig(items=("kv-spread",), **QUICK)) if q.cells)
    answers = {
        task.key: FIGURES | {"running": float(running), "band_mean": 80e3}
        for task, running in zip(asked.tasks(), (960, 1600), strict=True)
    }
    row = asked.answer(answers)
    assert row.means[0]["running"] == 1280
    assert reasons.of_unit(32)(row) == "a unit runs 40.0 requests of 2,000 tokens here"


def test_what_a_pool_holds_decides_what_is_said_of_it():
    asked = next(q for q in balance_route.questions(ReproductionConfig(items=("balance-route",), **QUICK)) if q.cells)
    deep, empty = (reasons.of_pool("BR-0")(answered(asked, FIGURES | {"waiting": waiting})) for waiting in (12.0, 0.4))
    assert deep == "BR-0 found 12.0 waiting requests at a decision here; the source does not print how many it had"
    assert "found 0.4 waiting requests at a decision here, so that most decisions had nothing to choose;" in empty


def test_a_gain_is_taken_apart_by_hand():
    """10 % more running requests and steps of 55 instead of 60 ms: 9.1 % more steps a second."""
    ours, jsq = FIGURES | {"running": 550.0, "step_seconds": 0.055}, FIGURES
    asked = QUESTIONS["balance-route"](ReproductionConfig(items=("balance-route",), **QUICK))[0]
    two = dataclasses.replace(asked, cells=asked.cells[:2])
    assert reasons.of_slots(("BR-H", "JSQ"), 576)(answered(two, ours, jsq)) == (
        "here it is +10.0 % running requests and +9.1 % steps a second; slots taken: 95.5% under BR-H and 86.8% under "
        "JSQ"
    )
    assert reasons.of_share(0.13)(answered(two, FIGURES | {"max_load": 81e3}, FIGURES)) == (
        "the heaviest load is 10.0 % below JSQ's here, and 13 % of a balanced step depends on it; the source prints "
        "neither"
    )
    level = reasons.of_reading(26e-9, 0.01)(answered(two, FIGURES, FIGURES | {"max_load": 100e3, "mean_load": 80e3}))
    assert level == (
        "the baseline's heaviest unit is read in 2.6 of 12.6 ms here, and perfectly level loads would gain 4.3 %"
    )


def test_two_rules_are_one_only_where_their_runs_are():
    assert "made the same runs" in reasons.of_one_rule(FIGURES, dict(FIGURES), FIGURES)
    other = FIGURES | {"max_load": 90.9e3}
    assert reasons.of_one_rule(other, FIGURES, FIGURES) == "the heaviest loads of the two rules are 1.00 % apart"


def test_a_forecast_is_held_against_the_lengths_at_hand(tmp_path):
    file = tmp_path / "longer.json"
    file.write_text(json.dumps({"data": [{"input_length": 300, "output_length": 400}] * 600}))
    row = answered(
        next(q for q in QUESTIONS["kv-spread"](ReproductionConfig(items=("kv-spread",), **QUICK)) if len(q.cells) == 2),
        FIGURES,
    )
    of_family = reasons.of_lengths(pool_of("burstgpt-like", 0), 80)(row)
    of_file = reasons.of_lengths(pool_of(str(file), 0), 80)(row)
    output = pool_of("burstgpt-like", 0).output
    assert (
        f"run {output.mean():.0f} steps on average here, {(output <= 80).mean():.0%} of them 80 or fewer" in of_family
    )
    assert "most of what it levels has left" in of_family
    assert "run 400 steps on average here, 0% of them 80 or fewer" in of_file
    assert "is still there" in of_file


def test_the_posts_two_tables_are_quoted_where_both_have_the_cell():
    asked = QUESTIONS["scaling"](ReproductionConfig(items=("scaling",), **QUICK))
    said = {q.quantity: q.why(answered(q, FIGURES, OTHERS)) for q in asked}
    assert said["throughput gain, JSQ-Load over JSQ, G = 8"].endswith("print 4.3 and 8.2 % for this cell")
    assert "two tables" not in said["throughput gain, JSQ-Load over JSQ, G = 4"]
    assert "two tables" not in said["throughput gain, BR-0 over JSQ, G = 8"]
