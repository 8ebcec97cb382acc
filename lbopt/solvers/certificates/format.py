"""What every certificate has in common, as one JSON object, whatever its kind.

    {"format": "lbopt-certificate", "version": 1, "problem_digest": "...", "kind": "...", "bound": C,
     ... the fields of the kind ..., "digest": SHA-256 of the canonical JSON of everything else}

Canonical JSON has sorted keys, no spaces, and ASCII only. Reading refuses what cannot be a certificate and believes
nothing: whether the bound follows is for `check`. The digest guards against truncated and edited files, not against
a liar, who can recompute it.

Certificates of prices are written and read here as well, with exact type checks. Of a plain problem, the kind
"priced-envelopes":

    "scale": S                                   prices are in units of 1/S token
    "prices": [[[k, price of class k], ...], ...]     one list per price vector, k ascending, zero where absent
    "nodes": [{"envelopes": [a, b], "prices": i, "tree": TREE}, ...]      "tree" only where the prices do not suffice

Under conditions, kind "priced-conditions", each goal has these fields (`conditioned.py`); there a node has either
"prices" or a "tree".

TREE is the tree of decisions as a flat list of its records in preorder, so that depth costs no nesting. A record is

    {"class": k, "prices": i, "waits": true, "workers": [g, ...]}     a placement; one subtree follows for the case that
                                        nothing more of class k is admitted, if "waits", then one for each worker
    {"prices": i}                                                     a leaf: refuted by these prices

or, as earlier versions wrote them and under the prices of the node,

    {"worker": g, "patterns": [[k1, k2, ...], ...]}   a branch; one subtree follows for each pattern, in this order
    {"dead": [g, ...]}                                a leaf; which workers lose too much is not needed

with the classes of a pattern in descending order, a class as often as the pattern takes it. Under conditions it is

    [i]           a leaf, refuted by prices i
    [k, g, f]     a branch, one more request of class k on worker g, or none any more, the placement first where f is 1

Whether classes and workers exist depends on the problem and is left to the checker.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

from lbopt.exceptions import CertificateError, InputError
from lbopt.files.json_text import parsed_json

FORMAT = "lbopt-certificate"
FORMAT_VERSION = 1

#: No number of an honest certificate is as large; beyond it the arithmetic itself would become the attack.
LARGEST_NUMBER = 2**128

#: Free slots of a worker up to which the kinds that speak of every slot are written and checked.
MOST_SLOTS = 1 << 16

_COMMON = ("format", "version", "problem_digest", "kind", "bound", "digest")


@dataclass(frozen=True, slots=True, eq=False)
class Certificate:
    """A claim with its evidence: no assignment of the problem costs less than `bound`.

    Parameters
    ----------
    problem_digest
        `StepProblem.digest` of the problem that it speaks of.
    kind
        Which reasoning it uses, one of `kinds.KINDS`.
    bound
        C, in tokens.
    body
        The fields of its kind, as plain JSON values; never changed after construction.
    """

    problem_digest: str
    kind: str
    bound: int
    body: dict[str, Any]

    @property
    def digest(self) -> str:
        """SHA-256 of the canonical JSON of everything but itself."""
        return _digest(self._content())

    def __eq__(self, other: object) -> bool:
        return self._content() == other._content() if isinstance(other, Certificate) else NotImplemented

    def __hash__(self) -> int:
        return hash((self.problem_digest, self.kind, self.bound))

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, with format, version and digest."""
        content = self._content()
        return {**content, "digest": _digest(content)}

    @classmethod
    def from_dict(cls, data: Any, *, source: str = "the certificate") -> Certificate:
        """Rebuild a certificate written by `to_dict`.

        Raises
        ------
        CertificateError
            On another format or version, a missing field, a field of the wrong type, or a digest that does not fit.
        """
        if not isinstance(data, dict) or data.get("format") != FORMAT:
            raise CertificateError(f'{source} is not a certificate: expected an object with "format": "{FORMAT}"')
        version = data.get("version")
        if type(version) is not int or version != FORMAT_VERSION:
            raise CertificateError(f"{source} has format version {version!r}; this lbopt reads {FORMAT_VERSION}")
        missing = [name for name in _COMMON if name not in data]
        if missing:
            raise CertificateError(f"{source} lacks {', '.join(missing)}")
        for name in ("problem_digest", "kind", "digest"):
            if type(data[name]) is not str:
                raise CertificateError(f"{source}: {name} is {shown(data[name])}; expected a text")
        bound = whole(data["bound"], f"{source}: bound")
        content = {name: value for name, value in data.items() if name != "digest"}
        own = _digest(content)
        if data["digest"] != own:
            raise CertificateError(
                f"{source} says digest {data['digest'][:12]}… but its content gives {own[:12]}…: "
                "it was cut off or changed after it was written"
            )
        body = {name: value for name, value in data.items() if name not in _COMMON}
        return cls(problem_digest=data["problem_digest"], kind=data["kind"], bound=bound, body=body)

    def to_json(self) -> str:
        """Return the certificate as one line of JSON."""
        return json.dumps(self.to_dict(), separators=(",", ":"))

    @classmethod
    def from_json(cls, text_or_path: str | Path) -> Certificate:
        """Read a certificate from a JSON text or from a file that holds one."""
        try:
            data, source = parsed_json(text_or_path, "the certificate")
        except InputError as error:
            raise CertificateError(str(error)) from None
        return cls.from_dict(data, source=source)

    def _content(self) -> dict[str, Any]:
        return {
            "format": FORMAT,
            "version": FORMAT_VERSION,
            "problem_digest": self.problem_digest,
            "kind": self.kind,
            "bound": self.bound,
            **self.body,
        }


