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
# # A lemma refuted, and mended
#
# A proof can be checked by trying it on small cases, all of them. This notebook does so with two lemmas of BF-IO
# (arXiv 2601.17855), on which its theorems rest. Lemma 1 is false as printed: we find out by hand, let `lbopt` find
# out by itself, and see what is true instead, with a proof. Then the same for Lemma 2, in short.
#
# No theorem is refuted with them. Where Lemma 1 is used, its mended form does as well. Lemma 2 can be mended for pools
# that never lack a size.

# %% [markdown]
# ## Lemma 1, as printed
#
# A round of Theorem 1: `G` workers are empty and have `B` slots each, and `G B` requests with prompts of at most
# `s_max` tokens start together. The lemma says:
#
# > *Every* assignment with the least maximum load is `s_max`-balanced: the loads of any two workers differ by at most
# > `s_max`.
#
# Three workers with two slots each, four prompts of 10 tokens and two of 1. We try every assignment.

# %%
from itertools import permutations

G, B = 3, 2
prompts = [10, 10, 10, 10, 1, 1]

loads = {tuple(sorted((sum(order[:2]), sum(order[2:4]), sum(order[4:])))) for order in permutations(prompts)}
for found in sorted(loads):
    print(found, "maximum", max(found), "imbalance", G * max(found) - sum(found), "gap", max(found) - min(found))

assert loads == {(2, 20, 20), (11, 11, 20)}

# %% [markdown]
# By hand: of four tens on three workers two always meet, so the maximum is at least 20, whatever one does. Both
# assignments have it. In one of them the loads are 20, 20 and 2: the gap is 18, and `s_max` is 10. That is one
# optimum too many.
#
# ## The same with `lbopt`
#
# `solve` finds the least imbalance and states whether it is proved. All requests are admitted, so the sum of
# loads is fixed, and the least imbalance and the least maximum are the same thing.

# %%
import numpy as np

from lbopt import StepProblem, solve, verify
from lbopt.model import loads_after, objective

problem = StepProblem.now(loads=[0] * G, slots=[B] * G, sizes=prompts)
result = solve(problem)
print(result.summary())
print(verify(problem, result))

wide = np.array([0, 0, 1, 1, 2, 2])
after = loads_after(problem, wide).ravel()
print(after, "has the imbalance", objective(problem, wide))

assert result.proved and objective(problem, wide) == result.objective == 18
assert after.max() - after.min() > max(prompts)

# %% [markdown]
# ## Where the proof goes wrong
#
# The printed proof exchanges: if worker `g` has more than `s_max` tokens above worker `h`, some request of `g` is
# larger than some request of `h`, and exchanging the two lowers `g` without lifting `h` too far, so the maximum gets
# smaller. It does if `g` *alone* has the maximum. Here two workers have it, and an exchange mends one of them only.
#
# With two workers the lemma is right: the sum is fixed, so the maximum determines both loads.
#
# ## What a checker makes of it
#
# `lbopt.theory` keeps a ledger of claims. Each says what would refute it, and has a function that measures. For this
# one it lists *all* optima of random rounds until one is too wide. Four different starts:

# %%
from lbopt.theory.ledger import find_claim

claim = find_claim("lemma-1-printed")
print(claim.title, "--", claim.refuted_by)

rounds = []
for seed in range(4):
    stored, found = claim.measure(seed=seed)
    sizes = [size for (size,) in found.counterexample["problem"]["work"]]
    rounds.append(sizes)
    print(f"after {found.trials} optima: prompts {sizes}; {found.counterexample['says']}")
    assert stored.violations == found.violations == 1
    assert found.verdict() == claim.expected == "refuted"

# %% [markdown]
# All four end at rounds of one form: four prompts of the largest size and two smaller ones. Of four large ones two
# always meet, so twice their size is the least maximum, and the small ones on the third worker leave a gap above the
# largest size. The smallest such round has four prompts of 3 and two of 1: loads 6, 6 and 2, and a gap of 4.

# %%
assert all(sizes[2:] == [max(sizes)] * 4 for sizes in rounds)

