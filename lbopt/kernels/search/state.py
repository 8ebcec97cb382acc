"""The state of the search: the decision that it works on, and all arrays that it works in, by name.

Letters: W open workers (with free slots), ascending in slots; K size classes, ascending in size; Q the most slots of a
worker; M the envelope, that is, the largest load allowed. A pattern is what one worker takes: classes[:slots], largest
first. Prices and profits are in 1/scale tokens. Arrays of `Search` may be longer than the decision needs: they are
reused from one decision to the next.
"""

from typing import NamedTuple

from lbopt.kernels.arrays import Floats, Ints, Record, Records, integers
from lbopt.kernels.by_reference import by_reference
from lbopt.kernels.compile import kernel

#: The profit of a pattern where nothing fits; far below every profit.
NONE = -(1 << 62)

#: Places of a request that is on no worker: all of its class that is left waits, or nothing is placed (the root).
WAITS, ROOT = -1, -2

#: Efforts of an evaluation, see `prices.evaluate`.
GLANCE, ROUGH, QUICK, EXACT = -2, -1, 0, 1

#: The cost of a range in which there is no assignment.
CLOSED = 1 << 62

#: How `envelopes.advance` ends; FULL: there is no room for another range or node.
FULL, OPEN, PROVED = -1, 0, 1

#: What is known of a search. `cost`: of the best assignment, tokens; `ranges`: open ranges in use; `prices`: written
#: down so far, and `newest`: 1 + the number of the newest of these that a range was given, 0 for none; `work`: done,
#: about microseconds; `bound`: proved lower bound on the cost; `warm`: 1 where the master has been used for this
#: decision; `patience`: evaluations of a single envelope at prices of others before it gets its own; `stop`: work at
#: which the present slice ends; `deadline`, `expired`: see `lbopt.kernels.deadline`; `seed`: of draws; `uneven`: even
#: starts in a row that led to nothing; `aim`: bound of the range that is worked on, below which assignments are not
#: looked for. It is no bound on the cost: that is `bound`, the least of all open ranges; `strayed`: envelopes that
#: stayed open at the newest prices, and `astray`: after how many of these one gets prices of its own.
KNOWN = integers(
    *("cost", "ranges", "prices", "work", "bound", "warm", "patience", "stop", "deadline", "expired", "seed", "most"),
    *("uneven", "aim", "strayed", "astray", "newest"),
)

#: A range of envelopes. `bound`: on the cost, tokens; `first`, `last`: envelopes; `beyond`: the last one that it stands
#: for, as no load lies between `last` and that; `state`: what is done with it next, see `open_ranges`; `level`: of its
#: trees; `planted`: 1 where a tree of placements has a root for it; `priced`: the newest prices when it was last
#: evaluated; `times`: how often it was; `shown`: the part of `bound` that prices prove, and `row`: which ones. What is
#: above that comes from its tree.
RANGE = integers("bound", "first", "last", "beyond", "state", "level", "planted", "priced", "times", "shown", "row")

#: The pricing of one envelope along a path, which can be taken up again. `phase`: of the pricing of a range, and
#: `range`: priced; `begun`: pivots of the master when that began; `rounds`: so far; `lowest`: best bound, times scale;
#: `top`: tokens of the best assignment filled, -1 for none; `effort`: of its evaluations; `pivoting`: 1 where the
#: restricted program is next; `before`: pivots when that began; `ended`: why, see below; `turns`, `entries`: see
#: `columns.reoptimise`.
PRICING = integers(
    *(
        "phase",
        "range",
        "begun",
        "rounds",
        "lowest",
        "top",
        "effort",
        "pivoting",
        "before",
        "ended",
        "turns",
        "entries",
    ),
)

#: Phases of the pricing of a range: its columns, and a dive that prices what is left or settles more workers.
IDLE, COLUMNS, DIVE, SETTLE = 0, 1, 2, 3

#: How a column generation ends: it is cut off; its bound is low enough; it cannot fall any more; rounding has spoilt
#: the master.
CUT_OFF, LOW, CONVERGED, SPOILT = 0, 1, 2, 3

#: What the lists of choices were made for. `classes`, `scale`: of the decision; `total`: what all requests cost;
#: `lowest`: least price; `reach`: tokens that the table of pairs reaches, -1 = not made; `widest`: slots of the list
#: that it was made from; `grain`: logarithm of the tokens of one of its entries.
LISTED = integers("classes", "scale", "total", "lowest", "reach", "widest", "grain")

#: One list of choices. `length`: classes in it, -1 = not made; `ceiling`: sum of the largest profits.
LIST = integers("length", "ceiling")

