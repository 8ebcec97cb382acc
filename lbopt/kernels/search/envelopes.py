"""The search over the envelope M: open ranges of M, cheapest bound first, each closed by prices or placements.

A solution with largest load M costs G M - (loads before) - T, so a bound on the tokens T that fit under M bounds the
cost, and a bound at b serves a whole range a..b: cost >= G a - (loads before) - T(b). The search keeps a list of open
ranges and always takes the one with the least bound:

1. it is evaluated at the newest prices. Where many single M stayed open at these, they are of an envelope too far
   away, and the next single M gets its own;
2. a range of several M is halved, unless it is narrow: so much narrower than what its bound lacks that all its
   halves would stay open. With few, very large requests most ranges end so. A narrow range a..b is treated like a
   single M: with b as the envelope, and the cost taken at a. Where something is found that the range cannot exclude,
   it is halved all the same;
3. the first single M gets prices of one threshold for all classes and a first assignment; where most
   workers have many free slots, each M gets the prices of the others instead, and an assignment of its own
   (`range_prices.price_few`);
4. then the master program, whose prices are the best there are, and a dive for an assignment;
5. then a tree of placements, which goes on whenever the envelope is the cheapest again.

It ends when no open range is below the best assignment. Which step is due for a range is its state (`open_ranges`), and
what raises a bound is written down. All bounds are exact integers. The search can be stopped and
taken up again between any two of these steps, and within the longest: the master program, the dive and the trees.
"""

from lbopt.kernels.compile import kernel
from lbopt.kernels.deadline import used_up
from lbopt.kernels.search.exchange import with_few_slots
from lbopt.kernels.search.fill import try_even_start
from lbopt.kernels.search.open_ranges import (
    ANY_PRICES,
    BRANCH,
    FRESH,
    HALVE,
    MASTER,
    SPARSE,
    cheapest,
    close_in,
    narrow,
    push,
    reached,
    restart,
)
from lbopt.kernels.search.placement_tree import ENDED, NO_ROOM, SPLIT, drop_tree, try_tree
from lbopt.kernels.search.range_prices import best_prices, first_prices, look_again, price_by_few
from lbopt.kernels.search.state import CLOSED, FULL, IDLE, OPEN, PROVED, Masters, Search, Step

#: Nodes of a tree of placements, at the first level.
BRANCHED = 40

#: Levels from which limits grow no further.
LEVELS = 18

#: Even starts in a row that led to nothing, after which they are left alone.
UNEVEN = 3


@kernel
def advance(step: Step, search: Search, masters: Masters, budget: int) -> int:
    """Search until everything is closed or `budget` is spent (units of about 1 microsecond).

    Returns PROVED, OPEN (more budget may help) or FULL (more room would help). Beyond the deadline in search.known it
    returns OPEN, and cannot be taken up again.
    """
    ranges, known = search.ranges, search.known
    known.stop = known.work + budget
    few = with_few_slots(step)
    while True:
        i = _left_off(search, masters)
        pending = i >= 0
        if not pending:
            i = cheapest(search)
            if i < 0 or ranges[i].bound >= known.cost:
                known.bound = known.cost
                return PROVED
            known.bound = known.aim = ranges[i].bound
        if known.work >= known.stop or used_up(known):
            known.bound = min(ranges[cheapest(search)].bound, known.cost)
            return OPEN
        if not pending:
            if _settled_at_a_look(step, search, i):
                continue
            if ranges[i].first < ranges[i].last and (ranges[i].state == HALVE or not narrow(step, search, i)):
                if not _halve(search, masters, i):
                    return FULL
                continue
        if not _work_on(step, search, masters, i, few):
            return FULL


@kernel
def _left_off(search: Search, masters: Masters) -> int:
    """Return the range whose tree or pricing was left in the middle; -1 for none."""
    if masters.tree.state.left > 0:
        return masters.tree.state.range
    return search.pricing.range if search.pricing.phase != IDLE else -1


@kernel
def _settled_at_a_look(step: Step, search: Search, i: int) -> bool:
    """Cut from range i what cannot be better, or bound it at the newest prices; False where neither is due."""
    this, known, W = search.ranges[i], search.known, step.load.size
    if step.least == step.most:  # beyond, no assignment is better than the best one
        last = (known.cost - 1 + step.total + step.most) // step.workers
        if last < this.last:
            this.last = this.beyond = last
        if this.last < this.first:
            close_in(this, CLOSED, ANY_PRICES)
            return True
    single = this.first == this.last
    if single and this.state <= MASTER and known.strayed >= known.astray:
        known.strayed = 0
        known.astray *= 2
        this.times = known.patience + 1
    if this.priced < known.newest and (not single or this.times <= known.patience):
        look_again(step, search, i)
        return True
    if step.v[step.v.size - 1] > SPARSE and this.state == FRESH:
        last = reached(step, search, this.last)
        if last < this.last:  # no worker can have a load beyond
            known.work += 5 + W // 3
            this.last, this.priced = last, 0
            if last < this.first:
                close_in(this, CLOSED, ANY_PRICES)
            return True
    return False


@kernel
def _halve(search: Search, masters: Masters, i: int) -> bool:
    """Halve range i, both halves of which are fresh; False where there is no room for another range."""
    this, ranges = search.ranges[i], search.ranges
    search.known.work += 1
    other = push(search, this, (this.first + this.last) // 2 + 1)
    if other < 0:
        return False
    if this.planted == 1:
        drop_tree(masters.tree, i)
    restart(this)
    this.priced = 0
    if ranges[other].first == ranges[other].last:  # the bound was a rough one; alone, it is worth a better one
        ranges[other].priced = 0
    return True


@kernel
def _work_on(step: Step, search: Search, masters: Masters, i: int, few: int) -> bool:
    """Do what is due in the state of range i; False where there is no room for another node."""
    this, known = search.ranges[i], search.known
    if this.state == HALVE:  # a single envelope is left of it
        drop_tree(masters.tree, i)
        restart(this)
    elif this.state == FRESH:
        this.state = MASTER
        if known.newest == 0:  # later on, prices from another envelope are a better start
            first_prices(step, search, i)
        if this.bound < known.cost and known.uneven < UNEVEN:
            known.uneven = 0 if try_even_start(step, search, i) else known.uneven + 1
        if few >= 0 and this.bound < known.cost and step.v[step.v.size - 1] <= SPARSE:
            price_by_few(step, search, masters, i, few)
    elif this.state == MASTER:
        if best_prices(step, search, masters, i):
            split = this.first < this.last and (step.least == step.most or _holds_another(step, search, i))
            this.state = HALVE if split else BRANCH
    else:
        return _take_branches(step, search, masters, i)
    return True


@kernel
def _take_branches(step: Step, search: Search, masters: Masters, i: int) -> bool:
    """Grow the tree of range i, which goes on where it was left; False where there is no room for it."""
    this = search.ranges[i]
    ending = try_tree(step, search, masters, i, BRANCHED << this.level)
    if ending == NO_ROOM:
        return False
    if ending == SPLIT:
        this.state, this.level = HALVE, 0
    elif ending == ENDED:
        this.level = min(this.level + 1, LEVELS)
    return True


@kernel
def _holds_another(step: Step, search: Search, i: int) -> bool:
    """Whether an assignment found for range i admits what its bound asks for, though its cost is no better."""
    found, this = search.pricing, search.ranges[i]
    return found.top > step.workers * this.first - step.total - search.known.cost
