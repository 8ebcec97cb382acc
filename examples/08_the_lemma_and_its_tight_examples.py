# ---
# jupyter:
#   jupytext:
#     formats: ipynb,py:percent
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # The lemma, with its smallest tight examples
#
# Lemma 2 of BF-IO (arXiv 2601.17855) says how far the loads of workers can be apart after an optimal step. It is false
# as printed (notebook *A lemma refuted*). This notebook is about the form that holds under the paper's own hypothesis:
# what it says, why it is true, on a picture, the smallest steps that attain it, and what breaks without each
# hypothesis. Everything is enumerated in plain Python: no step here has more than a few hundred placements.
#
# ## The statement
#
# Workers `g` have loads `P` before admission and `c` free slots. A pool of requests waits, with sizes of whole tokens;
# `s` is the largest. A step fills all free slots, `U` of them, and it is *optimal* if its imbalance, `G` times the
# largest load minus the sum of the loads, is least. `D` is the largest minus the smallest load after the step, `D_pre`
# the same before it.
#
# * The pool is *overloaded* (Definition 1 of the paper) if, for every size, at least `U` requests are not of that
#   size.
# * A *leximax* optimum is one whose loads, sorted from the largest down, are lexicographically least among the optima.
#
# > **Lemma 2 under Definition 1.** If `s >= 2` and the pool is overloaded, every leximax optimum has `D <= (s - 2) +
# > max(0, D_pre - (s * min(c) - (s - 1) * max(c)))`.

# %%
from itertools import chain, combinations_with_replacement, product

import matplotlib.pyplot as plt

plt.rcParams.update({"figure.figsize": (7.2, 3.2), "axes.grid": True, "axes.axisbelow": True, "grid.alpha": 0.25})


def bound(loads, slots, pool):
    s = max(pool)
    return s - 2 + max(0, max(loads) - min(loads) - (s * min(slots) - (s - 1) * max(slots)))


def overloaded(slots, pool):
    return len(pool) - max(pool.count(size) for size in pool) >= sum(slots)


def placements(slots, pool):
    """Every way to fill all free slots: for each worker the sizes that it is given, ascending."""
    if not slots:
        yield ()
        return
    for given in sorted(set(combinations_of(tuple(sorted(pool)), slots[0]))):
        left = list(pool)
        for size in given:
            left.remove(size)
        for others in placements(slots[1:], left):
            yield (given, *others)


def combinations_of(pool, number):
    """All choices of so many of the requests, ascending; equal choices come more than once."""
    if number == 0:
        return [()]
    return [(pool[i], *rest) for i in range(len(pool)) for rest in combinations_of(pool[i + 1 :], number - 1)]


def after(loads, placement):
    return tuple(load + sum(given) for load, given in zip(loads, placement, strict=True))


def imbalance(loads):
    return len(loads) * max(loads) - sum(loads)


def gap(loads):
    return max(loads) - min(loads)


def optima(loads, slots, pool):
    found = list(placements(slots, pool))
    least = min(imbalance(after(loads, one)) for one in found)
    return [one for one in found if imbalance(after(loads, one)) == least]


def leximax(loads, slots, pool):
    best = optima(loads, slots, pool)
    first = min(sorted(after(loads, one), reverse=True) for one in best)
    return [one for one in best if sorted(after(loads, one), reverse=True) == first]


# %% [markdown]
# One step: two workers with 4 and 0 tokens and one free slot each, two requests of 1 token and two of 2. The heavy
# worker gets 1, the light one 2, and the gap falls from 4 to 3. That is the bound: `(2 - 2) + (4 - (2 - 1)) = 3`.

# %%
step = (4, 0), (1, 1), (1, 1, 2, 2)
print("overloaded:", overloaded(*step[1:]), " bound:", bound(*step))
for one in leximax(*step):
    print("leximax optimum gives", one, "for loads", after(step[0], one), "gap", gap(after(step[0], one)))

assert bound(*step) == 3 == gap(after(step[0], leximax(*step)[0]))

# %% [markdown]
# ## Why it is true
#
# Suppose a placement has a gap above the bound. Let `M` be the largest load, `h` a lightest worker, and `b` the
# smallest request that `h` was given (`s` if it was given none). One of three moves is then possible, and each leads
# to a placement that is better: less imbalance, or the same imbalance and sorted loads that are lexicographically
# smaller.
#
# 1. **A larger request for the light worker.** If a request larger than `b` waits, it takes the place of `b` on `h`.
#    The gap is so wide that `h` does not pass `M`. The sum grows, the imbalance falls.
# 2. **An exchange.** If a worker less than `b - 1` below `M` holds a request larger than `b`, it exchanges it with
#    `b`. Both new loads are below its old one, and the sum is the same.
# 3. **A layer is lowered.** Otherwise all workers near `M` hold many requests of size `b`, and as many smaller ones
#    wait, because of Definition 1. So for some `d` every worker less than `d` below `M` can exchange one `b` for a
#    waiting `b - d`. The largest load falls by `d`. The sum falls by `d` for each of them, and they are fewer than
#    `G`, because `h` is not among them. So the imbalance falls.
#
# Here are the moves as code. `improve` does one of them.


