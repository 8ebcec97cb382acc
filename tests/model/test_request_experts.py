"""Expert use beside a trace: it goes wherever the requests go, and it is part of what a trace is."""

import numpy as np
import pytest
from simulator.expert_traces import expert_trace

from lbopt.exceptions import InputError
from lbopt.model import RequestExperts, Trace

TRACE = expert_trace()


def test_parts_and_draws_keep_each_request_with_its_experts():
    experts = TRACE.experts
    assert (TRACE.part(3, 9).experts.profile == experts.profile[3:9]).all()
    rows = np.random.default_rng(5).choice(len(TRACE), 12, replace=True)
    drawn = TRACE.resampled(12, 5)
    assert (drawn.prompt == TRACE.prompt[rows]).all() and (drawn.experts.profile == experts.profile[rows]).all()


def test_the_digest_goes_by_use_and_not_by_how_profiles_are_numbered():
    experts = TRACE.experts
    order = np.random.default_rng(0).permutation(len(experts.domain))
    renamed = RequestExperts(
        chosen=experts.chosen[order],
        decode=experts.decode[order],
        domain=experts.domain[order],
        profile=np.argsort(order)[experts.profile],
    )
    bare = {"prompt": TRACE.prompt, "output": TRACE.output, "arrival": TRACE.arrival}
    assert Trace(**bare, experts=renamed).digest == TRACE.digest
    assert Trace(**bare).digest != TRACE.digest
    other = RequestExperts(
        chosen=experts.chosen + 1, decode=experts.decode, domain=experts.domain, profile=experts.profile
    )
    assert Trace(**bare, experts=other).digest != TRACE.digest


def test_the_digest_goes_by_scores_of_the_gate_and_by_layers():
    kinds = {"decode": np.ones((1, 2, 6)), "domain": [0], "profile": [0, 0]}
    digests = set()
    for shape in ((1, 2, 6), (1, 3, 4)):
        cells = {"chosen": np.arange(12).reshape(shape), **kinds, "decode": np.ones(shape)}
        for more in ({}, {"gate_prob": np.ones(shape)}, {"gate_prob": np.full(shape, 2.0)}):
            digests.add(Trace(prompt=[1, 2], output=[1, 1], experts=RequestExperts(**cells, **more)).digest)
    assert len(digests) == 6


def test_what_it_holds_cannot_be_written():
    chosen, gate = np.ones((1, 2, 6), int), np.ones((1, 2, 6))
    experts = RequestExperts(chosen=chosen, decode=gate, domain=[0], profile=[0], gate_prob=gate)
    for name in ("chosen", "decode", "domain", "profile", "gate_prob"):
        assert not getattr(experts, name).flags.writeable, name
    assert chosen.flags.writeable and gate.flags.writeable


def test_different_profiles_in_order_of_appearance():
    experts = RequestExperts(
        chosen=np.ones((5, 1, 1), int), decode=np.ones((5, 1, 1)), domain=[0] * 5, profile=[3, 1, 3, 0, 1]
    )
    assert experts.profiles_of_first(2).tolist() == [3, 1] and experts.profiles_of_first(9).tolist() == [3, 1, 0]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"chosen": np.ones((2, 3, 4))}, "expected whole numbers"),
        ({"chosen": np.ones((2, 3), int)}, r"shape \(2, 3\)"),
        ({"decode": np.ones((2, 3, 5))}, "decode activation has shape"),
        ({"decode": np.full((2, 3, 4), 1.5)}, "from 0 to 1"),
        ({"decode": np.full((2, 3, 4), np.nan)}, "from 0 to 1"),
        ({"domain": [0]}, "2 profiles and 1 labels"),
        ({"profile": [0, 2]}, "profiles from 0 to 1"),
        ({"gate_prob": np.ones((2, 3, 5))}, "gate"),
    ],
)
def test_errors(change, words):
    good = {"chosen": np.ones((2, 3, 4), int), "decode": np.ones((2, 3, 4)), "domain": [0, 1], "profile": [0, 1, 1]}
    RequestExperts(**good)
    with pytest.raises(InputError, match=words):
        RequestExperts(**(good | change))


def test_a_trace_has_one_entry_for_each_request():
    with pytest.raises(InputError, match="2 requests, and expert use of 40"):
        Trace(prompt=[1, 2], output=[1, 1], experts=TRACE.experts)
