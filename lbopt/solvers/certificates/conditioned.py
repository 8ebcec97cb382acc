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

Records of trees are in `format.py`. At a leaf patterns contain what is placed on their worker, and no more of a
class that is banned there.

"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from lbopt.exceptions import CertificateError
from lbopt.solvers.certificates.choice import Task, Way, most
from lbopt.solvers.certificates.format import (
    Certificate,
    Node,
    Prices,
    Record,
    Refuted,
    Split,
    check_prices,
    fields,
    items,
    read_priced_body,
    shown,
    whole,
)
from lbopt.solvers.certificates.tree import Case, Place, check_goal, walk
from lbopt.solvers.recount import Numbers, most_on

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
    for i, one in enumerate(items(body["goals"], "goals")):
        name = one.get("goal") if type(one) is dict else None
        if name not in (*p.goals, "objective") or name in found:
            raise CertificateError(f"goal {i} is {shown(name)}; expected one of {', '.join((*p.goals, 'objective'))}")
        try:
            goal = ConditionedGoal(fleet, name, one, values)
            check_goal(goal, goal.nodes)
        except CertificateError as error:
            raise type(error)(f"{name}: {error}") from None
        found[name] = goal.bound
    return found


class CountedFleet:
    """Classes, workers and modes of a problem, counted from its plain lists."""

    def __init__(self, p: Numbers) -> None:
        self.p, G, N, pools = p, len(p.slots), len(p.work), p.pools
        costs = [p.price(i) for i in range(N)]
        groups: dict[tuple[Any, ...], list[int]] = {}
        for i in range(N):
            row: list[Any] = [p.work[i][0], p.must[i], costs[i], *(taken[i] for _, taken in pools)]
            row += [tuple(p.given[name][i]) for name in ("allowed", "credit") if name in p.given]
            groups.setdefault(tuple(row), []).append(i)
        self.members = list(groups.values())
        first = [one[0] for one in self.members]
        adds = p.choices()
        self.work = [{g: row[0] for g, row in adds[i].items()} for i in first]
        self.must, self.costs = [p.must[i] for i in first], [costs[i] for i in first]
        self.rooms, self.needs = [free for free, _ in pools], [[taken[i] for i in first] for _, taken in pools]
        self.slots = [most_on(p, g, [i for i in range(N) if g in adds[i]]) for g in range(G)]
        self.load = [p.pace(g) * row[0] for g, row in enumerate(p.base)]
        self.modes: list[list[tuple[int, int]]] = [[(0, 0)] for _ in range(G)]
        for g, tokens, price in p.pausing:
            if len(self.modes[g]) >= 1 << _MOST_PAUSES:
                raise CertificateError(f"more than {_MOST_PAUSES} requests of worker {g} may pause: not checked")
            less = p.pace(g) * tokens
            self.modes[g] += [(cut + less, cost + price) for cut, cost in self.modes[g]]


