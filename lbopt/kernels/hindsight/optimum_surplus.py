"""The sets of one worker whose priced surplus is least: the exhaustive step of the surplus bound.

A set of requests that one worker can run shows x tokens in a window, against a floor that no barrier of the window is
below. It costs ``above`` for each token over the floor and ``below`` for each token under it, summed over the windows,
less the prices of its requests. `lbopt.hindsight.search_surplus` says which weights make the least of these costs a
bound on whole placements, and raises the prices until it is a good one.

Sets are built request by request in the order of the starts, as in `optimum_lists`, with the same account of what a
worker has to hold. The cost of the windows passed never falls, so a beginning is dropped once it is over the budget
even with the largest prices that can follow. A list that is full drops the half of its sets that cost most and goes on
with a smaller budget.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from lbopt.kernels.arrays import Ints, Record, integers
from lbopt.kernels.by_reference import by_reference
from lbopt.kernels.compile import kernel
from lbopt.kernels.deadline import passed
from lbopt.kernels.hindsight.optimum_lists import DONE, LATE, Starts, Words, fits, put

Cube = NDArray[np.int64]

#: The price of a request that belongs to no set: with it only a part of all sets is looked at.
BANNED = -(1 << 60)

PRICED = integers(
    "budget",  # sets that cost more are not listed; falls where the list is full
    "sets",  # sets found
    "nodes",  # decisions tried
    "deadline",
)


@by_reference
class Prices(NamedTuple):
    """What sets cost, in whole parts of a token."""

    price: Ints  # (N,) a set's cost falls by it where the request belongs to the set; or `BANNED`
    fill: Ints  # (n + 1, B + 1) largest sum of so many prices of the first n requests to start, from each on
    later: Ints  # (E + 1,) largest sum of prices of requests that start in this starting step or later
    above: Ints  # (C,) for each token over the floor
    below: Ints  # (C,) for each token under it


@by_reference
class Outlook(NamedTuple):
    """What requests lead to, in groups of windows of equal weights: bounds on the tokens of those that follow them."""

    own_low: Ints  # (N, R) least tokens that a request and those after it in its slot show in each group
    own_high: Ints  # (N, R) most
    next_low: Ints  # (N, R) the same without the request itself
    next_high: Ints  # (N, R)
    fill_low: Cube  # (n + 1, B + 1, R) least sum of so many of `own_low` of the first n requests to start, from each on
    fill_high: Cube  # (n + 1, B + 1, R) largest sum of so many of `own_high`
    floor: Ints  # (R,) floors of the group
    above: Ints  # (R,) for each token over the floor
    below: Ints  # (R,) for each token under it
    ahead: Ints  # (E + 1,) first group that begins with or after each starting step; R for the last


@by_reference
class Found(NamedTuple):
    """The cheapest sets."""

    mask: Words  # (., words) request i is bit i % 64 of word i // 64
    cost: Ints  # (.,)


@kernel
def _windows(starts: Starts, prices: Prices, load: Ints, low: int, high: int) -> int:
    """Return what windows [low, high) cost with these loads.

    Parameters
    ----------
    starts, prices
        As declared.
    load
        int64, (C,): tokens of the worker in each window.
    low, high
        First window, and the one after the last.
    """
    total = 0
    for c in range(low, high):
        over = load[c] - starts.floor[c]
        total += prices.above[c] * over if over > 0 else -prices.below[c] * over
    return total


@kernel
def _to_come(outlook: Outlook, low: Ints, high: Ints, group: int) -> int:
    """Return what the groups from `group` on cost at least.

    Parameters
    ----------
    outlook
        As declared.
    low, high
        int64, (R,): bounds on the tokens of the worker in each group.
    group
        The first group that counts.
    """
    total = 0
    for r in range(group, low.size):
        over, under = low[r] - outlook.floor[r], outlook.floor[r] - high[r]
        if over > 0:
            total += outlook.above[r] * over
        elif under > 0:
            total += outlook.below[r] * under
    return total


@kernel
def _filled(prices: Prices, outlook: Outlook, low: Ints, high: Ints, i: int, fewest: int, most: int) -> int:
    """Return what a beginning costs at least from here on, if some of the first requests from `i` on come to it.

    Parameters
    ----------
    prices, outlook
        As declared.
    low, high
        int64, (R,): bounds on the tokens of the worker in each group, without these requests.
    i
        The first request that is not decided.
    fewest, most
        How many of these are chosen.
    """
    price = prices.fill[i, fewest]
    for m in range(fewest + 1, most + 1):
        price = max(price, prices.fill[i, m])
    total = -price
    for r in range(low.size):
        over = low[r] + outlook.fill_low[i, fewest, r] - outlook.floor[r]
        if over > 0:
            total += outlook.above[r] * over
        else:
            under = outlook.floor[r] - high[r] - outlook.fill_high[i, most, r]
            if under > 0:
                total += outlook.below[r] * under
    return total


@kernel
def _lead(low: Ints, high: Ints, more_low: Ints, more_high: Ints, sign: int) -> None:
    """Add what a request leads to, or take it away.

    Parameters
    ----------
    low, high
        int64, (R,): changed.
    more_low, more_high
        int64, (R,): added.
    sign
        1 or -1.
    """
    for r in range(low.size):
        low[r] += sign * more_low[r]
        high[r] += sign * more_high[r]


@kernel
def _hand_over(starts: Starts, outlook: Outlook, chosen: Ints, low: Ints, high: Ints, wave: int, sign: int) -> None:
    """Take away what the requests lead to that end as a step begins, or add it again.

    Parameters
    ----------
    starts, outlook
        As declared.
    chosen
        int64, (N + 1,): 1 where the request belongs to the set.
    low, high
        int64, (R,): changed.
    wave
        Number of the starting step.
    sign
        -1 or 1.
    """
    for e in range(starts.heirs_from[wave], starts.ended_from[wave + 1]):
        i = starts.ended[e]
        if chosen[i] == 1:
            _lead(low, high, outlook.next_low[i], outlook.next_high[i], sign)


@kernel
def _shrink(found: Found, state: Record) -> None:
    """Drop the half of the sets that cost most, and lower the budget to what is left."""
    limit = np.sort(found.cost[: state.sets])[state.sets // 2]
    kept = 0
    for row in range(state.sets):
        if found.cost[row] < limit:
            found.cost[kept] = found.cost[row]
            found.mask[kept] = found.mask[row]
            kept += 1
    found.mask[kept : state.sets] = np.uint64(0)
    state.sets = kept
    state.budget = limit - 1


@kernel
def _keep(found: Found, state: Record, chosen: Ints, cost: int) -> None:
    """Write a set down.

    Parameters
    ----------
    found
        The list, changed.
    state
        `PRICED`; ``sets`` is changed, and ``budget`` where the list is full.
    chosen
        int64, (N,): 1 where the request belongs to the set.
    cost
        What it costs.
    """
    if state.sets == found.cost.size:
        _shrink(found, state)
        if cost > state.budget:
            return
    row = state.sets
    state.sets += 1
    found.cost[row] = cost
    for i in range(chosen.size):
        if chosen[i] == 1:
            found.mask[row, i >> 6] |= np.uint64(1) << np.uint64(i & 63)


@kernel
def cheapest_sets(starts: Starts, prices: Prices, outlook: Outlook, found: Found, state: Record) -> int:
    """List the cheapest sets of a worker within the budget; return `DONE` or `LATE`.

    Parameters
    ----------
    starts
        The timetable, no request being left open.
    prices
        What sets cost.
    outlook
        What requests lead to.
    found
        Changed; rows of `mask` are zeros at first, and there is more than one.
    state
        `PRICED`; ``sets`` and ``nodes`` are 0 at first and are changed, ``budget`` where the list is full. After `DONE`
        every set that is not listed costs more than the budget.
    """
    requests = starts.wave.size
    load = np.zeros(starts.total.size, np.int64)
    low, high = np.zeros(outlook.floor.size, np.int64), np.zeros(outlook.floor.size, np.int64)
    chosen = np.full(requests + 1, -1, np.int64)  # -1 not decided yet, 1 in the set, 0 not
    held = np.zeros(requests + 1, np.int64)  # before each decision
    spent = np.zeros(requests + 1, np.int64)  # cost before each decision
    i = 0
    while i >= 0:
        state.nodes += 1
        if state.nodes & 4095 == 0 and passed(state.deadline):
            return LATE
        if i == requests:
            if spent[i] <= state.budget:
                _keep(found, state, chosen[:requests], spent[i])
            i -= 1
            continue
        wave = starts.wave[i]
        left = starts.begin[wave + 1] - i - 1
        if chosen[i] == -1:
            if i == starts.begin[wave] and i > 0:
                for e in range(starts.ended_from[wave], starts.ended_from[wave + 1]):
                    held[i] -= chosen[starts.ended[e]]
                _hand_over(starts, outlook, chosen, low, high, wave, -1)
            chosen[i] = 1
            now = held[i] + 1
            if now > starts.most[wave] or prices.price[i] == BANNED:  # there is no room for it
                chosen[i] = 0
                now -= 1
            else:
                put(starts, load, i, 1)
                _lead(low, high, outlook.own_low[i], outlook.own_high[i], 1)
        elif chosen[i] == 1:
            chosen[i] = 0
            put(starts, load, i, -1)
            _lead(low, high, outlook.own_low[i], outlook.own_high[i], -1)
            now = held[i]
        else:
            chosen[i] = -1
            if i == starts.begin[wave] and i > 0:
                _hand_over(starts, outlook, chosen, low, high, wave, 1)
            i -= 1
            continue
        if now + left < starts.least[wave]:
            continue
        cost = spent[i]
        if chosen[i] == 1:
            cost -= prices.price[i]
        if left == 0:
            if not fits(starts, chosen, wave):
                continue
            cost += _windows(starts, prices, load, starts.window[wave], starts.window[wave + 1])
            least = cost - prices.later[wave + 1]
            if least > state.budget or least + _to_come(outlook, low, high, outlook.ahead[wave + 1]) > state.budget:
                continue
        elif wave == 0:
            fewest, most = max(0, starts.least[wave] - now), min(left, starts.most[wave] - now)
            if cost + _filled(prices, outlook, low, high, i + 1, fewest, most) - prices.later[wave + 1] > state.budget:
                continue
        i += 1
        held[i], spent[i] = now, cost
    return DONE
