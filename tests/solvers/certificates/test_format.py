"""The file: written and read back unchanged, and everything that is no certificate refused with one sentence."""

import json
import random

import pytest
from solvers.certificates.naive_certificates import produce, sealed, to_dict
from solvers.certificates.naive_problem import step_problem
from solvers.certificates.pattern_records import branch, dead

from lbopt.exceptions import CertificateError
from lbopt.model import StepProblem
from lbopt.solvers.certificates import KINDS, Certificate, check, priced_envelopes
from lbopt.solvers.certificates.format import MOST_SLOTS, refuse_many_slots, shown

PROBLEM = StepProblem.now([0, 0, 10], [1, 1, 0], [2, 5, 15])  # costs 3 * 10 - 10 - 2 - 5 = 13


def example() -> dict:
    """Up to envelope 14 both workers would have to take the same request."""
    tree = [branch(0, [[1]]), dead([1])]
    return priced_envelopes(PROBLEM.digest, 13, 1, [[0, 0, 0], [1, 3, 3]], [(10, 14, 0, tree)]).to_dict()


def changed(**fields) -> dict:
    content = {name: value for name, value in example().items() if name != "digest"} | fields
    return sealed({name: value for name, value in content.items() if value is not None})


def node(**fields) -> dict:
    full = {"envelopes": [10, 14], "prices": 0, "tree": [{"dead": []}]} | fields
    return changed(nodes=[{name: value for name, value in full.items() if value is not None}])


def tree(*records) -> dict:
    return node(tree=list(records))


def read_and_check(data) -> int:
    return check(PROBLEM, Certificate.from_dict(data))


def test_the_example_holds():
    assert read_and_check(example()) == 13
    with pytest.raises(CertificateError, match="no node covers envelope 15"):
        read_and_check(changed(bound=16))


def test_written_and_read_back():
    for seed in range(60):
        rng = random.Random(seed)
        data = to_dict(produce(step_problem(rng), rng.randint(0, 9), rng))
        certificate = Certificate.from_dict(data)
        assert certificate.to_dict() == data
        assert certificate.digest == data["digest"]
        assert Certificate.from_json(certificate.to_json()) == certificate
        assert hash(Certificate.from_json(certificate.to_json())) == hash(certificate)


def test_from_a_file(tmp_path):
    path = tmp_path / "certificate.json"
    path.write_text(Certificate.from_dict(example()).to_json())
    assert check(PROBLEM, Certificate.from_json(path)) == 13
    path.write_text(path.read_text()[:-40])
    with pytest.raises(CertificateError, match=r"certificate\.json is not valid JSON"):
        Certificate.from_json(path)


def test_cut_or_edited_text_is_refused():
    """Cut anywhere, or any character replaced: no longer JSON, or the digest does not fit."""
    text = Certificate.from_dict(example()).to_json()
    for end in range(len(text)):
        with pytest.raises(CertificateError):
            Certificate.from_json(text[:end] or "{")
    rng = random.Random(1)
    for _ in range(500):
        i = rng.randrange(len(text))
        other = rng.choice([c for c in '0123456789abcdef[]{},:"' if c != text[i]])
        with pytest.raises(CertificateError):
            Certificate.from_json(text[:i] + other + text[i + 1 :])


DEEP = "[" * 100_000 + "]" * 100_000
NESTED: list = []
for _ in range(100_000):
    NESTED = [NESTED]