# %%
def improve(loads, slots, pool, placement):
    """One move of the proof: a better placement, and the name of the move. The gap is above the bound."""
    now, given = after(loads, placement), [list(one) for one in placement]
    top, h = max(now), now.index(min(now))
    waiting = list(pool)
    for size in chain.from_iterable(given):
        waiting.remove(size)
    b = min(given[h], default=max(pool))
    if given[h] and max(waiting) > b:
        given[h][given[h].index(b)] = max(waiting)
        return placed(given), "larger"
    for g in range(len(loads)):
        if given[h] and top - now[g] < b - 1 and max(given[g], default=0) > b:
            a = max(given[g])
            given[g][given[g].index(a)], given[h][given[h].index(b)] = b, a
            return placed(given), "exchange"
    for d in range(1, b):
        layer = [g for g in range(len(loads)) if top - now[g] < d]
        if waiting.count(b - d) >= len(layer):
            for g in layer:
                given[g][given[g].index(b)] = b - d
            return placed(given), "layer"
    raise AssertionError("the proof is wrong")


def placed(given):
    return tuple(tuple(sorted(one)) for one in given)


def value(loads, placement):
    return imbalance(after(loads, placement)), sorted(after(loads, placement), reverse=True)


# %% [markdown]
# A picture: four workers, and a placement whose gap is above the bound. The dark blocks are the loads before the step,
# the light ones are requests. The two heaviest workers are a layer: each exchanges a 3 for a waiting 2.

# %%
loads, slots, pool = (8, 8, 7, 0), (2, 2, 2, 2), (1,) * 3 + (2,) * 5 + (3,) * 8
placement = ((3, 3), (3, 3), (2, 3), (3, 3))
limit = bound(loads, slots, pool)
course = [(placement, "start")]
while gap(after(loads, course[-1][0])) > limit:
    better, move = improve(loads, slots, pool, course[-1][0])
    assert value(loads, better) < value(loads, course[-1][0])
    course.append((better, move))

figure, axes = plt.subplots(1, len(course), sharey=True, squeeze=False)
for panel, (one, move) in zip(axes[0], course, strict=True):
    panel.bar(range(len(loads)), loads, color="#33506e")
    bottom = list(loads)
    for g, given in enumerate(one):
        for size in given:
            panel.bar(g, size, bottom=bottom[g], color="#a9c4de", edgecolor="white")
            panel.text(g, bottom[g] + size / 2, str(size), ha="center", va="center", fontsize=8)
            bottom[g] += size
    panel.axhline(max(bottom), color="#b3392f", linewidth=1)
    panel.axhline(max(bottom) - limit, color="#b3392f", linewidth=1, linestyle=":")
    panel.set_title(f"{move}\nimbalance {imbalance(bottom)}, gap {gap(bottom)}", fontsize=9)
    panel.set_xticks(range(len(loads)), [f"worker {g}" for g in range(len(loads))], fontsize=6)
axes[0][0].set_ylabel("tokens")
axes[0][0].yaxis.get_major_locator().set_params(integer=True)
figure.suptitle(f"Solid: the largest load. Dotted: {limit} tokens below it, the bound on the gap.", fontsize=9)
figure.tight_layout()
plt.show()

print([(move, after(loads, one), imbalance(after(loads, one))) for one, move in course])
assert [move for _, move in course][1] == "layer" and gap(after(loads, course[-1][0])) <= limit

# %% [markdown]
# The proof is thus an algorithm: from any placement the moves lead to one within the bound, and each makes it better.
# A leximax optimum cannot be made better, so it is within the bound. We try it from *every* placement of every
# overloaded step of two workers with at most two free slots each, sizes up to 3 and loads up to 4, and of three
# workers with one slot.


# %%
def pools(s, most):
    """All pools of at most so many requests with sizes up to s, one of them s."""
    for number in range(1, most + 1):
        for rest in combinations_with_replacement(range(1, s + 1), number - 1):
            yield (*rest, s)


def steps(G, c_max, s, top, most):
    """Overloaded steps, lightest load 0, workers in the order of (load, slots) from above."""
    workers = list(product(range(top + 1), range(c_max + 1)))
    fleets = [fleet for fleet in combinations_with_replacement(sorted(workers, reverse=True), G) if fleet[-1][0] == 0]
    for pool in pools(s, most):
        for fleet in fleets:
            loads, slots = zip(*fleet, strict=True)
            if 0 < sum(slots) <= len(pool) and overloaded(slots, pool):
                yield loads, slots, pool