# %% [markdown]
# ## What is true
#
# > Among the assignments with the least maximum, the one whose loads, sorted from the largest down, are
# > lexicographically least (the *leximax* one) is `(s_max - 1)`-balanced. And **every** assignment with the least
# > maximum has an imbalance of at most `(G - 1)(s_max - 1)`.
#
# *Proof.* Take the leximax assignment and suppose that `g` has at least `s_max` tokens more than `h`. Both hold `B`
# requests, so some request `i` of `g` is larger than some request `j` of `h`. Exchange them: `g` falls, `h` rises,
# both by `s_i - s_j`, which is at least 1 and at most `s_max - 1`, so less than their distance. Both loads end
# strictly below the old load of `g`, and no other load changes. The sorted loads have become lexicographically smaller:
# a contradiction. This argument does not care who else has the maximum.
#
# So the leximax assignment has gaps of at most `s_max - 1`, and its imbalance, the sum of the distances to the
# maximum, is at most `(G - 1)(s_max - 1)`. The imbalance is `G` times the maximum minus the sum, and both are the
# same for every assignment with the least maximum. So the bound holds for all of them, wide ones included. ∎
#
# The second half is all that Theorem 1 needs. The theorem stands, with a slightly better constant.

# %%
best = solve(problem, tie="leximax")
print("leximax:", loads_after(problem, best.assignment).ravel(), "imbalance", best.objective)

evened = sorted(loads_after(problem, best.assignment).ravel().tolist())
assert evened == [11, 11, 20] and best.objective == 18
assert evened[-1] - evened[0] <= max(prompts) - 1
assert best.objective <= (G - 1) * (max(prompts) - 1)  # here with equality: the bound is sharp

# %% [markdown]
# A proof in words can be wrong as well, so the mended form is in the ledger, too, and is measured in the same way:
# all optima of random rounds, and on some of them the listing is compared with `solve`.

# %%
for finding in find_claim("lemma-1").measure(G=3, B=3, s_max=6, seed=1):
    print(f"{finding.quantity}: {finding.violations} violations in {finding.trials} ({finding.note})")
    assert finding.violations == 0 and finding.verdict() == "holds"

# %% [markdown]
# ## Lemma 2: a tie is no reduction
#
# Lemma 2 is about a step in the middle of a run. Workers have loads before admission, with a gap `D_pre`, and `c`
# free slots each; a pool of requests waits. It says that an optimal step with a gap above `s_max` gives the heaviest
# worker only sizes up to some `theta`, and the lightest only sizes above it, so that the gap falls by `c` at least,
# down to `s_max` (in the paper, where free slots are random, by a share of their mean `p B`).
#
# Two workers with 1000 and 0 tokens, five free slots each, ten requests of 1 token and ten of 10.

# %%
from lbopt.theory.steps.statements import CASES

step = CASES["min-max"].stored[0]
print("before", step.before, "free", step.free, "pool", dict(zip(step.sizes, step.copies, strict=True)))

all_ones = np.array([0] * 5 + [1] * 5 + [-1] * 10)
ones_and_tens = np.array([0] * 5 + [-1] * 5 + [1] * 5 + [-1] * 5)
print("the sizes of the pool:", step.requests)
for name, placement in (("all ones", all_ones), ("ones and tens", ones_and_tens)):
    after = loads_after(step.problem(), placement).ravel()
    print(f"{name}: loads {after}, imbalance {objective(step.problem(), placement)}, gap {after.max() - after.min()}")

assert loads_after(step.problem(), all_ones).max() == loads_after(step.problem(), ones_and_tens).max() == 1005
assert objective(step.problem(), all_ones) == 1000  # the gap that there was before: nothing gained
assert objective(step.problem(), ones_and_tens) == solve(step.problem()).objective == 955

# %% [markdown]
# The printed proof minimises the *maximum*. Then five ones for every worker are optimal: 1005 is the least
# maximum. Heavy and light worker hold the same size, an exchange changes nothing, and the gap stays at 1000. So the
# step is separated only weakly, and weakly is worth nothing: `theta (c - c)` is 0.
#
# BF-IO does not minimise the maximum but the imbalance, and that gives the light worker five tens. Is the lemma right
# for the imbalance, then? Not yet. The heaviest worker may hold the largest size:

