"""Forgeries: certificates and results that are changed, sealed anew, and handed to the verifier as files are.

A forger knows the format and computes digests. What he wants is a bound above the optimum called established; a bound
that is true may pass whatever was done to its evidence. No forgery may end in anything but an answer or an error of
lbopt's own.
"""

import copy
import hashlib
import json
import random
import time
from collections import Counter
from collections.abc import Iterator
from typing import Any

from solvers.certificates.damage import damaged
from solvers.reliability.proofs import Proof, worse
from solvers.stated import stated

from lbopt import Result, verify
from lbopt.exceptions import LbOptError
from lbopt.solvers.certificates import KINDS, Certificate, check

#: Values that belong nowhere.
ODD = (None, True, "1", "", "\x1b[31mred\x00", 1.5, 1e400, [], {}, [[]], -1, 2**62, 2**128, -(2**128), 2**200)

#: Leaves and branches that claim much and say nothing.
RECORDS = (
    {"dead": []},
    {"prices": 0},
    {"empty": True},
    {"sets": True},
    {"contradiction": []},
    {"prices": [], "cuts": []},
    {"loads": [], "classes": []},
    {"worker": 0, "patterns": []},
    {"worker": 0, "totals": []},
    {"worker": 0, "position": 2**61, "sizes": []},
    {"worker": 0, "class": 0, "at_most": 2**61},
    {"class": 0, "prices": 0, "waits": False, "workers": []},
)

#: Stands for brackets within brackets, which `json` could not write.
_DEEP = "brackets"

#: Stands for the text of a certificate within that of a result.
_WRITTEN = "as written"

#: Seconds of the processor after which a refusal came too late.
_PATIENCE = 20.0


def forgery(proof: Proof, other: Proof, seen: Counter, rng: random.Random) -> str | None:
    """Forge once; return what the verifier should not have done, None where it did well.

    Parameters
    ----------
    proof
        What is forged.
    other
        Another proof of the same sort, from which parts are taken.
    seen
        Counts what happened; changed in place.
    rng
        Draws.
    """
    begun = time.process_time()
    as_result = proof.certificate is None or rng.random() < 0.25
    wrong = (_forged_result if as_result else _forged_certificate)(proof, other, seen, rng)
    taken = time.process_time() - begun
    return f"the verifier took {taken:.0f} s" if wrong is None and taken > _PATIENCE else wrong


def _forged_certificate(proof: Proof, other: Proof, seen: Counter, rng: random.Random) -> str | None:
    content, names = changed(proof, other, rng)
    text = sealed(content, rng)
    seen["forgeries"] += 1
    seen["of bounds above the optimum"] += type(content.get("bound")) is int and content["bound"] > proof.optimum
    try:
        established = check(proof.problem, Certificate.from_json(text))
    except LbOptError as error:
        seen["refused"] += 1
        return _said(error, names, text)
    except Exception as error:
        return f"{names}: {error!r} escaped: {text[:2000]} of {proof.problem.to_json()}"
    if established > proof.optimum:
        return f"{names}: {established} accepted, the optimum is {proof.optimum}: {text} of {proof.problem.to_json()}"
    seen["accepted, and true"] += 1
    return None


def _forged_result(proof: Proof, other: Proof, seen: Counter, rng: random.Random) -> str | None:
    """Say of a placement, mostly one that is too dear, what is not so."""
    dear = worse(proof.one, proof.optimum, rng)
    placed, cost = (proof.result.assignment.tolist(), proof.result.objective) if dear is None else dear
    bound = min(cost, proof.optimum + rng.choice([0, 1, 1, 2, cost - proof.optimum, cost - proof.optimum]))
    label = rng.choice(["certificate", "certificate", "exhaustion", "elementary-bound", "claimed:exact"])
    claim = stated(
        proof.problem,
        placed,
        bound=bound,
        proof=label,
        stop_reason="proved" if bound == cost and not label.startswith("claimed") else "memory",
        solver="exact",
        seconds=0.1,
        tie=rng.choice(["any", "any", "leximax"]),
    ).to_dict()
    names, evidence = [label], ""
    if proof.certificate is not None and rng.random() < 0.8:
        content, names = changed(proof, other, rng)
        content["bound"] = rng.choice([bound, bound, content.get("bound")])
        evidence = sealed(content, rng)
        claim["certificate"] = _WRITTEN
    if rng.random() < 0.3:
        name = rng.choice(sorted(claim))
        claim[name] = rng.choice([damaged(claim[name], rng), rng.choice(ODD)])
    text = json.dumps(claim).replace(json.dumps(_WRITTEN), evidence)
    seen["forgeries"] += 1
    seen["of bounds above the optimum"] += bound > proof.optimum
    try:
        result = Result.from_json(text)
        report = verify(proof.problem, result, exhaust_limit=rng.choice([0, 0, 0, 20_000]))
    except LbOptError as error:
        seen["refused"] += 1
        return _said(error, names, text)
    except Exception as error:
        return f"{names}: {error!r} escaped: {text[:2000]} of {proof.problem.to_json()}"
    if report.bound_established and result.bound > proof.optimum:
        what = f"{result.bound} established, the optimum is {proof.optimum}"
        return f"{names}: {what}: {text} of {proof.problem.to_json()}"
    seen["accepted, and true" if result.bound <= proof.optimum else "named as not verified"] += 1
    return None


