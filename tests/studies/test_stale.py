"""The study of old sight: what it refuses, what a cell says, and what is kept."""

from __future__ import annotations

import pytest

from lbopt.exceptions import InputError
from lbopt.report.stale_report import ages_figure, stale_csv, stale_tables
from lbopt.studies.requests import RequestSource
from lbopt.studies.stale import StaleConfig, run_stale
from lbopt.studies.stale.cell import added, forecast
from lbopt.theory.laws.stale import Lives, ReportedFleet

SMALL = {
    "requests": RequestSource(trace="azure-like", count=600),
    "workers": (3,),
    "slots": 16,
    "load": 0.8,
    "periods": (0.2, 2.0),
    "policies": ("jsq-load:admission=immediate", "br-0"),
}


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"workers": (1,)}, "workers are 1"),
        ({"slots": 0}, "slots is 0"),
        ({"periods": ()}, "periods are none"),
        ({"periods": (0.0,)}, "periods are 0.0; expected more than 0 each"),
        ({"sight": "dim"}, "unknown sight 'dim'"),
        ({"load": 0.0}, "load is 0.0"),
        ({"policies": ()}, "no policy was named"),
        ({"policies": ("br-h",)}, "looks ahead"),
        ({"seed": -1}, "seed is -1"),
    ],
)
def test_refused_in_one_sentence(given, says: str) -> None:
    with pytest.raises(InputError, match=says):
        StaleConfig(**given)


@pytest.mark.jit
def test_a_small_study(tmp_path) -> None:
    config = StaleConfig(**SMALL)
    assert StaleConfig.from_dict(config.to_dict()) == config
    store = tmp_path / "store.sqlite"
    outcome = run_stale(config, store=store)
    assert len(outcome.cells) == 6
    for cell in outcome.cells:
        assert (cell.period is None) == (cell.floor == 0)
        assert cell.floor <= cell.alike <= cell.even < cell.random
    jsq = outcome.of(3, "jsq-load:admission=immediate")
    assert jsq[2].floor > jsq[1].floor > 0
    assert outcome.forecast(jsq[2]) == added(jsq[0].imbalance, jsq[2].alike, jsq[2].even)
    again = run_stale(config, store=store, collect_only=True)
    assert stale_csv(again) == stale_csv(outcome)
    (table,) = stale_tables(outcome)
    assert [row[1] for row in table.rows] == ["truth", "200 ms", "2 s"] * 2
    assert ages_figure(outcome).axes[0].get_title(loc="left") == "G = 3"


@pytest.mark.jit
def test_a_router_that_counts_nothing_is_worse(tmp_path) -> None:
    """Blind reports of two seconds herd; rules with a pool count in any case, and a note says so."""
    counts, blind = (run_stale(StaleConfig(**{**SMALL, "sight": sight})) for sight in ("counts", "blind"))
    rule = "jsq-load:admission=immediate"
    assert blind.of(3, rule)[2].imbalance > 1.5 * counts.of(3, rule)[2].imbalance
    assert [cell.imbalance for cell in blind.of(3, "br-0")] == [cell.imbalance for cell in counts.of(3, "br-0")]
    assert blind.forecast(blind.of(3, rule)[2]) is None
    assert blind.notes == ["rules with a pool count what they send in any case: br-0"]


def test_the_forecast_of_many_steps_is_the_law_at_every_age() -> None:
    """The mean over some of the ages is that over all of them, to a hundredth."""
    trace = RequestSource(trace="azure-like", count=500).draw_for(1)
    lives = Lives.observed(trace.prompt, trace.output)
    found = forecast(8, lives, 40.0, 300.4)
    law = ReportedFleet(8, lives, 40.0 / lives.mean, 300)
    assert found.alike == pytest.approx(law.alike(), rel=0.01)
    assert found.floor == pytest.approx(law.floor(), rel=0.01)
    assert forecast(8, lives, 40.0, 0.2).floor == 0


def test_a_rule_that_makes_no_use_of_loads_does_not_age() -> None:
    assert added(900.0, 500.0, 800.0) == 900
    assert added(0.0, 500.0, 800.0) == 500
    assert added(480.0, 800.0, 800.0) == pytest.approx(800)


@pytest.mark.jit
def test_the_law_says_nothing_of_a_closed_loop() -> None:
    closed = run_stale(StaleConfig(**{**SMALL, "load": None, "policies": ("jsq-load:admission=immediate",)}))
    assert [closed.floor(cell) for cell in closed.cells] == [None] * 3
    assert [row[4:6] for row in stale_tables(closed)[0].rows] == [("–", "–")] * 3


@pytest.mark.jit
def test_requests_without_times_come_by_chance() -> None:
    given = {**SMALL, "requests": RequestSource(trace="burstgpt-like", count=600), "policies": ("jsq",)}
    cells = run_stale(StaleConfig(**given)).cells
    assert 0 < cells[0].occupancy < 0.95