#: Sizes of a master program. `workers`, each with an artificial column at the front; `classes`; `columns`; `tight`:
#: rows; `pivots`: made so far; `entries`: of the inverse that they changed; `most_slots`: of a worker, by which work is
#: booked, so that arrays which are kept wider from another decision change no effort.
COUNTS = integers("workers", "classes", "columns", "tight", "pivots", "entries", "most_slots")

#: What a path leaves. `workers`: with slots left; `tokens`: that it places.
PATH = integers("workers", "tokens")

#: A node of a tree of placements. `parent`: -1 for none; `size_class`: class placed; `place`: worker, WAITS or ROOT;
#: `reach`: tokens that are not ruled out, -2**62 = closed; `depth`: placements so far; `range`: whose tree it is of;
#: `row`: of the prices by which nothing beyond `reach` is left; `chosen`: the class that the nodes below place, -1
#: where there are none.
PLACEMENT = integers("parent", "size_class", "place", "reach", "depth", "range", "row", "chosen")

#: State of the trees. `used`: nodes; `left`: nodes that may still be bounded, 0 = all trees rest; `range`: worked on;
#: `current`: node being bounded, -1 = none; `spoilt`: how often rounding has spoilt the master there; `found`: tokens
#: of the best assignment filled for the tree, -1 for none.
TREE = integers("used", "left", "range", "current", "spoilt", "found")


@by_reference
class Step(NamedTuple):
    """A decision at H = 0, every slot of which is filled by exactly one request."""

    v: Ints  # (K,) sizes, tokens, ascending; a forced class after the unforced one of the same size
    n: Ints  # (K,) requests
    floor: Ints  # (K,) least price: 0, or far below for classes whose requests must be admitted
    load: Ints  # (W,) tokens before; workers ascend in slots
    slots: Ints  # (W,)
    rank: Ints  # (W,) workers in the order of filling: fewest slots first, then the heaviest
    sums: Ints  # (Q + 1,) totals of the smallest requests, tokens
    workers: int  # G, with those without free slots
    total: int  # loads before of all G workers, tokens
    heaviest: int  # the largest of them, tokens
    scale: int  # units of a price in a token
    most: int  # tokens that can be admitted at most, and at least: every slot is filled
    least: int
    forced: int  # requests that must be admitted


@kernel
def part(step: Step, n: Ints, load: Ints, slots: Ints, rank: Ints, sums: Ints) -> Step:
    """Return what is left of a decision: fewer requests, fewer open workers or slots; its numbers stay.

    Parameters
    ----------
    step
        The whole decision.
    n
        int64 (K,): requests of each class that are left.
    load, slots, rank
        int64 (W,): of the workers that are still open, as in `Step`.
    sums
        int64 (Q + 1,): totals of the smallest requests that are left, tokens.
    """
    return Step(
        step.v,
        n,
        step.floor,
        load,
        slots,
        rank,
        sums,
        step.workers,
        step.total,
        step.heaviest,
        step.scale,
        step.most,
        step.least,
        step.forced,
    )


@by_reference
class Master(NamedTuple):
    """The restricted master program, its basis and its inverse; see `master`.

    C columns, R tight rows at most.
    """

    counts: Record  # COUNTS
    owner: Ints  # (C,) worker of each column
    items: Ints  # (C, Q) its classes, -1 beyond its length
    size: Ints  # (C,) total of its sizes
    worth: Floats  # (C,) tokens it brings, with a bonus for forced requests; strongly negative if artificial
    value: Floats  # (C,) the same, but strongly negative where it does not fit the present envelope
    limit: Floats  # (K,) requests of each class
    row: Ints  # (R,) tight rows
    place: Ints  # (W + K,) position of a row among the tight ones, -1 = slack
    basic: Ints  # (R,) column that is basic at each position
    inverse: Floats  # (R, R) [basic position, tight position]
    level: Floats  # (R,) value of each basic column
    slack: Floats  # (K,) value of each slack variable
    dual: Floats  # (R,) price of each tight row
    step: Floats  # (R,) scratch: change of the basic columns
    rate: Floats  # (K,) scratch: change of the slack variables


@by_reference
class Path(NamedTuple):
    """Placements that are taken for granted, and what they leave of the decision; see `path`."""

    state: Record  # PATH
    taken: Ints  # (W, Q) classes placed on each worker
    placed: Ints  # (W,) how many
    left: Ints  # (K,) requests that are left
    who: Ints  # (W,) worker r of those with slots left, ascending in these
    load: Ints  # (W,) of worker r, with what is placed on it
    slots: Ints  # (W,) of worker r, those left
    rank: Ints  # (W,) the order of filling
    sums: Ints  # (Q + 1,) totals of the smallest requests left
    number: Ints  # (W,) scratch