class ConditionedGoal:
    """One goal: its values, its blanks, and the prices that are to prove its bound."""

    unit = 1

    def __init__(self, fleet: CountedFleet, name: str, one: dict[str, Any], reached: dict[str, int]) -> None:
        p = fleet.p
        self.fleet, self.name = fleet, name
        evidence = read_priced_body(one, conditions=True)
        self.scale, self.vectors, self.nodes = evidence.scale, evidence.prices, evidence.nodes
        self.bound, self.weight = whole(one["bound"], "bound"), whole(one["weight"], "weight", least=0)
        before = p.goals[: p.goals.index(name)] if name in p.goals else p.goals
        exactly = p.exactly
        admitted = len(p.work) - reached["left_waiting"] if "left_waiting" in before else exactly or 0
        self.blanks = sum(fleet.slots) - admitted
        late = reached["overdue"] if "overdue" in before else None
        forced = [must or (late == 0 and cost > 0) for must, cost in zip(fleet.must, fleet.costs, strict=True)]
        check_prices(self.vectors, [*forced, exactly is not None])
        if self.weight != 1 and (name == "overdue" or (name == "objective" and late is None)):
            raise CertificateError(f"weight is {self.weight}; expected 1, as the costs of waiting are added")
        total_cost = sum(cost * len(one) for cost, one in zip(fleet.costs, fleet.members, strict=True))
        self.workers = len(fleet.slots) if name == "objective" else 0
        if name == "left_waiting":
            self.constant = len(p.work)
        elif name == "overdue":
            self.constant = total_cost
        else:
            self.constant = self.weight * (total_cost - (late or 0)) - sum(fleet.load)
        self.first, self.last = self._envelopes()
        self._offers = [self._offered(g) for g in range(len(fleet.slots))]

    def _envelopes(self) -> tuple[int, int]:
        """Return the least and the largest envelope that a decision can have."""
        if not self.workers:
            return 0, 0
        fleet, least, most = self.fleet, 0, 0
        for g, load in enumerate(fleet.load):
            least = max(least, load - max(cut for cut, _ in fleet.modes[g]))
            sizes = [row[g] for row, one in zip(fleet.work, fleet.members, strict=True) if g in row for _ in one]
            most = max(most, load + sum(sorted(sizes, reverse=True)[: fleet.slots[g]]))
        return least, most

    def _offered(self, g: int) -> dict[int, tuple[int, tuple[int, ...]]]:
        """Return what a request of each class that worker g may take is worth, and what it takes; the blank is last."""
        fleet = self.fleet
        offered = {}
        for k, row in enumerate(fleet.work):
            if g in row:
                work, cost = row[g] if self.workers else 0, fleet.costs[k]
                worth = {"left_waiting": 1, "overdue": cost}.get(self.name, work + self.weight * cost)
                offered[k] = worth, (work, *(need[k] for need in fleet.needs))
        return {**offered, len(fleet.members): (0, (0,) * (1 + len(fleet.needs)))}

    def root(self, envelope: int) -> Case:
        """Return the case in which nothing is placed, within an envelope."""
        fleet = self.fleet
        places = {
            g: Place(q, (envelope - fleet.load[g] if self.workers else 0, *(free[g] for free in fleet.rooms)))
            for g, q in enumerate(fleet.slots)
        }
        return Case((*map(len, fleet.members), self.blanks), places)

    def refute(self, first: int, last: int, node: Node) -> None:
        """Return if no better decision has an envelope in this range, by what the node says."""
        enough = self.workers * first + self.constant - self.bound  # a better decision has a value of more than this

        def below(case: Case, record: Record) -> Sequence[Case]:
            if not isinstance(record, Refuted):
                return self.split(case, record)
            total = self.value(case, self.vectors[record.prices], enough)
            if total is not None and total // self.scale > enough:
                raise CertificateError(
                    f"a better decision would have a value of more than {enough}, and by prices {record.prices} up to "
                    f"{total // self.scale} is possible"
                )
            return []

        if node.tree is None:
            below(self.root(last), Refuted(node.prices))
        else:
            walk(node.tree, below, self.root(last))

    def split(self, case: Case, record: Record) -> tuple[Case, Case]:
        """Return the two cases of a branch."""
        assert isinstance(record, Split), "no other record is read"
        k, g = record.kind, record.worker
        place = case.workers.get(g)
        open_to = place is not None and k in self._offers[g] and case.left[k] > 0
        if place is None or not open_to or k in place.banned or not place.slots:
            raise CertificateError(f"worker {g} can take no more of class {k}")
        worth, takes = self._offers[g][k]
        placed, banned = case.with_one(g, k, takes, worth), case.banning(g, k)
        return (placed, banned) if record.placement_first else (banned, placed)

    def value(self, case: Case, prices: Prices, enough: int) -> int | None:
        """Return a bound on scale * value at these prices; None where some worker has no pattern at all.

        Parameters
        ----------
        enough
            A value; a bound that does not exceed it need not be exact.
        """
        workers = [self.tasks(case, g, prices) for g in case.workers]
        return most(workers, self.fixed(case, prices), (enough + 1) * self.scale)

    def fixed(self, case: Case, prices: Prices) -> int:
        """Return the part of the bound that does not depend on workers."""
        return self.scale * case.placed + sum(n * prices.get(k, 0) for k, n in enumerate(case.left))

    def tasks(self, case: Case, g: int, prices: Prices) -> list[Task]:
        """Return what is left to choose for a worker, by its pauses."""
        place, found = case.workers[g], []
        for cut, paid in self._modes(g):
            limits = (place.rooms[0] + cut, *place.rooms[1:])
            if min(limits) < 0:
                continue
            ways = [
                Way(worth * self.scale - prices.get(k, 0), takes, min(place.slots, case.left[k]), k)
                for k, (worth, takes) in self._offers[g].items()
                if case.left[k] > 0
                and k not in place.banned
                and all(a <= b for a, b in zip(takes, limits, strict=True))
            ]
            found.append(Task(-paid * self.scale, place.slots, limits, ways))
        return found

    def _modes(self, g: int) -> list[tuple[int, int]]:
        return [(cut, cut + cost) for cut, cost in self.fleet.modes[g]] if self.workers else [(0, 0)]
