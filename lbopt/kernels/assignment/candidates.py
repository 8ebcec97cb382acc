"""The cheapest centres of each point under prices, of which few are kept: a block of rows at a time."""

from lbopt.kernels.arrays import Ints
from lbopt.kernels.assignment.state import FORBIDDEN, INFINITY, ShortInts
from lbopt.kernels.compile import kernel


@kernel
def keep_cheapest(costs: Ints, price: Ints, centre: ShortInts, cost: Ints, count: Ints) -> None:
    """Write the cheapest allowed centres of each row under prices, cheapest first, and their costs.

    Parameters
    ----------
    costs
        int64 (n, K), FORBIDDEN where a pair must not be used.
    price
        int64 (K,), in units of the costs.
    centre, cost
        int32 and int64 (n, m), written: m centres at most of each row, and what they cost without their prices.
    count
        int64 (n,), written: how many they are.
    """
    most = centre.shape[1]
    for i in range(costs.shape[0]):
        row, near, paid = costs[i], centre[i], cost[i]
        held, last = 0, INFINITY
        for k in range(row.size):
            if row[k] == FORBIDDEN or (held == most and row[k] + price[k] >= last):
                continue
            priced = row[k] + price[k]
            at = held if held < most else most - 1
            while at > 0 and paid[at - 1] + price[near[at - 1]] > priced:
                near[at], paid[at] = near[at - 1], paid[at - 1]
                at -= 1
            near[at], paid[at] = k, row[k]
            held = min(held + 1, most)
            last = paid[held - 1] + price[near[held - 1]]
        count[i] = held


@kernel
def cheaper_elsewhere(costs: Ints, price: Ints, labels: Ints, centre: ShortInts) -> int:
    """Write the cheapest centre of each row that is cheaper than its own, -1 where none is; return how many are.

    Parameters
    ----------
    costs
        int64 (n, K), FORBIDDEN where a pair must not be used.
    price
        int64 (K,), in units of the costs.
    labels
        int64 (n,), where each point is.
    centre
        int32 (n,), written.
    """
    found = 0
    for i in range(costs.shape[0]):
        row = costs[i]
        least, at = row[labels[i]] + price[labels[i]], -1
        for k in range(row.size):
            if row[k] != FORBIDDEN and row[k] + price[k] < least:
                least, at = row[k] + price[k], k
        centre[i] = at
        found += 1 if at >= 0 else 0
    return found
