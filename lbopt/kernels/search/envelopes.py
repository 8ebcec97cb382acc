"""The search over the envelope M: open ranges of M, cheapest bound first, each closed by prices, descent or placements.

A solution with largest load M costs G M - (loads before) - T, so a bound on the tokens T that fit under M bounds the
cost, and a bound at b serves a whole range a..b: cost >= G a - (loads before) - T(b). The search keeps a list of open
ranges and always takes the one with the least bound:

1. it is evaluated at the newest prices. Where many single M stayed open at these, they are of an envelope too far
   away, and the next single M gets its own;
2. a range of several M is halved, unless it is narrow: so much narrower than what its bound lacks that all its
   halves would stay open. With few, very large requests most ranges end so. A narrow range a..b is treated like a
   single M: with b as the envelope, and the cost taken at a. Where something is found that the range cannot exclude,
   it is halved all the same;
3. the first single M gets prices of one threshold for all classes, a first assignment, a short descent; where most
   workers have many free slots, each M gets the prices of the others instead, and an assignment of its own
   (`few_slots`);
4. then the master program, whose prices are the best there are, and a dive for an assignment;
5. then a short descent, which finds an assignment as cheap as the bound, or shows that there is none, or gives up;
6. then a tree of placements, which goes on whenever the envelope is the cheapest again; descents with growing limits
   are what is left where even that comes to no end.

It ends when no open range is below the best assignment. All bounds are exact integers. The search can be stopped and
taken up again between any two of these steps, and within the longest: the master program, the dive, the descents and
the trees.
"""

from lbopt.kernels.compile import kernel
from lbopt.kernels.deadline import used_up
from lbopt.kernels.search.attempts import CHUNK, PENDING, RAISED, UNCHANGED, try_descent
from lbopt.kernels.search.column_generation import NO_BOUND, begin_columns, generate_columns
from lbopt.kernels.search.dive import UNFINISHED, begin_dive, dive
from lbopt.kernels.search.even_start import try_even_start
from lbopt.kernels.search.exchange import with_few_slots
from lbopt.kernels.search.few_slots import price_few
from lbopt.kernels.search.fill import fill
from lbopt.kernels.search.keeping import improve, keep_prices, place_in_bank, recall
from lbopt.kernels.search.master import copy_master, drop_columns, move_envelope, reset_master
from lbopt.kernels.search.open_ranges import FRESH, cheapest, push, reached
from lbopt.kernels.search.placement_tree import NO_ROOM, SPLIT, drop_tree, try_tree
from lbopt.kernels.search.prices import evaluate, threshold_prices
from lbopt.kernels.search.state import (
    COLUMNS,
    DIVE,
    FULL,
    GLANCE,
    IDLE,
    NONE,
    OPEN,
    PROVED,
    QUICK,
    ROUGH,
    Masters,
    Search,
    Step,
)

# Stages of an envelope, beyond a fresh one; later ones count the descents. A range of several that holds an assignment
# which its trees cannot exclude is halved.
_THRESHOLD, _MASTER, _HALVED = 1, 2, -1

#: A range is narrow where its width costs at most this share of what its bound lacks.
NARROW = 4

#: Ranges from which on narrow ones are looked for even if no master program was solved.
MANY = 1000

#: Patterns listed for a worker, nodes of a descent: at the first level; both grow with every level.
LISTED, BRIEF = 200, 300

#: Nodes of a tree of placements, at the first level.
BRANCHED = 40

#: Rows of the longest lists; beyond, a worker counts as not listed.
LONGEST = 40_000

#: Levels from which limits grow no further.
LEVELS = 18

#: Levels of which the trees come before descents.
TREES = 9

#: Even starts in a row that led to nothing, after which they are left alone.
UNEVEN = 3

#: Pivots after which a master is begun anew, to be rid of rounding.
MOST_PIVOTS = 20_000

#: Envelopes this near to each other (tokens) share most columns.
NEAR = 2

#: From this size on, most envelopes are loads that no worker can have.
SPARSE = 1 << 16

_CLOSED = 1 << 62


