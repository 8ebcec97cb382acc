"""Forecasts between refreshes against a twin that follows one request, and answers that are refused."""

import random

import naive
import numpy as np
import pytest
from kernels.rules import many
from predictors.asking import trace_of

from lbopt.exceptions import InputError
from lbopt.predictors import Forecaster, Foresight
from lbopt.predictors.predictor import Forecast
from lbopt.predictors.rules import Survival

NOBODY = np.empty(0, dtype=np.int64)


class Told:
    """A predictor that answers p and mu from a table by request and age, and notes what it is asked."""

    name = "told"
    refresh_period = 10

    def __init__(self, answers):
        self.answers = answers
        self.asked = []

    def ends_within(self, requests, prompt, generated, horizon):
        self.asked.append(list(zip(requests.tolist(), generated.tolist(), strict=True)))
        pairs = [self.answers(r, a) for r, a in zip(requests.tolist(), generated.tolist(), strict=True)]
        return np.array([p for p, _ in pairs], dtype=float), np.array([mu for _, mu in pairs], dtype=float)


def forecast(forecaster, requests, generated, waiting=NOBODY):
    requests, generated, waiting = (np.asarray(v, dtype=np.int64) for v in (requests, generated, waiting))
    return forecaster.forecast(requests, np.ones_like(requests), generated, waiting, np.ones_like(waiting))


def table(rng, horizon):
    """Random answers, drawn once per request and age; p = 0 and 1 and fractions of a step among them."""
    known = {}

    def ask(request, age):
        if (request, age) not in known:
            p = rng.choice([0.0, 1.0, 0.5, rng.random()])
            mu = rng.choice([float(rng.randint(1, max(1, horizon))), 1 + rng.random() * max(0, horizon - 1)])
            known[request, age] = (p, mu)
        return known[request, age]

    return ask


def test_forecasts_follow_the_twin():
    """Period, gate, floor, held anchors, refreshes of what ran out: requests come and go, ages jump."""
    rng = random.Random(1)
    for _ in range(many(300, 60)):
        horizon = rng.choice([0, 1, 5, 20])
        wanted = Foresight(
            horizon=horizon,
            predictor="told",
            refresh=rng.choice([None, 1, 3, 7, 50]),
            gate=rng.choice([0.0, 0.5, 0.9, 1.0]),
            floor=rng.choice([0.0, 1.0, 1.0, 3.0]),
            hold_anchor=rng.random() < 0.5,
        )
        predictor = Told(table(rng, horizon))
        forecaster = Forecaster(wanted, predictor, 8)
        twins = [
            naive.RequestForecast(
                lambda age, request=request, ask=predictor.answers: ask(request, age),
                horizon,
                wanted.refresh or Told.refresh_period,
                wanted.gate,
                wanted.floor,
                wanted.hold_anchor,
            )
            for request in range(8)
        ]
        begins = [rng.randint(0, 15) for _ in range(8)]
        ends = [begin + rng.randint(1, 40) for begin in begins]
        clock = 0
        while clock < max(ends):
            running = [i for i in range(8) if begins[i] < clock < ends[i]]
            rng.shuffle(running)
            waiting = [i for i in range(8) if clock <= begins[i]]
            found = forecast(forecaster, running, [clock - begins[i] for i in running], waiting)
            assert found.remaining.tolist() == pytest.approx([twins[i].see(clock - begins[i]) for i in running])
            for i, value in zip(waiting, found.waiting.tolist(), strict=True):
                p, mu = predictor.answers(i, 0)
                gated = min(max((1 - p) * horizon + p * mu, 0.0), horizon) if p >= wanted.gate else horizon
                assert value == pytest.approx(max(gated, wanted.floor))
            clock += rng.choice([1, 1, 1, 2, 6])
        assert sum(age > 0 for calls in predictor.asked for _, age in calls) == sum(t.refreshes for t in twins)