# ---------------------------------------------------------------------- readers of single values


def whole(value: Any, what: str, *, least: int = -LARGEST_NUMBER, below: int = LARGEST_NUMBER + 1) -> int:
    """Return `value` if it is an integer (not a truth value) in least..below - 1.

    Parameters
    ----------
    least, below
        The range least..below - 1.
    """
    if type(value) is not int:
        raise CertificateError(f"{what} is {shown(value)}; expected a whole number")
    if not least <= value < below:
        raise CertificateError(f"{what} is {shown(value)}; expected a whole number from {least} to {below - 1}")
    return value


def items(value: Any, what: str) -> list[Any]:
    """Return `value` if it is a list."""
    if type(value) is not list:
        raise CertificateError(f"{what} is {shown(value)}; expected a list")
    return value


def fields(value: Any, what: str, needed: tuple[str, ...], optional: tuple[str, ...] = ()) -> dict[str, Any]:
    """Return `value` if it is an object with the needed fields and no others than these and the optional ones."""
    if type(value) is not dict:
        raise CertificateError(f"{what} is {shown(value)}; expected an object with {', '.join(needed)}")
    missing = [name for name in needed if name not in value]
    if missing:
        raise CertificateError(f"{what} lacks {', '.join(missing)}")
    unknown = [str(name) for name in value if name not in needed and name not in optional]
    if unknown:
        raise CertificateError(f"{what} has the unknown field {unknown[0]!r}; expected {', '.join(needed + optional)}")
    return value


def refuse_many_slots(slots: Sequence[int]) -> None:
    """Raise where a worker has more slots than a kind of certificate that speaks of every slot is made for."""
    g = max(range(len(slots)), key=slots.__getitem__)
    if slots[g] > MOST_SLOTS:
        raise CertificateError(
            f"worker {g} has {slots[g]} free slots, and certificates of this kind are checked up to {MOST_SLOTS}: give "
            "no worker more slots than requests wait"
        )


def shown(value: Any) -> str:
    """Return a short rendering of any value for an error message; never long, never deep."""
    if type(value) is int and abs(value) > 10**40:
        return f"a whole number of {value.bit_length()} bits"
    if isinstance(value, list | dict):
        return f"{'a list' if isinstance(value, list) else 'an object'} of {len(value)} entries"
    text = repr(value)
    return text if len(text) <= 60 else text[:59] + "…"


