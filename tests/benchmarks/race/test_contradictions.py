"""A bound above somebody's placement is found, whoever they are, and nothing else is."""

from hypothesis import given
from hypothesis import strategies as st

from tests.benchmarks.race.contradictions import LIBRARY, find_contradictions
from tests.benchmarks.race.small_race import instance, record

NAMES = ("exact", "highs", "cp-sat")


def runs(*pairs):
    """One record a (value, bound), of the solvers in turn."""
    return [
        record(solver=solver, value=value, bound=bound, claim=bound, status="proved" if value == bound else "open")
        for solver, (value, bound) in zip(NAMES, pairs, strict=False)
    ]


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), min_size=1, max_size=3))
def test_found_exactly_where_a_bound_exceeds_the_best_value(pairs):
    """Against a loop over all pairs of runs."""
    records = runs(*pairs)
    wrong = {a.solver for a in records for b in records if a.bound > b.value}
    marked, found = find_contradictions(records, [])
    assert {one.solver for one in found} == wrong
    assert {r.solver for r in marked if r.status == "refuted"} == wrong
    assert [r for r in marked if r.solver not in wrong] == [r for r in records if r.solver not in wrong]


def test_agreement_is_no_contradiction():
    """Equal proofs, and an open run around them."""
    records = runs((10, 10), (10, 10), (12, 9))
    assert find_contradictions(records, []) == (records, [])


def test_other_instances_do_not_count():
    """A better placement of another problem refutes nothing."""
    records = [record(), record(digest="e", value=3, bound=3, claim=3)]
    assert find_contradictions(records, []) == (records, [])


def test_a_proof_and_a_trusted_claim_are_grave_and_an_untrusted_claim_is_not():
    """What lbopt would not have used anyway is reported, but shakes nothing."""
    records = [
        record(value=10, bound=10, claim=10),
        record(solver="highs", status="claimed", value=11, bound=11, claim=11, trusted=False),
        record(solver="cp-sat", status="claimed", value=11, bound=11, claim=11),
    ]
    marked, found = find_contradictions(records, [])
    assert [(one.solver, one.grave, one.refuted_by) for one in found] == [
        ("highs", False, "exact"),
        ("cp-sat", True, "exact"),
    ]
    assert [r.status for r in marked] == ["proved", "refuted", "refuted"]
    assert "cp-sat claimed that nothing is below 11 tokens, but exact has a placement of 10" in str(found[1])


def test_a_claim_that_its_own_placement_refutes():
    """The run ended open with its false claim kept aside; it is found all the same."""
    own = record(solver="highs", status="open", value=10, bound=8, claim=12, trusted=False)
    _, found = find_contradictions([own], [])
    assert [(one.solver, one.bound, one.refuted_by) for one in found] == [("highs", 12, "highs")]


def test_the_library_takes_part():
    """Its best value refutes a proof above it, and its bound is refuted by a placement below."""
    better = instance("a", best=8, bound=8)
    mine = record(digest=better.problem.digest)
    _, found = find_contradictions([mine], [better])
    assert [(one.solver, one.refuted_by, one.value) for one in found] == [("exact", LIBRARY, 8)]
    worse = instance("a", best=12, bound=12)
    _, found = find_contradictions([mine], [worse])
    assert [(one.solver, one.refuted_by, one.value) for one in found] == [(LIBRARY, "exact", 10)]
