"""The least imbalance of a step problem from its definition alone: all subsets of the requests, worker after worker.

Requests are the bits of a number. A state is the set of requests that are placed so far; what it remembers are the
largest loads M_h reached on the way. The imbalance of an assignment is

    sum_h [ G M_h - sum_g L_g(h) ] = G sum_h M_h - (all loads before) - (work of the placed requests),

where the last two terms depend on the set alone. So of two ways to place one set, the one whose M_h are all as low is
at least as good whatever follows, and the others are forgotten. Python integers, nothing of lbopt.
"""

Rows = list[list[int]]


def least_imbalance(base: Rows, slots: list[int], work: Rows, must: list[bool]) -> int:
    """The optimum.

    Parameters
    ----------
    base
        Load of each worker at each step before, tokens.
    slots
        Free slots of each worker.
    work
        Load of each request at each step, tokens.
    must
        Whether a request has to be admitted.
    """
    problem = _Sets(base, slots, work, must)
    peaks = {0: [tuple(map(max, zip(*base, strict=True)))]}
    for g in problem.open:
        following: dict[int, list[tuple[int, ...]]] = {}
        for placed, reached in peaks.items():
            for more in problem.subsets(g, placed):
                load = problem.load(g, more)
                kept = following.setdefault(placed | more, [])
                for peak in reached:
                    _keep(kept, tuple(map(max, peak, load)))
        peaks = following
    return min(problem.imbalance(placed, peak) for placed in problem.complete(peaks) for peak in peaks[placed])


def most_even_loads(base: Rows, slots: list[int], work: Rows, must: list[bool], least: int) -> list[int]:
    """All loads, largest first, of the assignment of imbalance `least` for which this list is lexicographically least.

    A state remembers the least list for each vector of largest loads: with the same loads added to both, the smaller of
    two lists stays the smaller.

    Parameters
    ----------
    base, slots, work, must
        As above.
    least
        The optimum.
    """
    problem = _Sets(base, slots, work, must)
    closed = sorted((load for g, row in enumerate(base) if not slots[g] for load in row), reverse=True)
    states = {(0, tuple(map(max, zip(*base, strict=True)))): closed}
    heaviest = sum(sorted(map(sum, work), reverse=True)[: problem.admitted])
    for g in problem.open:
        following: dict[tuple[int, tuple[int, ...]], list[int]] = {}
        for (placed, peak), loads in states.items():
            for more in problem.subsets(g, placed):
                load = problem.load(g, more)
                higher = tuple(map(max, peak, load))
                if len(base) * sum(higher) - problem.before - heaviest > least:
                    continue  # no longer among the optima
                longer = sorted([*loads, *load], reverse=True)
                state = (placed | more, higher)
                if state not in following or longer < following[state]:
                    following[state] = longer
        states = following
    complete = set(problem.complete({placed: None for placed, _ in states}))
    return min(
        loads
        for (placed, peak), loads in states.items()
        if placed in complete and problem.imbalance(placed, peak) == least
    )


class _Sets:
    """What is asked of sets of requests."""

    def __init__(self, base: Rows, slots: list[int], work: Rows, must: list[bool]) -> None:
        self.base, self.slots, self.workers = base, slots, len(base)
        self.admitted = min(len(work), sum(slots))
        self.forced = sum(1 << i for i, flag in enumerate(must) if flag)
        self.open = [g for g, free in enumerate(slots) if free]
        self.before = sum(map(sum, base))
        self.everything = (1 << len(work)) - 1
        self.work = [tuple([0] * len(base[0]))]  # of each set
        for row in work:
            self.work += [tuple(a + b for a, b in zip(held, row, strict=True)) for held in self.work]
        self.total = list(map(sum, self.work))

    def subsets(self, g: int, placed: int):
        """Yield what worker g may take besides the placed ones, if the workers after it can complete it."""
        others = sum(self.slots[other] for other in self.open if other > g)
        least = self.admitted - placed.bit_count() - others
        left = self.everything & ~placed
        most = min(self.slots[g], self.admitted - placed.bit_count())
        more = left
        while True:
            if least <= more.bit_count() <= most:
                yield more
            if not more:
                return
            more = (more - 1) & left

    def load(self, g: int, more: int) -> tuple[int, ...]:
        """Loads of worker g with these requests."""
        return tuple(a + b for a, b in zip(self.base[g], self.work[more], strict=True))

    def complete(self, states) -> list[int]:
        """The sets that admit as many as have to be admitted, and all that must be."""
        return [
            placed for placed in states if placed.bit_count() == self.admitted and placed & self.forced == self.forced
        ]

    def imbalance(self, placed: int, peak: tuple[int, ...]) -> int:
        """The objective."""
        return self.workers * sum(peak) - self.before - self.total[placed]


def _keep(kept: list[tuple[int, ...]], peak: tuple[int, ...]) -> None:
    """Add a vector unless another is as low everywhere, and forget those that it is as low as."""
    if any(all(a <= b for a, b in zip(other, peak, strict=True)) for other in kept):
        return
    kept[:] = [other for other in kept if not all(a <= b for a, b in zip(peak, other, strict=True))]
    kept.append(peak)