def _said(error: LbOptError, names: list[str], text: str) -> str | None:
    """Return what is wrong with a message: it is one short sentence without control characters."""
    message = str(error)
    if len(message) > 500 or any(ord(letter) < 32 for letter in message):
        return f"{names}: a message of {len(message)} characters: {message!r:.700} about {text[:1000]}"
    return None


# ---------------------------------------------------------------------- changes


def changed(proof: Proof, other: Proof, rng: random.Random) -> tuple[dict[str, Any], list[str]]:
    """Return the content of a certificate that was changed in one to three ways, and what these are.

    Parameters
    ----------
    proof
        What is forged; it has a certificate.
    other
        Where foreign parts come from.
    rng
        Draws.
    """
    content = copy.deepcopy(proof.certificate.to_dict())
    names = []
    foreign = copy.deepcopy((other.certificate or proof.certificate).to_dict())
    for _ in range(rng.choice([1, 1, 2, 3])):
        change = rng.choice(CHANGES)
        change(content, foreign, rng)
        names.append(change.__name__)
    if rng.random() < 0.6:
        more = rng.choice([1, 1, 2, 7, 1 + proof.optimum // 10, 2**40, 2**120])
        content["bound"] = proof.optimum + more
        names.append("higher bound")
    return content, names


def _evidence(content: dict[str, Any]) -> list[str]:
    common = ("format", "version", "problem_digest", "kind", "bound", "digest")
    return sorted(name for name in content if name not in common)


def damage(content: dict[str, Any], foreign: dict[str, Any], rng: random.Random) -> None:
    """Change one value somewhere."""
    if names := _evidence(content):
        name = rng.choice(names)
        content[name] = damaged(content[name], rng)


def take_part(content: dict[str, Any], foreign: dict[str, Any], rng: random.Random) -> None:
    """Take one field, or all, from the proof of another problem."""
    for name in rng.choice([_evidence(foreign), [rng.choice(_evidence(foreign))]]):
        content[name] = copy.deepcopy(foreign[name])


def drop_part(content: dict[str, Any], foreign: dict[str, Any], rng: random.Random) -> None:
    """Leave a field out."""
    del content[rng.choice(sorted(content))]


def empty_part(content: dict[str, Any], foreign: dict[str, Any], rng: random.Random) -> None:
    """Leave out all that a list holds."""
    lists = [place for place, value in _places(content) if isinstance(value, list)]
    if lists:
        _put(content, rng.choice(lists), [])


def other_number(content: dict[str, Any], foreign: dict[str, Any], rng: random.Random) -> None:
    """Change numbers a little, or by powers of two, of both signs."""
    numbers = [(place, value) for place, value in _places(content) if type(value) is int]
    for place, value in rng.sample(numbers, min(len(numbers), rng.choice([1, 1, 2, 5]))):
        _put(content, place, rng.choice([value + 1, value - 1, -value, 2 * value, 0, 2 ** rng.randint(5, 70)]))


def odd_value(content: dict[str, Any], foreign: dict[str, Any], rng: random.Random) -> None:
    """Put a value where it does not belong."""
    places = [place for place, _ in _places(content)]
    if places:
        _put(content, rng.choice(places), copy.deepcopy(rng.choice(ODD)))


def other_record(content: dict[str, Any], foreign: dict[str, Any], rng: random.Random) -> None:
    """Replace, add or cut records of a tree: by those of the other proof, or by leaves that claim much."""
    trees, others = _trees(content), _trees(foreign)
    if not trees:
        return
    tree = rng.choice(trees)
    kept = [record for one in others for record in one] + list(RECORDS)
    at = rng.randrange(len(tree) + 1)
    turn = rng.randrange(4)
    if turn == 0:
        tree.insert(at, copy.deepcopy(rng.choice(kept)))
    elif turn == 1:
        del tree[at:]
    elif turn == 2:
        leaf = rng.choice(RECORDS)
        tree[at:] = [copy.deepcopy(leaf) for _ in range(rng.randint(1, 4))]
    elif at < len(tree):
        tree[at] = copy.deepcopy(rng.choice(kept))


def stretch(content: dict[str, Any], foreign: dict[str, Any], rng: random.Random) -> None:
    """Say that what holds for a range holds for all: envelopes, totals, sizes."""
    for place, value in list(_places(content)):
        if place[-1] in ("envelopes", "totals", "sizes") and rng.random() < 0.7:
            everything = [0, 2**62]
            _put(content, place, everything if place[-1] == "envelopes" else [everything] * max(1, len(value)))


def coarser(content: dict[str, Any], foreign: dict[str, Any], rng: random.Random) -> None:
    """Read the same prices in other units."""
    if type(content.get("scale")) is int:
        content["scale"] = rng.choice([1, content["scale"] * 2, max(1, content["scale"] // 2), 2**127])


def other_kind(content: dict[str, Any], foreign: dict[str, Any], rng: random.Random) -> None:
    """Call it a certificate of another kind, or of none."""
    content["kind"] = rng.choice([*KINDS, "", "exhaustion", None])


def other_problem(content: dict[str, Any], foreign: dict[str, Any], rng: random.Random) -> None:
    """Say that it is of another problem."""
    content["problem_digest"] = rng.choice(["0" * 64, foreign.get("problem_digest"), "", 7])


def deep(content: dict[str, Any], foreign: dict[str, Any], rng: random.Random) -> None:
    """Nest brackets thousands deep."""
    if rng.random() < 0.3:  # these are long
        places = [place for place, _ in _places(content)]
        if places:
            _put(content, rng.choice(places), _DEEP)


def more_fields(content: dict[str, Any], foreign: dict[str, Any], rng: random.Random) -> None:
    """Add a field that no certificate has."""
    content[rng.choice(["proof", "nodes", "tree", "cuts", "strikes", "__class__"])] = rng.choice(ODD)


CHANGES = (
    damage,
    damage,
    other_number,
    other_number,
    take_part,
    drop_part,
    empty_part,
    odd_value,
    other_record,
    other_record,
    stretch,
    coarser,
    other_kind,
    other_problem,
    deep,
    more_fields,
)


def _places(value: Any, before: tuple[Any, ...] = ()) -> Iterator[tuple[tuple[Any, ...], Any]]:
    """Yield the place and the value of everything inside, `value` itself left out."""
    pairs = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in pairs:
        if not before and key in ("format", "version", "digest"):
            continue
        yield (*before, key), inner
        yield from _places(inner, (*before, key))


def _put(content: dict[str, Any], place: tuple[Any, ...], value: Any) -> None:
    where: Any = content
    for key in place[:-1]:
        where = where[key]
    where[place[-1]] = value


def _trees(content: dict[str, Any]) -> list[list[Any]]:
    found = [content.get("tree"), content.get("nodes")]
    if isinstance(content.get("nodes"), list):
        found += [node.get("tree") for node in content["nodes"] if isinstance(node, dict)]
    return [tree for tree in found if isinstance(tree, list)]


# ---------------------------------------------------------------------- files


def sealed(content: dict[str, Any], rng: random.Random) -> str:
    """Return the certificate as a text, mostly with a digest that fits."""
    content = {name: value for name, value in content.items() if name != "digest"}
    depth = rng.choice([50, 2_000, 200_000])
    nested = "[" * depth + "]" * depth

    def written(values: dict[str, Any], **how: Any) -> str:
        return json.dumps(values, **how).replace(json.dumps(_DEEP), nested)

    canonical = written(content, sort_keys=True, separators=(",", ":"))
    digest = hashlib.sha256(canonical.encode("ascii")).hexdigest()
    return written({**content, "digest": "0" * 64 if rng.random() < 0.03 else digest})
