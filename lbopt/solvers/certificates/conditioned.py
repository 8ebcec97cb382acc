"""Check a certificate of the kind "priced-conditions": prices that prove bounds under conditions at H = 0.

    "reached": {"left_waiting": u, "overdue": o}          values of the goals before, as the problem has them
    "goals": [{"goal": name, "bound": C, "weight": v, "scale": S, "prices": [[[k, price], ...], ...],
               "nodes": [{"envelopes": [a, b], "prices": i} or {"envelopes": [a, b], "tree": [...]}, ...]}, ...]

The bound of a goal holds among the decisions that reach the values of the goals before it. Classes are requests that
nothing tells apart, in the order of their first members; the class after the last is the blank, which fills the slots
that stay empty. Worker g fills q_g slots, the most requests that it can take. Where at least U requests are admitted,
there are at most sum_g q_g - U blanks. A request on a worker is worth its work there in units of pace, plus v times its
cost of waiting; a pause is worth minus its work and its cost; for the goal "left_waiting" a request is worth 1 and for
"overdue" its cost. With B_g(M) the largest profit (S value - prices) of a pattern of g whose load is at most M,

    S T <= D(M) = sum_k n_k price_k + sum_g B_g(M)    for the value T of every decision with all loads <= M,

if prices are at least 0, except those of classes that are admitted whole. The objective of a decision of envelope a..b
is at least G a - (loads before) + v (all costs of waiting) - floor(D(b) / S). With "overdue" before it, v may be any
number of at least 0, and v times what is reached is taken off again; else v is 1. The ranges have to cover all
envelopes that a decision can have.

A tree is a list of records in preorder: [i] is a leaf, refuted by prices i; [k, g, f] is a branch, one more request of
class k on worker g, or none any more, the placement first where f is 1. At a leaf patterns contain what is placed on
their worker, and no more of a class that is banned there.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from lbopt.exceptions import CertificateError
from lbopt.solvers.certificates.conditioned_patterns import Offer, Patterns
from lbopt.solvers.certificates.format import Certificate, fields, items, shown, whole
from lbopt.solvers.recount import Numbers

#: Pauses of a worker up to which certificates are checked.
_MOST_PAUSES = 12


def check_conditioned(p: Numbers, certificate: Certificate) -> dict[str, int]:
    """Return the bounds that a certificate establishes, by goal; "reached" are the values that they rest on.

    Parameters
    ----------
    p
        A step problem under conditions.
    certificate
        Of the kind "priced-conditions".

    Raises
    ------
    CertificateError
        If the certificate is malformed, or does not prove its bounds.
    """
    if len(p.base[0]) > 1:
        raise CertificateError(f"kind 'priced-conditions' proves bounds at horizon 0, not at {len(p.base[0]) - 1}")
    body = fields(certificate.body, "the certificate", ("reached", "goals"))
    reached = fields(body["reached"], "reached", tuple(p.goals))
    values = {name: whole(reached[name], f"reached: {name}", least=0) for name in p.goals}
    found: dict[str, int] = {}
    fleet = CountedFleet(p)
    for i, goal in enumerate(items(body["goals"], "goals")):
        names = ("goal", "bound", "weight", "scale", "prices", "nodes")
        one = fields(goal, f"goal {i}", names)
        name = one["goal"]
        if name not in (*p.goals, "objective") or name in found:
            raise CertificateError(f"goal {i} is {shown(name)}; expected one of {', '.join((*p.goals, 'objective'))}")
        bound = whole(one["bound"], f"the bound of {name}")
        PricedGoal(fleet, name, one, values).check(bound)
        found[name] = bound
    return found


class CountedFleet:
    """Classes, workers and modes of a problem, counted from its plain lists."""

    def __init__(self, p: Numbers) -> None:
        self.p, G, N = p, len(p.slots), len(p.work)
        groups: dict[tuple[Any, ...], list[int]] = {}
        for i in range(N):
            row: list[Any] = [p.work[i][0], p.must[i], p.price(i), *(taken[i] for _, taken in p.pools)]
            row += [tuple(p.given[name][i]) for name in ("allowed", "credit") if name in p.given]
            groups.setdefault(tuple(row), []).append(i)
        self.members = list(groups.values())
        first = [one[0] for one in self.members]
        self.fits = [[p.may(i, g) for g in range(G)] for i in first]
        self.work = [[p.adds(i, g)[0] if self.fits[k][g] else 0 for g in range(G)] for k, i in enumerate(first)]
        self.must, self.costs = [p.must[i] for i in first], [p.price(i) for i in first]
        self.needs = [[taken[i] for i in first] for _, taken in p.pools]
        self.slots = [self._most_on(g) for g in range(G)]
        self.load = [p.pace(g) * row[0] for g, row in enumerate(p.base)]
        self.modes: list[list[tuple[int, int]]] = [[(0, 0)] for _ in range(G)]
        for g, tokens, price in p.pausing:
            if len(self.modes[g]) >= 1 << _MOST_PAUSES:
                raise CertificateError(f"more than {_MOST_PAUSES} requests of worker {g} may pause: not checked")
            less = p.pace(g) * tokens
            self.modes[g] += [(cut + less, cost + price) for cut, cost in self.modes[g]]

    def _most_on(self, g: int) -> int:
        mine = [k for k in range(len(self.members)) if self.fits[k][g]]
        most = min(self.p.slots[g], sum(len(self.members[k]) for k in mine))
        for (free, _), need in zip(self.p.pools, self.needs, strict=True):
            held = count = 0
            for each in sorted(need[k] for k in mine for _ in self.members[k]):
                held += each
                if held > free[g]:
                    break
                count += 1
            most = min(most, count)
        return most


class PricedGoal:
    """One goal: its values, its blanks, and the prices that are to prove its bound."""

    def __init__(self, fleet: CountedFleet, name: str, one: dict[str, Any], reached: dict[str, int]) -> None:
        p = fleet.p
        self.fleet, self.name = fleet, name
        self.scale = whole(one["scale"], f"{name}: scale", least=1)
        self.weight = whole(one["weight"], f"{name}: weight", least=0)
        before = p.goals[: p.goals.index(name)] if name in p.goals else p.goals
        exactly = p.given["admit"] if isinstance(p.given["admit"], int) else None
        admitted = exactly if exactly is not None else 0
        if "left_waiting" in before:
            admitted = len(p.work) - reached["left_waiting"]
        self.blanks = sum(fleet.slots) - admitted
        self.forced = [*fleet.must, exactly is not None]
        counted = name == "objective"
        late = reached["overdue"] if "overdue" in before else None
        if late == 0:
            self.forced = [flag or cost > 0 for flag, cost in zip(fleet.must, fleet.costs, strict=True)]
            self.forced.append(exactly is not None)
        if counted and late is None and self.weight != 1:
            raise CertificateError(f"{name}: weight is {self.weight}; expected 1, as the costs of waiting are added")
        if name == "overdue" and self.weight != 1:
            raise CertificateError(f"overdue: weight is {self.weight}; expected 1")
        total_cost = sum(cost * len(one) for cost, one in zip(fleet.costs, fleet.members, strict=True))
        if name == "left_waiting":
            self.constant, self.workers = len(p.work), 0
        elif name == "overdue":
            self.constant, self.workers = total_cost, 0
        else:
            self.constant = self.weight * (total_cost - (late or 0)) - sum(fleet.load)
            self.workers = len(fleet.slots)
        self.vectors = [
            self._vector(row, f"{name}: prices[{i}]") for i, row in enumerate(items(one["prices"], "prices"))
        ]
        self.nodes = items(one["nodes"], f"{name}: nodes")

    def _vector(self, value: Any, what: str) -> list[int]:
        prices, last = [0] * len(self.forced), -1
        for pair in items(value, what):
            if type(pair) is not list or len(pair) != 2:
                raise CertificateError(f"{what} holds an entry that is not [class, price]")
            last = whole(pair[0], f"{what}: a class (ascending)", least=last + 1, below=len(prices))
            prices[last] = whole(pair[1], f"{what}: the price of class {last}")
            if prices[last] < 0 and not self.forced[last]:
                raise CertificateError(
                    f"{what}: class {last} has price {prices[last]}; only classes that are admitted whole may have a "
                    "negative one"
                )
        return prices

    def check(self, bound: int) -> None:
        """Return if the nodes prove the bound."""
        least, most = self.envelopes()
        covered = []
        for i, value in enumerate(self.nodes):
            what = f"{self.name}: node {i}"
            node = fields(value, what, ("envelopes",), ("prices", "tree"))
            ends = items(node["envelopes"], f"{what}: envelopes")
            if len(ends) != 2 or ("prices" in node) == ("tree" in node):
                raise CertificateError(f"{what}: expected two envelopes, and either prices or a tree")
            a = max(whole(ends[0], f"{what}: the first envelope"), least)
            b = min(whole(ends[1], f"{what}: the last envelope"), most)
            if a > b:
                continue
            covered.append((a, b))
            needed = self.workers * a + self.constant - bound  # a value of more than this would be a better decision
            patterns = self.patterns(b)
            try:
                for index in self.leaves(node, patterns):
                    self._refute(patterns, index, needed)
            except CertificateError as error:
                raise type(error)(f"{what} (envelopes {a}..{b}): {error}") from None
        missing = least
        for a, b in sorted(covered):
            if a > missing:
                break
            missing = max(missing, b + 1)
        if missing <= most:
            raise CertificateError(f"{self.name}: no node covers envelope {missing}; decisions have {least} to {most}")

    def envelopes(self) -> tuple[int, int]:
        """Return the least and the largest envelope that a decision can have."""
        if not self.workers:
            return 0, 0
        fleet, least, most = self.fleet, 0, 0
        for g, load in enumerate(fleet.load):
            least = max(least, load - max(cut for cut, _ in fleet.modes[g]))
            sizes = [fleet.work[k][g] for k, one in enumerate(fleet.members) if fleet.fits[k][g] for _ in one]
            most = max(most, load + sum(sorted(sizes, reverse=True)[: fleet.slots[g]]))
        return least, most

    def patterns(self, envelope: int) -> Patterns:
        """Return what all workers can take within an envelope."""
        fleet, offers = self.fleet, []
        for g, q in enumerate(fleet.slots):
            classes = [k for k in range(len(fleet.members)) if fleet.fits[k][g]]
            work = [fleet.work[k][g] if self.workers else 0 for k in classes]
            if self.name == "left_waiting":
                value = [1] * len(classes)
            elif self.name == "overdue":
                value = [fleet.costs[k] for k in classes]
            else:
                value = [w + self.weight * fleet.costs[k] for w, k in zip(work, classes, strict=True)]
            blank = len(fleet.members)
            needs = [[need[k] for k in classes] + [0] for need in fleet.needs]
            offers.append(
                Offer(
                    worker=g,
                    slots=q,
                    margin=envelope - fleet.load[g] if self.workers else 0,
                    rooms=[free[g] for free, _ in fleet.p.pools],
                    classes=[*classes, blank],
                    value=[*value, 0],
                    work=[*work, 0],
                    needs=needs,
                    modes=[(cut, -cut - cost) for cut, cost in fleet.modes[g]] if self.workers else [(0, 0)],
                )
            )
        copies = [len(one) for one in fleet.members] + [self.blanks]
        return Patterns(offers, copies, self.scale)

    def _refute(self, patterns: Patterns, index: int, needed: int) -> None:
        total = patterns.bound(self.vectors[index], needed)
        if total is not None and total // self.scale > needed:
            raise CertificateError(
                f"a better decision would have a value of more than {needed}, and by prices {index} up to "
                f"{total // self.scale} is possible"
            )

    def leaves(self, node: dict[str, Any], patterns: Patterns) -> Iterator[int]:
        """Yield the prices of each leaf of a node, with `patterns` on the path to it: one, or those of its tree."""
        if "prices" in node:
            yield whole(node["prices"], "prices", least=0, below=len(self.vectors))
        else:
            yield from self._walk(patterns, items(node["tree"], "tree"))

    def _walk(self, patterns: Patterns, records: Sequence[Any]) -> Iterator[int]:
        """Walk a tree; what is still to do is a stack of steps forward and back."""
        place, todo = 0, [("node", 0, 0)]
        while todo:
            step, k, g = todo.pop()
            if step != "node":
                patterns.change(step, k, g)
                continue
            if place >= len(records):
                raise CertificateError("its tree ends before all cases are refuted")
            record = items(records[place], f"record {place}")
            place += 1
            numbers = [whole(number, f"record {place - 1}", least=0) for number in record]
            if len(numbers) == 1:
                if numbers[0] >= len(self.vectors):
                    raise CertificateError(f"record {place - 1} names prices {numbers[0]}, which do not exist")
                yield numbers[0]
                continue
            if len(numbers) != 3 or numbers[2] > 1:
                raise CertificateError(
                    f"record {place - 1} is {shown(record)}; expected [prices] or [class, worker, 0/1]"
                )
            k, g, placement_first = numbers
            if not patterns.open_to(k, g):
                raise CertificateError(f"record {place - 1}: worker {g} can take no more of class {k}")
            cases = [("place", "lift"), ("ban", "unban")] if placement_first else [("ban", "unban"), ("place", "lift")]
            for enter, leave in reversed(cases):
                todo += [(leave, k, g), ("node", 0, 0), (enter, k, g)]
        if place != len(records):
            raise CertificateError(f"its tree has {len(records)} records, of which {place} are used")