tried = moves = 0
used = {"larger": 0, "exchange": 0, "layer": 0}
for family in (steps(2, 2, 3, 4, 6), steps(3, 1, 3, 3, 6)):
    for loads, slots, pool in family:
        limit = bound(loads, slots, pool)
        for one in placements(slots, pool):
            if gap(after(loads, one)) > limit:
                tried += 1
                better, move = improve(loads, slots, pool, one)
                used[move] += 1
                assert value(loads, better) < value(loads, one)
print(f"{tried:,} placements above the bound, each made better by a move: {used}")
assert min(used.values()) > 0

# %% [markdown]
# ## The smallest tight steps
#
# A step is *tight* if a leximax optimum has a gap of exactly the bound, and the bound is not 0. We list steps from the
# smallest on: by the number of workers, of slots, of requests, then by the sum of the loads. For each largest size `s`
# the table has three first steps, all with the same number of free slots on every worker:
#
# * the first tight one,
# * the first in *Case II* of the proof: a lightest worker holds a request below `s`,
# * the first at which `D_pre` counts: the second term of the bound is positive.


# %%
def by_size(s):
    """Overloaded steps of two or three workers with as many free slots each, the smallest first."""
    found = [*steps(2, 2, s, 4, 6), *steps(3, 1, s, 4, 6)]
    equal = [one for one in found if len(set(one[1])) == 1]
    return sorted(equal, key=lambda one: (len(one[0]), sum(one[1]), len(one[2]), sum(one[0]), one))


def kinds(loads, pool, slots, one):
    now, s = after(loads, one), max(pool)
    yield "tight"
    if any(size < s for given, load in zip(one, now, strict=True) if load == min(now) for size in given):
        yield "Case II"
    if bound(loads, slots, pool) > s - 2:
        yield "D_pre counts"


first = {}
for s in (2, 3, 4):
    for loads, slots, pool in by_size(s):
        if limit := bound(loads, slots, pool):
            one = leximax(loads, slots, pool)[0]
            if gap(after(loads, one)) == limit:
                for kind in kinds(loads, pool, slots, one):
                    first.setdefault((s, kind), (loads, slots, pool, one))

for (s, kind), (loads, _, pool, one) in sorted(first.items()):
    print(f"s = {s}, {kind}: loads {loads}, pool {pool}; given {one}: loads {after(loads, one)}")

assert {(s, "tight") for s in (2, 3, 4)} <= set(first) and (2, "D_pre counts") in first

# %% [markdown]
# With `s = 2` two workers of one slot attain the bound at every `D_pre`: the heavy one must take at least 1, the light
# one can take at most 2. With `s = 3` and `s = 4` the first steps are tight because the sizes left over do not fit:
# every `D_pre` up to 1 is within `s - 2` there.
#
# ## Five workers, and every `D_pre`
#
# For `s = 3` there are steps at which `D_pre` counts, too, but two or three workers are too few. Four workers have `x`
# tokens, one has none, each has one free slot. The pool has five 3s, two 2s and three 1s. The bound is `1 + (x - 1) =
# x`. The only optimum gives 3 to everyone, and the gap stays `x`, for every `x >= 2`.
#
# *Why.* With 3 for everyone the largest load is `x + 3`, the sum `4 x + 15`, and the imbalance `x`. For a largest load
# of `x + 2` the four heavy workers take 2, 2, 1, 1 at best, and the light one 3: imbalance `5 (x + 2) - (4 x + 9) = x
# + 1`. For `x + 1` they need four 1s, and there are three. The two 2s are one too few for a tie: with three of them
# the step would have the loads of 2, 2, 2, 1 at the same imbalance and a smaller maximum.

# %%
slots, pool = (1,) * 5, (1, 1, 1, 2, 2, 3, 3, 3, 3, 3)
assert overloaded(slots, pool)
for x in (2, 5, 50):
    loads = (x, x, x, x, 0)
    (only,) = optima(loads, slots, pool)
    print(f"x = {x}: bound {bound(loads, slots, pool)}, the only optimum gives {only}, gap {gap(after(loads, only))}")
    assert only == ((3,),) * 5 and gap(after(loads, only)) == bound(loads, slots, pool) == x

with_a_third = leximax((5, 5, 5, 5, 0), slots, (1, 1, 1, 2, 2, 2, 3, 3, 3, 3, 3))
print("with a third 2:", sorted({after((5, 5, 5, 5, 0), one) for one in with_a_third}))
assert all(gap(after((5, 5, 5, 5, 0), one)) == 4 for one in with_a_third)

