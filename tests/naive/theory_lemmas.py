"""Lemmas 1 to 4 of BF-IO by loops and exact integers: optima by plain enumeration, the chain by its definition."""

import math
from collections.abc import Iterator, Sequence
from itertools import combinations_with_replacement, product

from naive.objective import imbalance

_MASK = (1 << 64) - 1


def placements(
    before: Sequence[int], free: Sequence[int], sizes: Sequence[int], copies: Sequence[int]
) -> Iterator[tuple[tuple[int, ...], ...]]:
    """Every way to fill all free slots: for each worker the multiset of sizes it gets, no size more often than there
    are copies (bf_io.md section 2, (IO) at H = 0 with a pool of at least U)."""
    each = [list(combinations_with_replacement(sizes, slots)) for slots in free]
    for chosen in product(*each):
        given = [size for multiset in chosen for size in multiset]
        if all(given.count(size) <= number for size, number in zip(sizes, copies, strict=True)):
            yield chosen


def loads_of(before: Sequence[int], chosen: Sequence[Sequence[int]]) -> list[int]:
    return [load + sum(multiset) for load, multiset in zip(before, chosen, strict=True)]


def all_optima(
    before: Sequence[int], free: Sequence[int], sizes: Sequence[int], copies: Sequence[int]
) -> tuple[int, set[tuple[tuple[int, ...], ...]]]:
    """The least imbalance, and every placement that has it."""
    best, found = None, set()
    for chosen in placements(before, free, sizes, copies):
        cost = imbalance(loads_of(before, chosen))
        if best is None or cost < best:
            best, found = cost, set()
        if cost == best:
            found.add(chosen)
    assert best is not None
    return int(best), found


def word(start: int, n: int) -> int:
    """SplitMix64 (Steele, Lea and Flood 2014): output n + 1 of a generator in state `start`."""
    z = (start + (n + 1) * 0x9E3779B97F4A7C15) & _MASK
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & _MASK
    return z ^ (z >> 31)


def lifetime(drawn: int, log_keep: float) -> int:
    return 1 + int(math.log(((drawn >> 11) + 0.5) * 2.0**-53) / log_keep)


def split(total: int, slots: int, sizes: Sequence[int], extreme: bool) -> list[int]:
    """Sizes, in equal steps and largest first, of `slots` requests that sum to `total`: with as many of the largest
    as there can be, then of the second (extreme), or so that they differ by one step at most."""
    step = sizes[1] - sizes[0]
    made = [chosen for chosen in combinations_with_replacement(sizes[::-1], slots) if sum(chosen) == total]
    if not extreme:
        made = [chosen for chosen in made if not chosen or chosen[0] - chosen[-1] <= step]
    return list(max(made))


def replete_chain(
    streams: Sequence[Sequence[int]],
    log_keep: float,
    growth: Sequence[int],
    sizes: Sequence[int],
    extreme: bool,
    steps: int,
) -> list[dict[str, float]]:
    """Growth, ends, admission of an optimum of least peak, reading, from step 0 with all slots empty (bf_io.md
    section 1); the optimum by trying every peak."""
    G, B = len(streams), len(streams[0])
    slots: list[list[tuple[int, int] | None]] = [[None] * B for _ in range(G)]
    ordinal = [[0] * B for _ in range(G)]
    after = [0] * G
    rows = []
    for k in range(steps):
        row: dict[str, float] = {"gap_before": max(after) - min(after), "largest": 0, "square": 0.0, "heaviest": 0}
        for g in range(G):
            squares = 0
            for b in range(B):
                one = slots[g][b]
                size = growth[k % len(growth)] + (one[0] if one else 0)
                row["largest"] = max(row["largest"], size)
                row["square"] += size * size / (G * B)
                squares += size * size
                slots[g][b] = (size, one[1]) if one and one[1] > k else None
            row["heaviest"] = max(row["heaviest"], squares)
        before = [sum(one[0] for one in worker if one) for worker in slots]
        free = [sum(one is None for one in worker) for worker in slots]
        reachable = [
            {load + sum(chosen) for chosen in combinations_with_replacement(sizes, count)}
            for load, count in zip(before, free, strict=True)
        ]
        lowest = max(min(sums) for sums in reachable)
        highest = max(max(sums) for sums in reachable)
        options = []
        for peak in range(lowest, highest + 1):
            loads = [max(load for load in sums if load <= peak) for sums in reachable]
            options.append((imbalance(loads), max(loads), loads))
        cost, _, after = min(options)
        row |= {
            "gap_pre": max(before) - min(before),
            "gap": max(after) - min(after),
            "fewest": min(free),
            "most": max(free),
            "imbalance": cost,
            "admitted": sum(free),
            "admitted_tokens": sum(after) - sum(before),
        }
        for g in range(G):
            new = split(after[g] - before[g], free[g], sizes, extreme)
            for b in range(B):
                if slots[g][b] is None:
                    lasts = lifetime(word(streams[g][b], 2 * ordinal[g][b]), log_keep)
                    slots[g][b] = (new.pop(0), k + lasts)
                    ordinal[g][b] += 1
        rows.append(row)
    return rows


def is_replete(step):
    """Whether at least two sizes are present, each with as many copies as there are free slots, or more."""
    return len(step.sizes) >= 2 and min(step.copies) >= sum(step.free)


def has_two_replete(step):
    """Whether the largest size and one other have as many copies as there are free slots, or more."""
    slots = sum(step.free)
    return len(step.sizes) >= 2 and step.copies[-1] >= slots and max(step.copies[:-1]) >= slots


def is_overloaded(step):
    """Definition 1: without the commonest size, still as many requests as free slots."""
    return sum(step.copies) - max(step.copies) >= sum(step.free)
