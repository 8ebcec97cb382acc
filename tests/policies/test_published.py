"""Rules as published: the values of today, under a name that keeps them."""

import inspect

import pytest

from lbopt.exceptions import InputError
from lbopt.policies import POLICIES, make_policy
from lbopt.policies.table import PUBLISHED


@pytest.mark.parametrize("name", PUBLISHED)
def test_every_option_is_named(name):
    assert set(PUBLISHED[name]) == set(inspect.signature(POLICIES[name]).parameters)


def test_the_values():
    spelled = "br-0:stage_switch=7,window=4,window_order=size,key=lexicographic,age_bound=none"
    assert make_policy("br-0:published") == make_policy(spelled) == make_policy("br-0")
    ahead = make_policy("br-h:published")
    assert (ahead.stage_switch, ahead.horizon, ahead.beta, ahead.gamma, ahead.departures) == (7, 80, 48.0, 0.9, "cut")
    assert ahead == make_policy("br-h")


def test_they_hold_whatever_the_bare_name_means(monkeypatch):
    bare = POLICIES["br-0"]

    def other(stage_switch=0, window=2, window_order="arrival", key="product", age_bound=9):
        return bare(stage_switch, window, window_order, key, age_bound)

    before = make_policy("br-0:published")
    monkeypatch.setitem(POLICIES, "br-0", other)
    assert make_policy("br-0:published") == before != make_policy("br-0")


def test_options_that_follow_go_before_and_so_do_those_of_the_caller():
    assert make_policy("br-0:published,age_bound=50").name == "br-0:age_bound=50"
    given = {"horizon": 3, "predictor": "oracle"}
    assert make_policy("br-h:published", given) == make_policy("br-h:horizon=3,predictor=oracle")
    assert make_policy("br-h:published,horizon=5", given).horizon == 5


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("jsq:published", r"policy 'jsq' has no published form of its own; expected br-0:published or br-h:published"),
        ("br-0:age_bound=5,published", "policy 'br-0' has no option 'published'"),
        ("br-0:published,published", "policy 'br-0' has no option 'published'"),
    ],
)
def test_what_is_refused(spec, message):
    with pytest.raises(InputError, match=message):
        make_policy(spec)