@by_reference
class Choices(NamedTuple):
    """What a worker chooses from, and scratch of the search for its best pattern."""

    v: Ints  # (K,) sizes, tokens, ascending
    p: Ints  # (K,) profit of one request, 1/scale tokens
    n: Ints  # (K,) requests left
    best: Ints  # (K,) class of most profit up to each class, from `pattern.prefix_best`
    sums: Ints  # (Q + 1,) totals of the smallest requests left, from `pattern.smallest_sums`
    pair: Ints  # (2,) scratch
    pairs: Ints  # [r >> grain]: no less than the profit of two requests with a total of at most r
    triples: Ints  # and of three
    known: Record  # deadline, and work booked
    scale: int  # units of a profit in a token
    tables: int  # how many of the tables there are: 0, 1, 2
    grain: int  # logarithm of the tokens of an entry


@by_reference
class Filling(NamedTuple):
    """Scratch of `fill.fill`, over classes."""

    left: Ints  # (K,) requests that are left
    profit: Ints  # (K,)
    best: Ints  # (K,) class of most profit up to each class
    sums: Ints  # (Q + 1,) totals of the smallest requests left


@by_reference
class Exchanging(NamedTuple):
    """Scratch of `exchange.exchange` and of assignments made without prices."""

    slack: Ints  # (W,) tokens free up to the envelope
    number: Ints  # (W,) slack that no request fills, or slots filled so far
    holder: Ints  # (K,) a worker that may hold a request of the class, -1 for none
    avail: Ints  # (K,) requests that are left
    profit: Ints  # (K,) sizes, as profits
    best: Ints  # (K,) class of most profit up to each class
    sums: Ints  # (Q + 1,) totals of the smallest requests left
    pattern: Ints  # (2 OPENED,) another pattern of the open slots
    pair: Ints  # (2,)
    saved: Ints  # (W, Q) patterns to go back to


@by_reference
class Search(NamedTuple):
    """The state of a search; changes in place, and the search can be taken up again."""

    known: Record  # KNOWN
    ranges: Records  # (.,) RANGE
    bank: Ints  # (P, K) the log of prices: prices i are in row i % P, and those that rows have lost are not proofs
    bank_at: Ints  # (P,) the envelopes they were found at, -1 for those of a node of a tree
    answer: Ints  # (W, Q) the best assignment
    price: Ints  # (K,) the prices in use
    best_price: Ints  # (K,) the prices of the best bound at this envelope
    value: Ints  # (W,) best profit found at the prices in use
    bound: Ints  # (W,) what no profit exceeds
    pattern: Ints  # (W, 3 Q + 4) the patterns of `value`
    leaf: Ints  # (W, 3 Q + 4) an assignment in the making
    spare: Ints  # (W, 3 Q + 4) the best assignment of the columns
    kept: Ints  # (W, 3 Q + 4) the assignment of a dive
    # what workers of each number of slots choose from at the prices in use, see `choices`
    listed: Record  # LISTED
    listed_price: Ints  # (K,) prices, requests and sizes that the lists were made for
    listed_count: Ints  # (K,)
    listed_size: Ints  # (K,)
    lists: Records  # (Q + 1,) LIST
    list_class: Ints  # (Q + 1, K) class of each place of a list
    list_size: Ints  # (Q + 1, K) its size, profit and requests
    list_profit: Ints  # (Q + 1, K)
    list_count: Ints  # (Q + 1, K)
    list_best: Ints  # (Q + 1, K) place of most profit up to it
    # scratch of evaluations
    profit: Ints  # (K,) profit of each class
    best: Ints  # (K,) class of most profit up to each class
    tops: Ints  # (K,) largest profits
    partner: Ints  # (K,) a pair, or the best partners of a class
    pairs: Ints  # (TABLE + 1,) what two requests of at most so many grains are worth
    triples: Ints  # (TABLE + 1,) and three
    waiting: Ints  # (K,) requests that an offered assignment leaves
    pricing: Record  # PRICING
    path: Path
    filling: Filling
    exchanging: Exchanging


@by_reference
class Tree(NamedTuple):
    """Trees of placements, see `placement_tree`."""

    state: Record  # TREE
    nodes: Records  # (.,) PLACEMENT
    bound: Ints  # (W,) what no profit of worker r of those left exceeds at the node's prices
    lost: Ints  # (W + 1,) what is lost where worker r takes a request of the class to be placed, then where all wait
    load_then: Ints  # (W,) loads and slots of workers that have taken one
    slots_then: Ints  # (W,)


@by_reference
class Masters(NamedTuple):
    """The master program and the trees of a search; apart from it, as most kernels need none of their arrays."""

    whole: Master
    tree: Tree