# %%
step = CASES["separation"].stored[0]
(only,) = step.optima[1]
print("before", step.before, "pool", dict(zip(step.sizes, step.copies, strict=True)))
print("the only optimum gives", only @ step.sizes, "for loads", step.loads(only))

assert list(step.loads(only)) == [102, 101, 10]

# %% [markdown]
# The heaviest worker and the lightest both got a 10: worker 0 comes from behind, passes worker 1, and is the heaviest
# afterwards. And a pool that is only *overloaded* (Definition 1: without its commonest size it still fills all slots)
# may lack the sizes that it takes to lower the maximum:

# %%
step = CASES["definition-1"].stored[0]
(only,) = step.optima[1]
print("before", step.before, "pool", dict(zip(step.sizes, step.copies, strict=True)))
print("the only optimum gives", only @ step.sizes, "for loads", step.loads(only))

assert list(only @ step.sizes) == [8, 8, 8]
assert step.is_overloaded and step.loads(only).max() - step.loads(only).min() == step.gap_before

# %% [markdown]
# Both heavy workers would need a small request. There are only 1 and 5: with these the maximum is 5 above what it
# was, not 8. That gains 3 tokens on the light worker and loses 4 on the heavy one that got the 1, since what matters
# is the distance of *all* workers to the maximum. With 5 and 7 it is the same. Eights for all are best, and the gap
# stays as it is.
#
# ## What is true of Lemma 2
#
# > If every size that is present has at least as many copies as there are free slots (a *replete* pool), at least two
# > sizes are present, and `s` is the largest, then **every** optimum has
# > `D <= (s - 2) + max(0, D_pre - (s * min c - (s - 1) * max c))`.
#
# *Proof in words.* Let the gap be at least `s - 1`, `v` a size below `s`, and `d = s - v`. (1) The lightest worker
# holds only `s`: otherwise exchange a smaller request of its for an `s` that waits; it rises by at most `s - 1`, so
# the maximum does not move, and the imbalance falls. (2) Of the workers less than `d` below the maximum, at least
# one holds no `s`: otherwise each of them could exchange one `s` for a `v` that waits. The maximum would fall by
# `d`, and the sum by `d` for each of them; they are fewer than `G`, for the lightest worker is not among them, so
# the imbalance, `G` times the maximum minus the sum, would fall. (3) That worker admitted at most `s - 1` a slot,
# the lightest `s` a slot, and before that they differed by at most `D_pre`. So they differ by at most
# `D_pre + (s - 1) max c - s min c` now, and the maximum is at most `d - 1 <= s - 2` higher. ∎

# %%
for name in ("lemma-2-printed", "lemma-2-leximax", "lemma-2", "lemma-2-sharp"):
    claim = find_claim(name)
    findings = claim.measure(seed=1)
    violations = sum(one.violations for one in findings)
    print(f"{name}: {violations} violations in {sum(one.trials for one in findings)} optima: {claim.expected.value}")
    assert (violations > 0) == (claim.expected == "refuted")

# %% [markdown]
# ## Open a counterexample
#
# `lbopt check --out` writes every counterexample as a step problem, which `lbopt solve` opens. So nobody has to
# believe the checker: the numbers are small enough for pencil and paper.

# %%
import subprocess
import sys
import tempfile
from pathlib import Path

with tempfile.TemporaryDirectory() as folder:
    for command in (
        "lbopt check lemma-1-printed --out refuted",
        "lbopt solve refuted/counterexample-lemma-1-printed-1.json --tie leximax",
    ):
        print("$", command)
        words = [sys.executable, "-m", *command.split()]
        shown = subprocess.run(words, cwd=folder, check=True, capture_output=True, text=True).stdout
        print(shown if "solve" in command else shown[shown.index("Verdicts") :])
    files = sorted(path.name for path in Path(folder, "refuted").glob("counterexample-*"))
print(*files)

assert "counterexample-lemma-1-printed-1.json" in files and "6 requests, 6 admitted" in shown

# %% [markdown]
# Next: the manual's page on the theory lists every claim with its verdict, and `lbopt check all` measures them
# anew.
