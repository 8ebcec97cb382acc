"""Check a certificate of the kind "priced-envelopes": prices that no assignment cheaper than the bound can beat.

Horizon 0. The envelope M of an assignment is its largest load, and its cost is G * M - (sum of all loads before) - T,
where T is the admitted total. Fix prices per class: at least 0, but of any sign for forced classes, all copies of which
are admitted. A pattern of worker g at M is a multiset of slots_g requests of total size at most M - load_g; its profit
is scale * size - price, summed. With B_g(M) the largest profit of a pattern of g,

    scale * T <= D(M) = sum_k n_k price_k + sum_g B_g(M)        for every assignment with all loads <= M,

because scale * T = (sum of the profits of its patterns) + (sum of price_k * copies admitted), where waiting copies have
a price of at least 0. It holds as well with any number >= B_g(M) in its place. A worker without any pattern at M says
that no assignment has all its loads <= M.

Now let an assignment cost less than C and have its envelope in a..b. All its loads are <= b, and it admits at least
needed = G a - (sum of loads) - (largest possible cost below C) tokens, and at least what the smallest requests that
can be admitted have, for every slot is filled: all of them, where none waits. So D(b) < scale * needed refutes the
range; otherwise the tree does (`tree.py`). The ranges have to cover every envelope
from the least one that any assignment has to the last one at which a cost below C is conceivable, and they are cut to
these before anything else, which makes every claim weaker: with a smaller b no B_g rises and no pattern is added, with
a larger a more tokens are needed. No range is checked at more than its two ends: patterns that fit at M <= b fit at b.

Costs and loads are counted in steps of `Step.unit`, a common divisor of all sizes and differences of loads: a cost
below C is then at most the last multiple below C, and envelopes between two steps do not occur.
"""

from __future__ import annotations

from typing import Any

from lbopt.exceptions import CertificateError
from lbopt.solvers.certificates.format import refuse_many_slots
from lbopt.solvers.certificates.patterns import best_profits, refined
from lbopt.solvers.certificates.priced_body import Node, PricedBody, read_priced_body
from lbopt.solvers.certificates.profits import BestProfits
from lbopt.solvers.certificates.step import Step
from lbopt.solvers.certificates.tree import TreeWalk
from lbopt.solvers.recount import Numbers


def check_priced(p: Numbers, bound: int, body: dict[str, Any]) -> None:
    """Return if the evidence proves that no assignment costs less than `bound`.

    Raises
    ------
    CertificateError
        Naming the first node, and the numbers, for which it does not.
    """
    horizon = len(p.base[0]) - 1
    if horizon:
        raise CertificateError(f"kind 'priced-envelopes' proves bounds at horizon 0, and the problem has {horizon}")
    evidence = read_priced_body(body)
    step = Step.of(p)
    _check_prices(step, evidence)
    if bound <= 0:
        return
    first, last = step.least_envelope, step.last_envelope(bound)
    ranges = [(i, *_cut(step, node, first, last)) for i, node in enumerate(evidence.nodes)]
    ranges = [(i, a, b) for i, a, b in ranges if a <= b]
    _check_cover(step, ranges, first, last, bound)
    tables: dict[int, BestProfits] = {}
    for i, a, b in ranges:
        index = evidence.nodes[i].prices
        if index not in tables:
            tops = [end for other, _, end in ranges if evidence.nodes[other].prices == index]
            tables[index] = _table(step, evidence, index, max(tops))
        try:
            _refute(step, tables[index], b, step.tokens_needed(a, bound), evidence, evidence.nodes[i])
        except CertificateError as error:
            raise CertificateError(f"node {i} (envelopes {a}..{b}, prices {index}): {error}") from None


def _check_prices(step: Step, evidence: PricedBody) -> None:
    forced = step.classes.forced
    for i, vector in enumerate(evidence.prices):
        for k, price in vector.items():
            if k >= len(forced):
                raise CertificateError(f"prices[{i}] names class {k}, but there are only {len(forced)} classes")
            if price < 0 and not forced[k]:
                raise CertificateError(
                    f"prices[{i}]: class {k} (size {step.classes.sizes[k]}) has price {price}; only classes that must "
                    "be admitted may have a negative one"
                )


def _cut(step: Step, node: Node, first: int, last: int) -> tuple[int, int]:
    return step.attainable_from(max(node.first, first)), step.attainable_to(min(node.last, last))


def _check_cover(step: Step, ranges: list[tuple[int, int, int]], first: int, last: int, bound: int) -> None:
    missing = first
    for _, a, b in sorted(ranges, key=lambda one: one[1:]):
        if a > missing:
            break
        missing = max(missing, b + step.unit)
    if missing <= last:
        raise CertificateError(
            f"no node covers envelope {missing}; a cost below {bound} is conceivable from {first} to {last}"
        )


def _table(step: Step, evidence: PricedBody, index: int, top: int) -> BestProfits:
    vector = evidence.prices[index]
    reach: dict[int, int] = {}
    for g in step.open_workers:
        reach[step.slots[g]] = max(reach.get(step.slots[g], 0), top - step.loads[g])
    prices = [vector.get(k, 0) for k in range(len(step.classes))]
    return BestProfits(step.classes, prices, evidence.scale, reach)


def _refute(step: Step, table: BestProfits, top: int, needed: int, evidence: PricedBody, node: Node) -> None:
    """Return if no assignment with loads up to `top` admits `needed` tokens."""
    rooms = {g: top - step.loads[g] for g in step.open_workers}
    if any(room < step.lightest[step.slots[g]] for g, room in rooms.items()):
        return
    workers = {g: (step.slots[g], table.clipped(step.slots[g], room)) for g, room in rooms.items()}
    fixed = sum(n * price for n, price in zip(step.classes.counts, table.prices, strict=True)) - table.scale * needed
    _, budget = refined(table, workers, best_profits(table, set(workers.values())), fixed)
    if budget < 0:
        return
    if node.tree is None:
        raise CertificateError(
            f"a cheaper assignment would admit {needed} tokens or more, and by these prices up to "
            f"{needed + budget // table.scale} are possible"
        )
    refuse_many_slots(step.slots)
    places = {g: (step.slots[g], room) for g, room in rooms.items()}
    TreeWalk(step.classes, evidence.scale, evidence.prices, places, needed).check(node.tree)