def _digest(content: dict[str, Any]) -> str:
    try:
        text = json.dumps(content, sort_keys=True, separators=(",", ":"), allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise CertificateError(f"the certificate holds what JSON cannot hold: {error}") from None
    return hashlib.sha256(text.encode("ascii")).hexdigest()


# ---------------------------------------------------------------------- evidence by prices

#: Fields besides that a goal under conditions has.
_GOAL = ("goal", "bound", "weight")

Pattern = tuple[int, ...]
Prices = dict[int, int]


class Branch(NamedTuple):
    """An inner record of a tree: `worker` takes one of `patterns`, whose subtrees follow in this order.

    By the prices (an index), nothing else is possible.
    """

    worker: int
    prices: int
    patterns: tuple[Pattern, ...]


class Placement(NamedTuple):
    """An inner record of a tree: a request of class `kind` goes to one of `workers`, or all of it waits.

    By the prices (an index), nothing else is possible.
    """

    kind: int
    prices: int
    waits: bool
    workers: tuple[int, ...]


class Split(NamedTuple):
    """An inner record of a tree: `worker` takes a request of class `kind`, or none of it any more."""

    kind: int
    worker: int
    placement_first: bool


class Refuted(NamedTuple):
    """A leaf of a tree: by these prices (an index), too little is possible."""

    prices: int


Record = Branch | Placement | Split | Refuted
Tree = tuple[Record, ...]


class Node(NamedTuple):
    """A range of envelopes, and the prices (an index) and perhaps the tree that refute it.

    Under conditions there is either a tree, and then `prices` is -1, or none.
    """

    first: int
    last: int
    prices: int
    tree: Tree | None


@dataclass(frozen=True, slots=True)
class PricedBody:
    """The evidence: scale, sparse price vectors {class: price}, and nodes."""

    scale: int
    prices: tuple[Prices, ...]
    nodes: tuple[Node, ...]


def read_priced_body(body: dict[str, Any], *, conditions: bool = False) -> PricedBody:
    """Return the evidence of a certificate; a CertificateError names the first field that is not as it should be."""
    fields(body, "it" if conditions else "the certificate", ("scale", "prices", "nodes", *_GOAL * conditions))
    scale = whole(body["scale"], "scale", least=1)
    prices = tuple(_vector(vector, f"prices[{i}]") for i, vector in enumerate(items(body["prices"], "prices")))
    rows = items(body["nodes"], "nodes")
    nodes = tuple(_node(row, f"node {i}", len(prices), conditions) for i, row in enumerate(rows))
    return PricedBody(scale, prices, nodes)


def check_prices(vectors: Sequence[Prices], forced: Sequence[bool]) -> None:
    """Raise where prices name a class that does not exist, or one that may wait has a negative price."""
    for i, vector in enumerate(vectors):
        for k, price in vector.items():
            if k >= len(forced):
                raise CertificateError(f"prices[{i}] names class {k}, but there are only {len(forced)} classes")
            if price < 0 and not forced[k]:
                raise CertificateError(
                    f"prices[{i}]: class {k} has price {price}; only classes that are admitted whole may have a "
                    "negative one"
                )


def _vector(value: Any, what: str) -> Prices:
    vector: Prices = {}
    last = -1
    for pair in items(value, what):
        if type(pair) is not list or len(pair) != 2:
            raise CertificateError(f"{what} holds an entry that is not [class, price]")
        last = whole(pair[0], f"{what}: a class (ascending)", least=last + 1)
        vector[last] = whole(pair[1], f"{what}: the price of class {last}")
    return vector


def _node(value: Any, what: str, num_prices: int, conditions: bool) -> Node:
    by_tree = conditions and type(value) is dict and "tree" in value
    node = fields(value, what, ("envelopes", "tree" if by_tree else "prices"), () if conditions else ("tree",))
    ends = items(node["envelopes"], f"{what}: envelopes")
    if len(ends) != 2:
        raise CertificateError(f"{what}: envelopes has {len(ends)} entries; expected [first, last]")
    first = whole(ends[0], f"{what}: the first envelope")
    last = whole(ends[1], f"{what}: the last envelope", least=-LARGEST_NUMBER if conditions else first)
    index = -1 if by_tree else whole(node["prices"], f"{what}: prices", least=0, below=num_prices)
    tree: Tree | None = None
    if "tree" in node:
        records = [(one, f"{what}: tree[{i}]") for i, one in enumerate(items(node["tree"], f"{what}: tree"))]
        if conditions:
            tree = tuple(_split(record, where, num_prices) for record, where in records)
        else:
            tree = tuple(_record(record, where, index, num_prices) for record, where in records)
    return Node(first, last, index, tree)


def _split(value: Any, what: str, num_prices: int) -> Record:
    if type(value) is not list or len(value) not in (1, 3):
        raise CertificateError(f"{what} is {shown(value)}; expected [prices] or [class, worker, 0/1]")
    if len(value) == 1:
        return Refuted(whole(value[0], f"{what}: prices", least=0, below=num_prices))
    k, g = _numbers(value[:2], what)
    return Split(k, g, whole(value[2], what, least=0, below=2) == 1)


def _record(value: Any, what: str, prices: int, num_prices: int) -> Record:
    """Read a record; `prices` are those of the node."""
    if type(value) is dict and "dead" in value:
        _numbers(fields(value, what, ("dead",))["dead"], f"{what}: dead")
        return Refuted(prices)
    if type(value) is dict and "class" in value:
        return _placement(fields(value, what, ("class", "prices", "waits", "workers")), what, num_prices)
    if type(value) is dict and "prices" in value:
        fields(value, what, ("prices",))
        return Refuted(whole(value["prices"], f"{what}: prices", least=0, below=num_prices))
    branch = fields(value, what, ("worker", "patterns"))
    worker = whole(branch["worker"], f"{what}: worker", least=0)
    patterns = tuple(_pattern(one, f"{what}: a pattern") for one in items(branch["patterns"], f"{what}: patterns"))
    return Branch(worker, prices, patterns)


def _placement(value: dict[str, Any], what: str, num_prices: int) -> Placement:
    kind = whole(value["class"], f"{what}: class", least=0)
    prices = whole(value["prices"], f"{what}: prices", least=0, below=num_prices)
    if type(value["waits"]) is not bool:
        raise CertificateError(f"{what}: waits is {shown(value['waits'])}; expected true or false")
    return Placement(kind, prices, value["waits"], _numbers(value["workers"], f"{what}: workers"))


def _pattern(value: Any, what: str) -> Pattern:
    pattern = _numbers(value, what)
    if any(one < other for one, other in pairwise(pattern)):
        raise CertificateError(f"{what} is {list(pattern[:8])}; expected classes in descending order")
    return pattern


def _numbers(value: Any, what: str) -> tuple[int, ...]:
    numbers = items(value, what)
    for number in numbers:
        if type(number) is not int or not 0 <= number < 2**62:
            whole(number, what, least=0, below=2**62)
    return tuple(numbers)


#: (first envelope, last envelope, index of the price vector, records of the tree in preorder or None)
NodeRow = tuple[int, int, int, Sequence[dict[str, Any]] | None]


class ContradictedError(CertificateError):
    """Something below the bound was found, so there is no proof of it."""


def priced_envelopes(
    problem_digest: str, bound: int, scale: int, prices: Iterable[Iterable[int]], nodes: Iterable[NodeRow]
) -> Certificate:
    """Return a certificate of the kind "priced-envelopes"; nothing is checked here.

    Parameters
    ----------
    problem_digest
        `StepProblem.digest`.
    bound
        No assignment costs less, tokens.
    prices
        One row per price vector: the integer price of every class, zeros included, in units of 1/scale token. Classes
        are the distinct (size, must_admit) pairs in ascending order, the requests of size zero that fill up a short
        pool included.
    nodes
        (first envelope, last envelope, row of `prices`, tree or None), tokens. A tree is the list of its records in
        preorder: see `placement` and `refuted`.
    """
    body = {
        "scale": int(scale),
        "prices": [[[k, int(price)] for k, price in enumerate(row) if price] for row in prices],
        "nodes": [
            {"envelopes": [int(first), int(last)], "prices": int(row)} | ({} if tree is None else {"tree": list(tree)})
            for first, last, row, tree in nodes
        ],
    }
    return Certificate(problem_digest=problem_digest, kind="priced-envelopes", bound=int(bound), body=body)


def placement(kind: int, prices: int, waits: bool, workers: Iterable[int]) -> dict[str, Any]:
    """Return the record of a placement; the subtrees have to follow, the case that all waits first.

    Parameters
    ----------
    prices
        Row of `prices` at which the subtrees are bounded.
    waits
        Whether the case that all requests of the class wait is among the children.
    """
    return {"class": int(kind), "prices": int(prices), "waits": bool(waits), "workers": [int(g) for g in workers]}


def refuted(prices: int) -> dict[str, Any]:
    """Return the record of a case that these prices (a row) refute."""
    return {"prices": int(prices)}