REFUSED = {
    "no object": ([], "is not a certificate"),
    "other format": (changed(format="lbopt-result"), "is not a certificate"),
    "other version": (changed(version=2), "version 2; this lbopt reads 1"),
    "version as truth": (changed(version=True), "version True"),
    "no kind": (changed(kind=None), "lacks kind"),
    "no problem": (changed(problem_digest=None), "lacks problem_digest"),
    "kind a number": (changed(kind=3), "kind is 3; expected a text"),
    "unknown kind": (changed(kind="partition"), "'partition' is unknown; this lbopt checks priced-envelopes"),
    "other problem": (changed(problem_digest="ab" * 32), "it is of problem abababababab"),
    "digest": (example() | {"digest": "0" * 64}, "cut off or changed"),
    "bound a float": (changed(bound=2.0), "bound is 2.0"),
    "bound a truth value": (changed(bound=True), "bound is True"),
    "bound without end": (changed(bound=10**60), "bound is a whole number of 200 bits"),
    "bound beyond text": ({**example(), "bound": 10**5000}, "bits"),
    "not a number": (sealed({**example(), "scale": float("nan")}), "JSON cannot hold"),
    "a set": ({**example(), "scale": {1}}, "JSON cannot hold"),
    "deep": ({**example(), "scale": NESTED}, "JSON cannot hold"),
    "unknown field": (changed(extra=1), "unknown field 'extra'"),
    "no scale": (changed(scale=None), "lacks scale"),
    "scale zero": (changed(scale=0), "scale is 0"),
    "scale a text": (changed(scale="1"), "scale is '1'"),
    "prices no list": (changed(prices={}), "prices is an object"),
    "prices no pairs": (changed(prices=[[0, 1]]), r"prices\[0\] holds an entry"),
    "a class twice": (changed(prices=[[[0, 1], [0, 1]], []]), r"prices\[0\]: a class \(ascending\) is 0"),
    "a price as float": (changed(prices=[[[0, 1.5]], []]), "the price of class 0 is 1.5"),
    "unknown class": (changed(prices=[[[3, 1]], []]), "names class 3, but there are only 3 classes"),
    "negative price": (changed(prices=[[], [[1, -3]]]), "class 1 has price -3"),
    "nodes no list": (changed(nodes=7), "nodes is 7"),
    "node no object": (changed(nodes=[[3, 4]]), "node 0 is a list"),
    "node without range": (node(envelopes=None), "node 0 lacks envelopes"),
    "range of one": (node(envelopes=[3]), "envelopes has 1 entries"),
    "range backwards": (node(envelopes=[4, 3]), "the last envelope is 3"),
    "unknown prices": (node(prices=2), "node 0: prices is 2; expected a whole number from 0 to 1"),
    "negative index": (node(prices=-1), "node 0: prices is -1"),
    "node with more": (node(colour=1), "unknown field 'colour'"),
    "tree null": (changed(nodes=[{"envelopes": [10, 14], "prices": 0, "tree": None}]), "tree is None"),
    "record no object": (tree(3), r"tree\[0\] is 3"),
    "record of both": (tree({"dead": [], "worker": 1, "patterns": []}), "unknown field 'worker'"),
    "record half": (tree({"worker": 1}), "lacks patterns"),
    "pattern ascending": (tree({"worker": 0, "patterns": [[0, 1]]}), "descending"),
    "pattern of text": (tree({"worker": 0, "patterns": [["0"]]}), "a pattern is '0'"),
    "dead not a list": (tree({"dead": 0}), "dead is 0"),
    "dead truth values": (tree({"dead": [True]}), "dead is True"),
    # the evidence against the problem
    "tree empty": (tree(), "ends after 0 records, and 1 cases are open"),
    "tree cut": (tree(branch(0, [[1]])), "ends after 1 records, and 1 cases are open"),
    "tree too long": (tree(branch(0, [[1]]), dead([1]), dead([1])), "complete after 2 records, but it has 3"),
    "after the end": (tree(branch(0, []), dead([])), "pattern .1. of worker 0 is missing; it loses 0 of the 2"),
    "worker unknown": (tree(branch(9, [])), "names worker 9, which has no free slots"),
    "worker closed": (tree(branch(2, [])), "names worker 2, which has no free slots"),
    "worker twice": (
        tree(branch(0, [[1]]), branch(0, [[1]]), dead([])),
        "record 1 of the tree: it names worker 0, which has no free slots here",
    ),
    "pattern too long": (tree(branch(0, [[0, 0]])), r"\[0, 0\] is no pattern of worker 0"),
    "pattern of an unknown class": (tree(branch(0, [[3]])), "is no pattern of worker 0"),
    "not dead": (tree(dead([0, 1])), "calls a case refuted, but by prices 0 up to 10 tokens are possible"),
    "no tree": (
        node(tree=None),
        "node 0 .envelopes 10..14.: a cheaper assignment would admit 8 tokens",
    ),
    "gap": (node(envelopes=[11, 15]), "no node covers envelope 10; a better decision is conceivable from 10 to 14"),
    "no nodes": (changed(nodes=[]), "no node covers envelope 10"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused_with_a_reason(name):
    data, reason = REFUSED[name]
    with pytest.raises(CertificateError, match=reason) as error:
        read_and_check(data)
    assert "\n" not in str(error.value)
    assert len(str(error.value)) < 400


def test_deep_text_is_refused():
    with pytest.raises(CertificateError, match="nested deeper than 100"):
        Certificate.from_json('{"format":' + DEEP + "}")


def test_a_horizon_is_refused_by_kind():
    problem = StepProblem(base=[[0, 1], [0, 0]], slots=[1, 1], work=[[1, 2], [2, 2]])
    certificate = priced_envelopes(problem.digest, 1, 1, [], [])
    with pytest.raises(CertificateError, match="'priced-envelopes' proves bounds at horizon 0, and the problem has 1"):
        check(problem, certificate)


def test_made_by_hand_is_checked_as_well():
    """Without reading, nothing has been checked yet."""
    body = Certificate.from_dict(example()).body
    for bound in (2.0, True, "2", None):
        with pytest.raises(CertificateError, match="its bound"):
            check(PROBLEM, Certificate(PROBLEM.digest, "priced-envelopes", bound, body))
    assert list(KINDS) == ["priced-envelopes", "window-boxes", "window-prices"]


def test_json_is_small_and_plain():
    assert json.loads(Certificate.from_dict(example()).to_json()) == example()


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("x" * 58, "'" + "x" * 58 + "'"),
        ("x" * 59, "'" + "x" * 58 + "…"),
        (10**40, str(10**40)),
        (10**40 + 1, "a whole number of 133 bits"),
        (-(10**40) - 1, "a whole number of 133 bits"),
        ([1, [2]], "a list of 2 entries"),
        ({"a": 1}, "an object of 1 entries"),
        (None, "None"),
    ],
)
def test_values_are_shown_in_sixty_characters(value, text):
    assert shown(value) == text
    assert len(shown(value)) <= 60


def test_many_slots_are_refused_by_worker():
    refuse_many_slots([3, MOST_SLOTS, 2])
    with pytest.raises(CertificateError, match=rf"worker 1 has {MOST_SLOTS + 1} free slots, .* up to {MOST_SLOTS}"):
        refuse_many_slots([3, MOST_SLOTS + 1, 2])
