"""Published figures of ELDR: which are calibrated, and the sign and base of ours."""

import pytest

from lbopt.exceptions import InputError
from lbopt.studies.locality import BALANCERS, RATE, WORKERS, LocalityConfig, PlannedRun, eldr_at, questions
from lbopt.studies.locality.questions import change

RATES = (20.0, 60.0)


def runs_of(values, of="p50", workers=WORKERS, fleet="decoders"):
    """Return an answer with one number for each (rate, policy)."""
    return {
        "runs": {PlannedRun(fleet, workers, rate, policy).key: {of: value} for (rate, policy), value in values.items()},
        "signatures": {},
    }


def question_of(item, workload, quantity):
    (found,) = [c for c in questions() if (c.item, c.workload, c.quantity) == (item, workload, quantity)]
    return found


def test_what_the_workload_was_made_to_meet_is_marked():
    marked = {(c.workload, c.quantity) for c in questions() if c.printed.calibrated}
    expected = {("task", "experts of eldr against round-robin"), ("language", "P50 of domain against round-robin")}
    for workload in ("task", "language"):
        expected |= {
            *((workload, f"fewer experts in a batch of {B} of one domain") for B in (32, 64, 128)),
            (workload, "prefill and decode correlate by expert"),
            (workload, "rho: transforms of counts above gate-prob"),
            (workload, "rho: count-idf above count"),
        }
    assert marked == expected


def test_a_change_is_in_percent_of_the_base():
    run = PlannedRun("decoders", WORKERS, 60.0, "eldr")
    answer = runs_of({(60.0, "eldr"): 9.0, (60.0, "round-robin"): 10.0, (60.0, "jsq"): 12.0})
    assert change(answer, run, "p50") == pytest.approx(-10)
    assert change(answer, run, "p50", "jsq") == pytest.approx(-25)
    assert change(answer, run, "p50", "domain") is None


def test_the_best_balancer_is_the_fastest_at_each_rate():
    values = {(rate, name): 20.0 for rate in RATES for name in BALANCERS}
    values |= {(20.0, "jsq"): 10.0, (60.0, "random"): 8.0, (20.0, "eldr"): 9.0, (60.0, "eldr"): 6.0}
    figure = question_of("routers", "task", "P50 of eldr against the best balancer").figure
    assert figure(runs_of(values), RATES) == pytest.approx((-10 - 25) / 2)
    assert figure(runs_of({k: v for k, v in values.items() if k[1] != "jsq"}), RATES) is None


def test_statements_at_60_requests_a_second_look_there_alone():
    narrow, wide = (
        question_of("band", "task", text).figure for text in ("P50 at tau 0.1", "P50 at tau 0.3, against 0.1")
    )
    answer = runs_of({(RATE, "eldr"): 8.0, (RATE, "round-robin"): 10.0, (RATE, eldr_at(0.3)): 9.0})
    assert narrow(answer, (20.0,)) == pytest.approx(-20)
    assert wide(answer, (20.0,)) == pytest.approx(12.5)


def test_a_mean_over_rates_and_not_of_the_last_one():
    values = {(20.0, "domain"): 11.0, (60.0, "domain"): 14.0, (20.0, "round-robin"): 10.0, (60.0, "round-robin"): 10.0}
    figure = question_of("routers", "language", "P99 of domain against round-robin").figure
    assert figure(runs_of(values, "p99"), RATES) == pytest.approx(25)


def test_pools_are_compared_within_a_pool():
    figure = question_of("pool", "language", "P50 with 24 decoders less 8").figure
    answer = {"runs": {}, "signatures": {}}
    for pool, ours in ((8, 9.0), (24, 7.0)):
        answer["runs"] |= runs_of({(20.0, "eldr"): ours, (20.0, "round-robin"): 10.0}, workers=pool)["runs"]
    assert figure(answer, (20.0,)) == pytest.approx(-30 - -10)


@pytest.mark.parametrize("rate", [60.0, 0.1, 1 / 3, 20.123456789, 999999.5, 1e-7])
def test_a_key_is_of_one_rate(rate):
    run = PlannedRun("barrier", 16, rate, eldr_at(0.2, "vanilla"))
    assert PlannedRun.of_key(run.key) == run
    assert PlannedRun("barrier", 16, 60.0, "eldr").key == "barrier 16 60 eldr"


@pytest.mark.parametrize("wrong", [{"seconds": 1.0, "warm_up": 0.9}, {"rates": (0.1, 60.0)}])
def test_runs_that_nobody_would_be_counted_in_are_refused(wrong):
    with pytest.raises(InputError, match="after the warm-up; expected at least 50: give more seconds"):
        LocalityConfig(**wrong)
