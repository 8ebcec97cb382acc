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
# # What could anybody have done?
#
# A routing rule does not know how long a request will run. How much of the wait at the barrier is the price of that,
# and how much would remain for a router that had known all lengths? This notebook takes a run, fixes who starts in
# which step, and looks for the best workers in hindsight. The answer is an interval: from below by a proof, from above
# by a placement that anybody can count again.

# %%
import matplotlib.pyplot as plt
import numpy as np

import lbopt
from lbopt.hindsight.interval import least_barriers
from lbopt.hindsight.local_search import place_in_hindsight
from lbopt.studies.hindsight.study import timetable_of

plt.rcParams.update({"figure.figsize": (6.4, 3.8), "axes.grid": True, "grid.alpha": 0.25})
FLEET = {"requests": 1500, "workers": 8, "slots": 16}

# %% [markdown]
# ## A timetable
#
# Two rules that take requests in the order of their arrival, from one queue: `jsq-load` and `max-min`. All slots are
# full, so a request starts when another one ends, wherever that is. Both runs have the same starts. What differs is
# the worker.

# %%
runs = {rule: lbopt.simulate("burstgpt-like", rule, **FLEET) for rule in ("jsq-load", "max-min")}
tables = {rule: timetable_of(run) for rule, run in runs.items()}
table = tables["max-min"][0]
assert np.array_equal(tables["jsq-load"][0].start, table.start)
print(f"{table.num_requests:,} requests start in {table.num_steps:,} steps")
for rule, (_, worker) in tables.items():
    print(f"{rule:10s} imbalance {table.imbalance(worker) / table.num_steps:9,.0f} tokens a step")

# %% [markdown]
# ## The best workers in hindsight
#
# `place_in_hindsight` knows every start and every end. It places the requests one after the other with the whole
# timetable in sight, eight times with different weights of the future, and then exchanges chains of requests between
# workers. Every placement is counted again and its slots are checked.

# %%
placed = place_in_hindsight(table, {rule: worker for rule, (_, worker) in tables.items()}, effort=40)
for name, barriers in placed.tried.items():
    print(f"{name:24s} sum of barriers {barriers:12,}")
least = least_barriers(table)
print(f"{'no placement is below':24s} sum of barriers {least.sum():12,}")
assert least.sum() <= placed.barriers < min(placed.tried[rule] for rule in tables)

# %% [markdown]
# The bound takes each step by itself: the heaviest worker is not below the mean, nor below the largest request. A
# placement has to be good in all steps at once, and a request stays where it is, so the truth lies somewhere between.

# %%
best = table.loads(placed.worker).max(axis=1)
rule = table.loads(tables["max-min"][1]).max(axis=1)
figure, axes = plt.subplots()
for values, label in ((rule, "max-min"), (best, "in hindsight"), (least, "no placement is below")):
    axes.plot(values, linewidth=0.9, label=label)
axes.axvline(table.start.max(), color="k", linewidth=0.8, linestyle=":")
axes.text(table.start.max(), axes.get_ylim()[1], " last start", va="top", fontsize=8)
axes.set_xlabel("step")
axes.set_ylabel("heaviest worker (tokens)")
axes.legend(fontsize=8)
drain = slice(int(table.start.max()) + 1, None)
gain = 1 - best[drain].sum() / rule[drain].sum()
print(f"after the last start the heaviest worker holds {gain:.0%} less in hindsight")
assert gain > 0

# %% [markdown]
# While requests still come, a rule can mend with the next ones what the last ones have made uneven. After the last
# start nothing can be mended any more: there the long requests are what counts, and who had known their lengths would
# have spread them.
#
# ## Rules beside what anybody could have done
#
# `lbopt.in_hindsight` does this for several rules. A rule that chooses whom to admit, as `auto` does, has a timetable
# of its own; *first come* compares it with the clairvoyant router that admits in the order of arrival.

# %%
outcome = lbopt.in_hindsight("burstgpt-like", policies=["round-robin", "max-min", "br-0", "auto"], effort=20, **FLEET)
for one in outcome.rules:
    print(
        f"{one.rule:12s} {one.ratio.low:.3f} to {one.ratio.high:.3f} times the optimum of its own starts, "
        f"{one.first_come_ratio.low:.3f} to {one.first_come_ratio.high:.3f} of those of first come; "
        f"{one.share_of_ceiling:.1%} of the ceiling"
    )
    assert 1 - 1e-9 <= one.ratio.low <= one.ratio.high
outcome.plot()

# %% [markdown]
# The low end of a ratio is a fact: this placement exists. The high end cannot be excluded by this bound. No rule,
# whomever it admits and when, passes the ceiling, which is the dotted line.
