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
# # Is looking ahead worth it?
#
# A rule that looks ahead projects the running requests over the next H steps, by a forecast of when each of them ends.
# Three questions decide whether that is worth having on requests like yours: how much does the *truth* bring, how much
# of it does a forecast bring that one can have, and what does the decision cost?
#
# This notebook asks them for an embedded family of requests; `open_trace("my_trace.csv", ...)` asks them for yours. It
# runs in well under a minute once `lbopt` has compiled its kernels.

# %%
import numpy as np
import pandas as pd

from lbopt import Fleet
from lbopt.instances import open_trace
from lbopt.model import objective
from lbopt.policies import make_policy
from lbopt.policies.decide import decide, seconds_per_decision
from lbopt.simulator import FrozenView, SimulationSetting, sample_states, simulate
from lbopt.solvers import solve

requests = open_trace("burstgpt-like", count=4000, seed=1)
past = open_trace("burstgpt-like", count=4000, seed=2)  # what predictors learn from: other requests of the same kind
setting = SimulationSetting(Fleet(8, 72))

# %% [markdown]
# ## Long runs
#
# `br-0` sees the present alone, and so does `bf-io`, which solves every step exactly. `br-h` looks H steps ahead. With
# `predictor=oracle` it knows when running requests end. With `predictor=survival` it knows how long past requests ran,
# and weighs each running one by the chance that it is still there.

# %%
TUNED = "stage_switch=0,beta=100,gamma=0.6"
RULES = {
    "br-0": "br-0",
    "bf-io": "bf-io:effort=20000,time_limit=none",
    "br-h, no window": f"br-h:horizon=0,{TUNED}",
    "br-h, truth, H = 10": f"br-h:horizon=10,predictor=oracle,{TUNED}",
    "br-h, truth, H = 80, gamma = 0.9": "br-h:horizon=80,predictor=oracle",
    "bf-io, truth, gamma = 0.5": "bf-io:horizon=10,gamma=0.5,predictor=oracle,effort=3000,time_limit=none",
    "br-h, survival, H = 10": f"br-h:horizon=10,departures=weighted,{TUNED}",
}
rows = {}
for name, spec in RULES.items():
    run = simulate(requests, make_policy(spec), setting, training=past)
    metrics = run.metrics()
    rows[name] = {
        "imbalance (tokens)": round(metrics.imbalance_tokens),
        "tokens / s": round(metrics.throughput_tokens_per_second),
        "longest wait (steps)": metrics.waiting_max_steps,
    }
table = pd.DataFrame(rows).T
table

# %% [markdown]
# Compare a rule with itself without a window: what is left of the difference to `br-0` then is not lookahead. Here the
# tuned `br-h` gains nothing by the truth, and a long window with the truth is worse than none: the window contains no
# arrivals. The exact rule that sees the present alone is better than all of them, and a short,
# discounted window makes it a little better still. Fleets and requests differ in this: the manual's results have a
# fleet of 16 on which the truth halves the imbalance.

# %%
tokens = table["imbalance (tokens)"]
assert (
    tokens["br-h, no window"]
    < tokens["br-h, truth, H = 10"]
    < tokens["br-0"]
    < tokens["br-h, truth, H = 80, gamma = 0.9"]
)
assert tokens["bf-io, truth, gamma = 0.5"] < tokens["bf-io"] < tokens["br-h, no window"]

# %% [markdown]
# ## One window at a time
#
# States along a run are frozen, with the requests that run in them. The window over the next H steps is solved exactly,
# as an oracle sees it; the gap of a rule is what its placement costs over that window above the optimum.

# %%
H = 10
states, _ = sample_states(requests, make_policy("br-0"), setting, 12)
view = FrozenView(past)
gaps: dict[str, list[int]] = {name: [] for name in RULES if "80" not in name}
for state in states:
    judged = state.over_window(H)
    best = solve(judged.problem, time_limit=2)
    if not best.proved:
        continue  # the optimum is not known
    for name in gaps:
        policy = make_policy(RULES[name])
        seen = view.observe(state, policy)
        gaps[name].append(objective(judged.problem, decide(policy, seen)) - best.objective)
pd.DataFrame({name: {"states": len(g), "mean gap (tokens)": np.mean(g)} for name, g in gaps.items()}).T.round()

# %% [markdown]
# The rules that know the truth are nearest to the optimum of the window, and `br-h` with the truth is the worse one in
# the long run all the same: the window assumes that no request arrives. Therefore both tables
# are needed.

# %% [markdown]
# ## What a decision costs

# %% tags=["times"]
ahead = make_policy(RULES["br-h, truth, H = 10"])
seen = view.observe(states[0], ahead)
print(f"{1e6 * seconds_per_decision(ahead, seen):.0f} microseconds a round, projection included")

# %% [markdown]
# Next: `lbopt predict` says how good each predictor is on a trace, `lbopt study misprediction` what wrong forecasts
# cost, and `lbopt gap --horizon 10` does the above with tables and a report.