# %%
columns = [(s, kind) for kind, s in (("D_pre counts", 2), ("Case II", 3), ("tight", 4))]
pictured = [(f"s = {s}, {kind}", *first[s, kind]) for s, kind in columns]
pictured.append(("s = 3, D_pre counts", (5, 5, 5, 5, 0), slots, pool, ((3,),) * 5))

figure, axes = plt.subplots(1, len(pictured), figsize=(8.4, 3), width_ratios=[max(3, len(one[1])) for one in pictured])
for panel, (title, loads, slots, pool, one) in zip(axes, pictured, strict=True):
    now = after(loads, one)
    panel.bar(range(len(loads)), loads, color="#33506e")
    for g, given in enumerate(one):
        bottom = loads[g]
        for size in given:
            panel.bar(g, size, bottom=bottom, color="#a9c4de", edgecolor="white")
            panel.text(g, bottom + size / 2, str(size), ha="center", va="center", fontsize=8)
            bottom += size
    panel.axhline(max(now), color="#b3392f", linewidth=1)
    panel.axhline(max(now) - bound(loads, slots, pool), color="#b3392f", linewidth=1, linestyle=":")
    panel.set_title(f"{title}\ngap {gap(now)}", fontsize=8)
    panel.set_xticks([])
    panel.yaxis.get_major_locator().set_params(integer=True)
axes[0].set_ylabel("tokens")
figure.suptitle("Tight: a lightest worker (bar) ends on the dotted line, the bound below the largest load.", fontsize=9)
figure.tight_layout()
plt.show()

# %% [markdown]
# ## What breaks without a hypothesis
#
# *Without the rule for ties.* An overloaded step with plain optima above the bound; it is the one that Coq has
# checked. Its leximax optima are within the bound.


# %%
def above(loads, slots, pool, chosen):
    """The placements of a choice, leximax or all optima, with a gap above the bound."""
    limit = bound(loads, slots, pool)
    return [one for one in chosen(loads, slots, pool) if gap(after(loads, one)) > limit]


loads, slots, pool = (6, 6, 5, 6), (1,) * 4, (1, 1, 2, 4, 5, 5)
assert overloaded(slots, pool)
wide = above(loads, slots, pool, optima)
print(f"loads {loads}, pool {pool}, bound {bound(loads, slots, pool)}")
print("plain optima above it:", sorted({after(loads, one) for one in wide}))
print("leximax optima:", sorted({after(loads, one) for one in leximax(loads, slots, pool)}))
assert wide and not above(loads, slots, pool, leximax)

# %% [markdown]
# *Without an overloaded pool.* The first step of two workers, by the number of requests, that has a leximax optimum
# above the bound. Its pool misses Definition 1.

# %%
found = next(
    (loads, slots, pool)
    for pool in pools(3, 6)
    for slots in ((1, 1), (2, 2))
    for loads in ((x, 0) for x in range(8))
    if max(pool) >= 2 and len(pool) >= sum(slots) and above(loads, slots, pool, leximax)
)
wide = sorted({after(found[0], one) for one in above(*found, leximax)})
print(f"loads {found[0]}, slots {found[1]}, pool {found[2]}: bound {bound(*found)}, leximax loads {wide}")
assert not overloaded(*found[1:])

# %% [markdown]
# *With the largest load minimised first*, instead of the imbalance: two workers with nine free slots each, loads 1000
# and 0, plenty of 1s and 10s. Nine 1s for the heavy worker give the least maximum 1009, whatever the light one gets,
# and nine 1s for that one, too, are as good: the gap stays 1000. The bound is 999.

# %%
loads, slots = (1000, 0), (9, 9)
for light in ((1,) * 9, (10,) * 9):
    now = after(loads, ((1,) * 9, light))
    print(f"light worker gets {sum(light)}: maximum {max(now)}, imbalance {imbalance(now)}, gap {gap(now)}")
print("bound:", bound(loads, slots, (1,) * 18 + (10,) * 18))
assert bound(loads, slots, (1,) * 18 + (10,) * 18) == 999 < gap((1009, 9))

# %% [markdown]
# *Without `s >= 2`.* If all sizes are 1, Definition 1 allows no free slot at all. Nothing is admitted, and a gap of 1
# stays 1, where the bound would be `-1 + 1 = 0`.
#
# ## Beyond what can be listed here
#
# `lbopt check lemma-2-definition-1` lists optima of random steps in compiled code and holds them against the bound.
# The theorem is proved in the manual's chapter *Proofs* and checked by Coq (`gap_leximax`).

# %%
from lbopt.theory.ledger import find_claim, how_proved

for finding in find_claim("lemma-2-definition-1").measure(optima=5_000, seed=1):
    print(f"{finding.quantity}: {finding.violations} violations in {finding.trials:,}")
    assert finding.violations == 0
print(how_proved("lemma-2-definition-1"))
