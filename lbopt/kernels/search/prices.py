"""Prices of size classes and the bound they prove.

Any prices lambda_k (1/scale tokens for one request of class k), not negative where a request need not be admitted,
bound the tokens T that a fleet can admit while no load exceeds the envelope M:

    scale * T  <=  sum_k n_k lambda_k + sum_w max { sum of (scale v_k - lambda_k) over a pattern of worker w }.

The right side is evaluated in integers, so the bound is exact whatever the prices came from.
Source: Lagrangian bound of BF-IO (IO) at H = 0 with the rows "a request is admitted at most once" relaxed.
"""

from lbopt.kernels.compile import kernel
from lbopt.kernels.deadline import used_up
from lbopt.kernels.search.exact_profits import settle
from lbopt.kernels.search.pattern import BRANCHES, SCAN, best_pattern, last_fitting
from lbopt.kernels.search.state import EXACT, GLANCE, NONE, QUICK, ROUGH, Search, Step
from lbopt.kernels.search.tables import listed_choices, make_list, prepare, relax


@kernel
def evaluate(step: Step, search: Search, M: int, effort: int) -> int:
    """Return scale times the bound on the admitted tokens at envelope M and search.price; NONE where nothing fits.

    Sets value[w], pattern[w, :slots[w]] (best pattern found) and bound[w] (what no pattern of worker w exceeds). An
    effort of GLANCE does not look for patterns of three and more requests, ROUGH looks briefly, QUICK leaves some of
    their bounds above their values; EXACT does not, as long as memory lasts. Beyond the deadline all that is left is a
    glance, whose bounds hold too.
    """
    load, slots, sums, scale = step.load, step.slots, step.sums, step.scale
    value, bound, pattern = search.value, search.bound, search.pattern
    total, lowest = prepare(step, search)
    first = 0
    while first < load.size:  # a group of workers with equally many slots
        c = slots[first]
        last = first
        while last < load.size and slots[last] == c:
            last += 1
        make_list(step, search, c)
        choices, classes, ceiling = listed_choices(step, search, c, 0), search.list_class[c], search.lists[c].ceiling
        limit = SCAN * 8 if c <= 4 else SCAN * 60 if c <= 6 else BRANCHES
        loose = 0
        for w in range(first, last):
            margin = M - load[w]
            full = scale * margin - c * lowest
            if c == 1 and 0 <= sums[c] <= margin:  # -1: none is left
                k = choices.best[last_fitting(choices.v, margin)]
                value[w] = bound[w] = choices.p[k]
                pattern[w, 0] = k
                continue
            if c > 2 and margin >= sums[c] and (effort == GLANCE or used_up(search.known)):
                value[w], bound[w] = NONE, min(full, ceiling)
                continue
            value[w], bound[w] = best_pattern(choices, c, margin, full, ceiling, limit, pattern[w])
            if bound[w] == NONE:
                return NONE
            if value[w] < bound[w]:
                loose += 1
        if loose > 0 and effort >= QUICK and not used_up(search.known):
            loose = relax(step, search, M, lowest, c, first, last, effort)
        if loose > 0 and effort == EXACT and not used_up(search.known):
            settle(step, search, M, c, first, last)
        for w in range(first, last):
            for q in range(c):  # nothing may have been found before the search for it gave up
                pattern[w, q] = classes[pattern[w, q]] if value[w] > NONE else -1
            total += bound[w]
        first = last
    return total


@kernel
def threshold_prices(step: Step, search: Search, M: int) -> int:
    """Find good prices of the form max(0, size - threshold), leave them in search.best_price, return their bound.

    At a threshold the slope of the bound is (requests of at least the threshold that the patterns use) - (those that
    there are), so that bisection over the classes needs one evaluation a step. The bound may have several valleys:
    where many slots are free, requests of every size are scarce at a low threshold, and none is where nothing costs
    anything. So that is looked at first.
    """
    v, n, floor, slots = step.v, step.n, step.floor, step.slots
    price, best_price, pattern = search.price, search.best_price, search.pattern
    scale = step.scale
    low, high = 0, v.size
    for k in range(v.size):
        price[k] = best_price[k] = floor[k]
    lowest = evaluate(step, search, M, ROUGH)
    if lowest == NONE:
        return NONE
    while True:
        middle = (low + high + 1) >> 1
        threshold = v[middle] if middle < v.size else v[v.size - 1] + 1
        above = 0
        for k in range(v.size):
            price[k] = scale * max(0, v[k] - threshold) + floor[k]
            if v[k] >= threshold:
                above += n[k]
        total = evaluate(step, search, M, ROUGH)
        if total < lowest or total == NONE:
            lowest = total
            for k in range(v.size):
                best_price[k] = price[k]
        if total == NONE or low >= high or used_up(search.known):
            break
        used = 0
        for w in range(slots.size):
            for q in range(slots[w]):
                if pattern[w, q] >= 0 and v[pattern[w, q]] >= threshold:
                    used += 1
        if used > above:
            high = middle - 1
        else:
            low = middle
            if middle == high:
                break
    if lowest != NONE:
        for k in range(v.size):
            price[k] = best_price[k]
        lowest = evaluate(step, search, M, QUICK)
    return lowest