def test_one_question_per_forecast():
    """All that are due and all that wait are asked about in one call."""
    predictor = Told(lambda request, age: (1.0, 9.0))
    forecaster = Forecaster(Foresight(horizon=20, predictor="told", refresh=5), predictor, 4)
    forecast(forecaster, [0, 1], [3, 8], [2, 3])
    forecast(forecaster, [0, 1], [4, 9], [2, 3])
    forecast(forecaster, [0, 1, 2], [8, 13, 1], [3])
    assert predictor.asked == [[(0, 3), (1, 8), (2, 0), (3, 0)], [(2, 0), (3, 0)], [(0, 8), (1, 13), (2, 1), (3, 0)]]


def test_a_forecast_that_ran_out_is_made_anew_at_once():
    answers = {0: (1.0, 4.0), 4: (1.0, 7.5)}
    predictor = Told(lambda request, age: answers[age])
    forecaster = Forecaster(Foresight(horizon=20, predictor="told", refresh=100), predictor, 1)
    seen = [forecast(forecaster, [0], [age]).remaining[0] for age in range(9)]
    assert seen == [4, 3, 2, 1, 7.5, 6.5, 5.5, 4.5, 3.5]


@pytest.mark.parametrize(("hold", "expected"), [(False, [8, 7, 6, 8, 7]), (True, [8, 8, 8, 8, 8])])
def test_an_anchor_falls_or_is_held(hold, expected):
    """The gate closes at p < 0.5: the request outlives the window, however near its mean end is."""
    predictor = Told(lambda request, age: (0.4, 1.0))
    forecaster = Forecaster(Foresight(horizon=8, predictor="told", refresh=3, hold_anchor=hold), predictor, 1)
    assert [forecast(forecaster, [0], [age]).remaining[0] for age in range(5)] == expected


def test_the_gate_of_e7():
    """At age 60 one of three samples ends inside the window: with a gate of a half, the forecast is H."""
    training = trace_of([10, 20, 30, 40, 50, 100, 200, 300])
    for gate, at_15 in ((0.5, 28.5714), (0.6, 40), (0.0, 28.5714)):
        forecaster = Forecaster(Foresight(horizon=40, gate=gate), Survival(training), 2)
        found = forecast(forecaster, [0, 1], [15, 60]).remaining
        assert found == pytest.approx([at_15, 40], abs=5e-5)


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (([0.5, float("nan")], [1, 1]), r"predictor 'odd' gave p = nan and mu = 1.0 for request 7; expected a chance"),
        (([0.5, 0.5], [1, float("nan")]), "gave p = 0.5 and mu = nan for request 7"),
        (([0.5, 0.5], [float("inf"), 1]), "gave p = 0.5 and mu = inf for request 3"),
        (([0.5, 1.5], [1, 1]), "gave p = 1.5"),
        (([-0.1, 0.5], [1, 1]), "gave p = -0.1"),
        (([0.5], [1, 1]), r"gave p of shape \(1,\) for 2 requests; expected one number each, shape \(2,\)"),
        (([0.5, 0.5], [[1, 1]]), r"gave mu of shape \(1, 2\) for 2 requests"),
    ],
)
def test_no_number_and_a_wrong_shape_are_refused(answer, message):
    class Odd:
        name = "odd"
        refresh_period = 1

        def ends_within(self, requests, prompt, generated, horizon):
            return np.array(answer[0]), np.array(answer[1])

    with pytest.raises(InputError, match=message):
        forecast(Forecaster(Foresight(horizon=9, predictor="odd"), Odd(), 9), [3, 7], [1, 1])


@pytest.mark.parametrize("values", [np.array([1.0, np.nan]), np.array([[1.0]]), np.array([np.inf])])
def test_a_forecast_holds_finite_numbers(values):
    good = np.array([1.0])
    with pytest.raises(InputError, match="a forecast's remaining"):
        Forecast(horizon=5, remaining=values, waiting=good)
    with pytest.raises(InputError, match="a forecast's waiting"):
        Forecast(horizon=5, remaining=good, waiting=values)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"horizon": -1}, "horizon is -1"),
        ({"refresh": 0}, "refresh is 0; expected at least 1 token"),
        ({"gate": 1.1}, "gate is 1.1; expected a chance"),
        ({"floor": -1.0}, "floor is -1"),
    ],
)
def test_foresight_that_cannot_be(wrong, message):
    with pytest.raises(InputError, match=message):
        Foresight(**({"horizon": 5} | wrong))