@kernel
def advance(step: Step, search: Search, masters: Masters, budget: int) -> int:
    """Search until everything is closed or `budget` is spent (units of about 1 microsecond).

    Returns PROVED, OPEN (more budget may help) or FULL (more room would help). Beyond the deadline in search.known it
    returns OPEN, and cannot be taken up again.

    Parameters
    ----------
    step, search, masters
        The decision; the state of the search, the master programs and the trees, which change in place.
    budget
        Work after which to stop, about microseconds.
    """
    ranges, known, tree = search.ranges, search.known, masters.tree.state
    descent, pricing = search.descent.state, search.pricing.state
    G, total, scale, W = step.workers, step.total, step.scale, step.load.size
    known.stop = known.work + budget
    whole = step.least == step.most
    sparse, few = step.v[step.v.size - 1] > SPARSE, with_few_slots(step)
    while True:
        growing = tree.left > 0
        priced = pricing.phase != IDLE
        pending = growing or priced or descent.left > 0
        i = tree.range if growing else pricing.range if priced else descent.range if pending else cheapest(search)
        if not pending:
            if i < 0 or ranges[i].bound >= known.cost:
                known.bound = known.cost
                return PROVED
            known.bound = known.aim = ranges[i].bound
        if known.work >= known.stop or used_up(known):
            known.bound = min(ranges[cheapest(search)].bound, known.cost)
            return OPEN
        this = ranges[i]
        if whole and not pending:  # beyond, no assignment is better than the best one
            this.last = min(this.last, (known.cost - 1 + total + step.most) // G)
            if this.last < this.first:
                this.bound = _CLOSED
                continue
        a, b, stage = this.first, this.last, this.stage
        if a == b and stage <= _THRESHOLD and known.strayed >= known.astray:
            known.strayed = 0
            known.astray *= 2
            this.times = known.patience + 1
        if not pending and this.priced < known.prices and (a < b or this.times <= known.patience):
            # newest prices first: they were found nearest to where the search is now
            recall(step, search, place_in_bank(search, known.prices - 1))
            this.priced = known.prices
            this.times += 1
            tokens = evaluate(step, search, b, GLANCE)
            known.work += 5 + W // 3
            if tokens != NONE and step.slots[W - 1] > 2:  # workers of one and two slots are looked at in full
                this.bound = max(this.bound, _lowest_cost(step, a, tokens // scale))
                close = a == b or _narrow(step, search, i)
                if (close or b - a < 3) and this.bound < known.cost:
                    tokens = evaluate(step, search, b, QUICK if close else ROUGH)
                    known.work += 5 + W // 3
                    known.strayed += a == b and tokens != NONE and _lowest_cost(step, a, tokens // scale) < known.cost
            if tokens == NONE:
                this.bound = _CLOSED
            else:
                this.bound = max(this.bound, _lowest_cost(step, a, tokens // scale))
        elif sparse and stage == FRESH and reached(step, search, b) < b:
            # no worker can have a load of b: skip what nobody can reach
            b = reached(step, search, b)
            known.work += 5 + W // 3
            this.last, this.priced = b, 0
            if b < a:
                this.bound = _CLOSED
        elif a < b and not pending and (stage == _HALVED or not _narrow(step, search, i)):
            known.work += 1
            middle = (a + b) // 2
            bound, newest = this.bound, this.priced
            if stage != FRESH:
                drop_tree(masters.tree, i)
            this.last, this.priced, this.stage, this.times = middle, 0, FRESH, 0
            # the bound at b was a rough one; alone, it is worth a better one
            at = push(search, bound, middle + 1, b, newest if middle + 1 < b else 0)
            if at < 0:
                this.last = b
                return FULL
            if at < known.ranges - 1:
                drop_tree(masters.tree, at)
        elif stage == FRESH:
            this.stage = _THRESHOLD
            first = known.prices == 0  # later on, prices from another envelope are a better start
            if first:
                _first_prices(step, search, i)
            if this.bound < known.cost and known.uneven < UNEVEN:
                known.uneven = 0 if try_even_start(step, search, i) else known.uneven + 1
            if first and this.bound < known.cost and few < 0:
                try_descent(step, search, i, LISTED, min(W + 10, CHUNK), -1)
            if few >= 0 and this.bound < known.cost and not sparse:
                _price_few(step, search, masters, i, few)
        elif stage == _THRESHOLD:
            if _best_prices(step, search, masters, i):
                this.stage = _HALVED if a < b and (whole or _holds_another(step, search, i)) else _MASTER
        else:
            level, turn = (stage - _MASTER) // 2, (stage - _MASTER) % 2
            if turn == 0 and (level == 0 or level > TREES):
                deep = max(0, level - TREES)
                ending = try_descent(step, search, i, min(LISTED << (2 * deep), LONGEST), BRIEF << (3 * deep), deep)
                if ending == PENDING:
                    descent.range = i
            elif turn == 0:
                ending = UNCHANGED
            else:  # a tree goes on where it was left
                ending = try_tree(step, search, masters, i, BRANCHED << level, level == 0)
                if ending == NO_ROOM:
                    return FULL
            if ending == SPLIT:
                this.stage = _HALVED
            elif (ending == UNCHANGED or (ending == RAISED and turn == 1)) and level < LEVELS:
                this.stage = stage + 1
            elif ending == UNCHANGED:  # by turns at the last level
                this.stage = stage - 1 + 2 * (1 - turn)


@kernel
def _lowest_cost(step: Step, first: int, tokens: int) -> int:
    """Return the least cost in a range from envelope `first` on whose assignments admit at most so many tokens."""
    return step.workers * first - step.total - tokens if tokens >= step.least else _CLOSED


@kernel
def _narrow(step: Step, search: Search, i: int) -> bool:
    """Whether halving range i further cannot close it: its width costs little beside what its bound lacks.

    Not before a good assignment is known: from a master program, or from an even start where huge requests let
    the bound jump from one range to the next; or halving led to many ranges. Where all requests are admitted an
    envelope closes all below it, so that ranges are bisected by it.
    """
    this, known = search.ranges[i], search.known
    lack = known.cost - this.bound
    if step.least == step.most:
        return True
    huge = known.uneven > 0 and step.v[step.v.size - 1] > SPARSE
    halved = known.warm == 1 or huge or known.ranges >= MANY
    return halved and NARROW * step.workers * (this.last - this.first) <= lack


@kernel
def _holds_another(step: Step, search: Search, i: int) -> bool:
    """Whether an assignment found for range i admits what its bound asks for, though its cost is no better."""
    found, this = search.pricing.generation, search.ranges[i]
    return found.top > step.workers * this.first - step.total - search.known.cost


@kernel
def _first_prices(step: Step, search: Search, i: int) -> None:
    """Price the envelope of range i by a threshold, fill at these prices, and descend a little."""
    this, known = search.ranges[i], search.known
    M, W = this.last, step.load.size
    tokens = threshold_prices(step, search, M)
    known.work += 50 + 5 * W
    if tokens == NONE:
        this.bound = _CLOSED
        return
    this.bound = max(this.bound, _lowest_cost(step, this.first, tokens // step.scale))
    known.aim = min(this.bound, known.cost)
    keep_prices(step, search, M)
    this.priced = known.prices
    recall(step, search, place_in_bank(search, known.prices - 1))
    reached = fill(step, search, M, step.n, search.undecided, search.leaf)
    if reached >= 0:
        improve(step, search, search.leaf, M, reached, 40)


@kernel
def _price_few(step: Step, search: Search, masters: Masters, i: int, few: int) -> None:
    """Price the envelope of range i by its `few` workers of few slots, and keep the assignment that this leads to.

    Parameters
    ----------
    step, search, masters
        The decision; the state of the search, the master programs and the trees, which change in place.
    i, few
        Open range, a single envelope or a narrow one, in search.ranges; workers, from `with_few_slots`.
    """
    this, known = search.ranges[i], search.known
    tokens = price_few(step, search, masters, this.last, few)
    if tokens == NONE:
        this.bound = _CLOSED
    elif tokens != NO_BOUND:
        this.bound = max(this.bound, _lowest_cost(step, this.first, tokens // step.scale))
        known.aim = min(this.bound, known.cost)
        this.priced = known.prices


@kernel
def _best_prices(step: Step, search: Search, masters: Masters, i: int) -> bool:
    """Solve the master program at the envelope of range i, then dive from its optimum; return whether that ended.

    Parameters
    ----------
    step, search, masters
        The decision; the state of the search, the master programs and the trees, which change in place.
    i
        Open range, a single envelope or a narrow one, in search.ranges; its bound changes in place.
    """
    this, known = search.ranges[i], search.known
    pricing, found = search.pricing.state, search.pricing.generation
    G, total, M, W = step.workers, step.total, this.last, step.load.size
    m = masters.whole
    base = G * this.first - total
    if pricing.phase == IDLE:
        if known.warm == 0 or m.counts.pivots > MOST_PIVOTS:
            reset_master(m, step.n, W, 2.0 * M + 1.0)
            known.warm = 1
        else:
            if abs(M - search.bank_at[place_in_bank(search, known.prices - 1)]) > NEAR:
                drop_columns(m)  # most of them are in the way there
            move_envelope(m, step.load, M, 2.0 * M + 1.0)
        pricing.phase, pricing.range, pricing.before = COLUMNS, i, m.counts.pivots
        recall(step, search, place_in_bank(search, known.prices - 1))
        begin_columns(search)
    if pricing.phase == COLUMNS:
        if not generate_columns(step, search, m, M, max(base - known.cost, step.least - 1), 300, known.stop):
            return False
        pricing.phase = IDLE
        work = 10 + (m.counts.pivots - pricing.before) * (W + m.counts.tight) ** 2 // 1000
        known.work += 10
        known.patience = (known.patience + work // (4 * (5 + W // 3))) // 2
        if found.lowest != NO_BOUND:  # else the deadline passed before the first prices
            this.bound = max(this.bound, _lowest_cost(step, this.first, found.lowest // step.scale))
            known.aim = min(this.bound, known.cost)
            keep_prices(step, search, M)
            this.priced = known.prices
        if found.top >= 0:
            improve(step, search, search.spare, M, found.top, 100)
        if found.converged == 0 or this.bound >= known.cost:
            return True
        recall(step, search, place_in_bank(search, known.prices - 1))
        copy_master(m, masters.rest, W, step.v.size)
        begin_dive(step, search)
        pricing.phase = DIVE
    top = dive(
        *(step, search, masters.rest, M, max(base - this.bound, step.least)),
        *(max(base - known.cost + 1, step.least), LISTED, LISTED, search.kept),
        known.stop,
    )
    if top == UNFINISHED:
        return False
    pricing.phase = IDLE
    if top >= 0:
        found.top = max(found.top, top)
        improve(step, search, search.kept, M, top, 100)
    return True
