"""A dive for a decision: patterns that the restricted program holds nearly whole are fixed, the rest is priced anew.

Every step fixes all such patterns, or the one of the largest share where there is none, offers what is filled around
them, and solves the master program of what is left. It ends where all workers are settled, or where the bound says that
nothing better can follow. Source: diving heuristics of branch and price.
"""

from lbopt.kernels.compile import kernel
from lbopt.kernels.conditions.bounds import clear_path, place
from lbopt.kernels.conditions.columns import solve_prices
from lbopt.kernels.conditions.fill import fill
from lbopt.kernels.conditions.state import NONE, Search, Step
from lbopt.kernels.deadline import used_up
from lbopt.kernels.search.state import Master

#: Shares that count as whole, and rounds of column generation after each step.
_WHOLE, _ROUNDS = 0.9, 12


@kernel
def dive(step: Step, s: Search, m: Master, first: int, M: int) -> None:
    """Look for a decision within envelope M that is better than the best one; the master program is that of M."""
    known, path = s.known, s.path
    clear_path(step, path)
    for _ in range(step.slots.size):
        most, chosen = 0.0, -1
        for b in range(m.counts.tight):
            j = m.basic[b]
            if j < m.counts.workers or m.value[j] != m.worth[j] or path.placed[m.owner[j]] > 0:
                continue
            if m.level[b] > _WHOLE:
                _fix(step, s, m, j)
            elif m.level[b] > most:
                most, chosen = m.level[b], j
        if chosen >= 0 and path.placed[m.owner[chosen]] == 0:
            _fix(step, s, m, chosen)
        settled = True
        for w in range(step.slots.size):
            settled = settled and path.placed[w] == step.slots[w]
        need = step.workers * first - step.total - known.cost + 1
        total = solve_prices(step, s, m, M, need, _ROUNDS, 0, True)
        if total == NONE or total // step.scale < need or used_up(known):
            break
        fill(step, s, m, M, s.best_price, True)
        if settled:
            break
    clear_path(step, path)


@kernel
def _fix(step: Step, s: Search, m: Master, j: int) -> None:
    """Place the requests of column j on its worker, unless some are gone."""
    w, q = m.owner[j], step.slots[m.owner[j]]
    for i in range(q):
        if s.path.left[m.items[j, i]] <= 0:
            for e in range(i):
                s.path.left[m.items[j, e]] += 1
            return
        s.path.left[m.items[j, i]] -= 1
    for i in range(q):
        s.path.left[m.items[j, i]] += 1
    for i in range(q):
        place(step, s.path, m.items[j, i], w)
