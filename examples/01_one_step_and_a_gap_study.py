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
# # One step by hand, then a gap study
#
# Decode workers run in lock step. In every step each worker reads the tokens of its running requests, and all wait
# for the worker that holds most. A request stays on its worker until it ends. When slots become free, a router
# decides two things: which waiting requests start, and where.
#
# This notebook places five requests by hand, lets `lbopt` find the best placement, and then measures how far known
# rules stay behind it over many steps. It runs in well under a minute.

# %% [markdown]
# ## One step, plain Python
#
# Three workers hold 900, 700 and 400 tokens and have one, two and one free slots. Five requests wait. Four can be
# admitted, one has to wait on.

# %%
loads = [900, 700, 400]
slots = [1, 2, 1]
sizes = [310, 260, 150, 120, 80]


def imbalance(placement):
    """G times the heaviest load minus the sum of loads: the work that the other workers could have done meanwhile."""
    after = list(loads)
    for size, worker in zip(sizes, placement, strict=True):
        if worker is not None:
            after[worker] += size
    return len(after) * max(after) - sum(after), after


# %% [markdown]
# Two placements. The first starts the four oldest requests, largest first, each on the lightest worker that has a
# slot. The second lets the request of 260 tokens wait and starts the smallest one in its place.

# %%
oldest_four = [2, 1, 0, 1, None]
another = [2, None, 1, 1, 0]
for placement in (oldest_four, another):
    print(placement, *imbalance(placement))

assert imbalance(oldest_four) == (400, [1050, 1080, 710])
assert imbalance(another) == (280, [980, 970, 710])

# %% [markdown]
# The first placement drives worker 1 up to 1,080 tokens. The second leaves the request of 260 waiting, and no
# load exceeds 980. Which requests are admitted matters as much as where they go.
#
# Is 280 the least? There are few placements here, so we try them all: every request goes to a worker or waits, no
# worker gets more than its slots, exactly four are admitted.

# %%
from itertools import product


def keeps_the_rules(placement):
    admitted = [worker for worker in placement if worker is not None]
    return len(admitted) == 4 and all(admitted.count(g) <= slots[g] for g in range(3))


placements = [p for p in product([None, 0, 1, 2], repeat=len(sizes)) if keeps_the_rules(p)]
best = min(placements, key=lambda p: imbalance(p)[0])
print(len(placements), "placements keep the rules; the best is", best, "with", imbalance(best)[0])

assert imbalance(best)[0] == 280

# %% [markdown]
# ## The same with `lbopt`
#
# `StepProblem.now` freezes the decision, `solve` looks for the best placement, and `verify` checks the answer with
# code that shares nothing with the solvers. Loads are whole numbers throughout, so nothing here is a matter of
# rounding.

# %%
from lbopt import StepProblem, solve, verify

problem = StepProblem.now(loads, slots, sizes)
result = solve(problem)
print(result.summary())
print(verify(problem, result))

assert result.objective == 280 and result.proved

# %% [markdown]
# Every solve starts from a greedy placement and never ends above it. Here greedy alone is not enough:

# %%
from lbopt.model import objective
from lbopt.solvers import greedy_assignment

greedy = greedy_assignment(problem)
print(greedy, objective(problem, greedy), "against", result.assignment, result.objective)

assert objective(problem, greedy) > result.objective

# %% [markdown]
# What do known rules do in this step? `max-min` takes the oldest requests that fit into the slots, largest first,
# each to the lightest worker. `br-0` serves the worker with most free slots first and scores subsets of a window of
# waiting requests by how much they lower the imbalance. `fcfs` fills worker after worker in order of arrival.

# %%
from lbopt.policies import Observation, make_policy
from lbopt.policies.decide import decide

observation = Observation.of_problem(problem)
for name in ("fcfs", "max-min", "br-0"):
    workers = decide(make_policy(name), observation)
    value = objective(problem, workers)
    print(f"{name:8} {workers}  imbalance {value}, {value - result.objective} above the optimum")
    assert value > result.objective

# %% [markdown]
# ## A small gap study
#
# One step proves nothing about a rule. `lbopt.gap` simulates a fleet, freezes steps in which the router had a real
# choice, solves each of them, lets every policy decide the same steps, and finally runs every policy over the same
# requests. The requests here are drawn from a family that is fitted to BurstGPT; the seed fixes them.

# %%
import lbopt

policies = ["fcfs", "jsq", "jsq-load", "max-min", "br-0", "br-0:age_bound=50"]
outcome = lbopt.gap(requests=1500, workers=4, slots=32, policies=policies, states=5, seed=1, time_limit=2.0)
print(outcome)

# %% [markdown]
# The first table is about single steps. `gap_mean_tokens` is the mean distance to the best placement, in tokens of
# imbalance; `gap_mean_share` relates it to the work that the fleet could do up to the barrier. States in which the
# best placement is not known (`open`) are counted and enter no average.

# %%
gaps = outcome.to_frame().query("behaviour == 'all'").set_index("policy")
gaps[["proved", "claimed", "open", "gap_mean_tokens", "gap_max_tokens", "gap_mean_share", "optimal_share"]].round(3)

# %% [markdown]
# The second table is about time. Here every policy makes all decisions of its run. Compare the imbalance together
# with the longest wait: a rule can have a low imbalance because it never starts the largest requests.

# %%
columns = ["admission", "imbalance_tokens", "idle_share", "throughput_tokens_per_second", "waiting_max_steps"]
runs = outcome.to_frame("long_runs").set_index("policy")
runs[columns].sort_values("imbalance_tokens").round(3)

# %% [markdown]
# The picture shows every state as a dot, one row for each policy.

# %%
axes = outcome.plot()

# %% [markdown]
# ## Reading the result
#
# * A gap compares one decision with the best decision *for that step*. It says nothing about the next step.
# * The gap of a rule with an age bound includes the cost of the bound: the best placement may delay any request.
# * In the one-step table all rules decide in pooled form, seeing every waiting request. In the long runs each admits as
#   its source does; `jsq` binds a request when it arrives.
# * The gap is not a share of the optimum, because the optimum is often close to zero. Tokens can be averaged, and so
#   can shares of the barrier.
# * Ten states and one seed give an example, not a finding. `lbopt gap` with more `--states` and `--seeds` prints
#   intervals.
