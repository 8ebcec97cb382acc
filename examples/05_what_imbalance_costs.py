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
# # What imbalance costs
#
# A router leaves 88,000 tokens of imbalance in every step, another one 9,600. Is that worth changing the router? It
# depends on how much of a step the tokens are. This notebook goes from tokens to milliseconds, joules and money on two
# devices, looks for the place from where on balancing pays, and asks what published measurements say about it.
#
# Nothing here was measured on an accelerator. Constants come from documents, each with two ends, and the answers have
# intervals because of that. `lbopt show devices h800` shows where they are from.
#
# It runs in well under half a minute. What is said of numbers is asserted.

# %%
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from lbopt import Fleet
from lbopt.hardware import AffineStepTime, make_step_time
from lbopt.hardware.cards import calibration_of
from lbopt.hardware.fit import LAWS, Observations, calibrate, compare, fit_law, read_rows
from lbopt.hardware.published import published_table
from lbopt.instances import open_trace
from lbopt.policies import make_policy
from lbopt.report.fit_tables import verdict
from lbopt.simulator import SimulationSetting, simulate
from lbopt.studies.cost import LEVEL, CostConfig, LoadPoint, cost_of_points

plt.rcParams.update({"figure.figsize": (6.4, 3.8), "axes.grid": True, "grid.alpha": 0.25})

# %% [markdown]
# ## Two routers on two devices
#
# Eight workers of 72 slots decode DeepSeek-V3. `jsq` counts requests; `br-0` looks at tokens. On Ascend 910C a worker
# has four devices, as in BalanceRoute's cluster; on H800 two, the fewest that hold its share of the model.
#
# The step time is a roofline: what is read, computed and sent in a step, over what a device does in a second.

# %%
G, B = 8, 72
laws = {
    "ascend-910c": "roofline:device=ascend-910c,model=deepseek-v3,tp=4",
    "h800": "roofline:device=h800,model=deepseek-v3,tp=2",
}
trace = open_trace("burstgpt-like", count=4000, seed=0)


def run(policy, law):
    return simulate(trace, make_policy(policy), SimulationSetting(Fleet(G, B), step_time=law))


routers = ("jsq", "br-0")
runs = {(device, policy): run(policy, make_step_time(spec)) for device, spec in laws.items() for policy in routers}
metrics = {key: found.metrics() for key, found in runs.items()}
pd.DataFrame(
    {
        " on ".join(reversed(key)): {
            "imbalance (tokens)": round(of.imbalance_tokens),
            "mean load (tokens)": round(of.mean_load_tokens),
            "tokens / s": round(of.throughput_tokens_per_second),
            "TPOT mean (ms)": round(1e3 * of.tpot_mean_seconds, 2),
            "longest wait (steps)": of.waiting_max_steps,
        }
        for key, of in metrics.items()
    }
).T

# %% [markdown]
# `br-0` has nine times less imbalance, and less than one per cent more tokens a second. The cost is in the last
# column: the longest wait is ten times as long.
#
# The requests of a closed loop appear as fast as they are taken, so a router decides the same on both devices: the
# clock is not asked.

# %%
for policy in ("jsq", "br-0"):
    assert (runs["ascend-910c", policy].requests["worker"] == runs["h800", policy].requests["worker"]).all()
for device in laws:
    counted, balanced = metrics[device, "jsq"], metrics[device, "br-0"]
    gain = balanced.throughput_tokens_per_second / counted.throughput_tokens_per_second - 1
    print(f"{device}: {gain:.2%} more tokens a second")
    assert counted.imbalance_tokens > 9 * balanced.imbalance_tokens and 0.005 < gain < 0.01

# %% [markdown]
# ## Where the step goes
#
# The law can be taken apart. At the means of `jsq`, only the first bar, attention over the tokens of the heaviest
# worker, has anything to do with balance.

# %%
figure, axes = plt.subplots()
left = np.zeros(len(laws))
heaviest = counted.mean_load_tokens + counted.imbalance_tokens / G
requests = round(counted.occupancy * B)
steps = [make_step_time(law).breakdown(np.full(G, heaviest), np.full(G, requests)) for law in laws.values()]
for term in steps[0].terms:
    width = np.array([1e3 * float(step.terms[term]) for step in steps])
    axes.barh(list(laws), width, left=left, label=term)
    left += width
axes.set_xlabel("ms")
axes.legend(ncols=3, fontsize=8, loc="lower center", bbox_to_anchor=(0.5, 1.0), frameon=False)

attention = [float(step.terms["attention"] / step.seconds) for step in steps]
print("attention is", ", ".join(f"{share:.1%} on {device}" for share, device in zip(attention, laws, strict=True)))
assert all(0.03 < share < 0.06 for share in attention)

# %% [markdown]
# ## The price, with an interval
#
# A load point is what is left of a run for a price: heaviest and mean load, running requests. `cost_of_points` prices
# it by a law that was learnt from ninety published steps, drawn a thousand times from what is believed of it. For the
# 910C there is a second law, the slope that measurements of a cluster suggest. Both are shown, never their mean. The
# H800's published slope was measured on 72 workers and more; it does not speak of eight.

# %%
priced = []
for device, devices_per_worker in (("ascend-910c", 4), ("h800", 2)):
    points = [LoadPoint.of_metrics(policy, [metrics[device, policy].to_dict()], G, B) for policy in ("jsq", "br-0")]
    points.append(points[0].balanced(LEVEL))
    costs, notes = cost_of_points(points, CostConfig(devices=(device,), devices_per_worker=devices_per_worker))
    priced += costs


def shown(figure, factor=1.0, digits=2):
    return " … ".join(f"{factor * value:.{digits}f}" for value in (figure.low, figure.nominal, figure.high))


pd.DataFrame(
    [
        {
            "device, law": f"{cost.card.name}, {cost.law}",
            "router": one.point.label,
            "step (ms)": shown(one.figures["step_milliseconds"], digits=1),
            "waiting (%)": shown(one.figures["wait_share"], 100),
            "time saved (%)": shown(one.figures["time_saved_share"], 100),
            "USD / M tokens": shown(one.figures["dollars_per_million"]),
        }
        for cost in priced
        for one in cost.points
    ]
)

# %% [markdown]
# Low end, nominal, high end. Steps and prices are known to a factor of two or three. Savings are known no better: the
# price cancels in them, the slope does not. Perfect balance would save less than four per cent on either device by
# either law, and `br-0` gets most of that.
#
# The same tokens take less time, and what is saved of the energy is the waiting. How much depends on what a worker
# draws while it waits in a collective: its idle power at least, that of a busy one at most, and by what was measured of
# spinning processes something in between.

# %%
pd.DataFrame(
    {
        f"{cost.card.name}, {cost.law}": {
            charge: f"{100 * saved.nominal:+.1f} %" for charge, saved in cost.points[2].energy_saved_by_charge.items()
        }
        for cost in priced
    }
)

# %%
for cost in priced:
    level = cost.points[2]
    saved = level.figures["time_saved_share"]
    assert saved.low > 0 and saved.high < 0.04
    spins, idle, busy = (energy.nominal for energy in level.energy_saved_by_charge.values())
    assert 0 < idle < spins < busy
assert [cost.law for cost in priced] == ["calibrated", "published slope", "calibrated"]

# %% [markdown]
# A router that balances does not make a device thriftier. It makes it wait less, so energy follows time, at a discount.
#
# ## On the published picture
#
# BalanceRoute (arXiv 2605.06113) has measured routers of DeepSeek-V3 on Ascend 910C. Full marks: tokens a second.
# Hollow ones: what the time per token alone explains of it. Everything is relative to `jsq`.

# %%
figure, axes = plt.subplots(figsize=(6.8, 4.4))
table = published_table("balance-route")
hollow = []
for mark, group in zip("o^sD", dict.fromkeys(row["group"] for row in table.rows), strict=True):
    rows = table.group(group)
    base = next(row for row in rows if row["method"] == "JSQ")
    spread = [row["spread_tokens"] / base["spread_tokens"] for row in rows]
    speed = [row["throughput_tok_s"] / base["throughput_tok_s"] for row in rows]
    pace = [base["tpot_p95_ms"] / row["tpot_p95_ms"] for row in rows]
    hollow += [p for s, p in zip(spread, pace, strict=True) if s < 0.2]
    axes.plot(spread, speed, mark, color="#8c959f", label=group)
    axes.plot(spread, pace, mark, color="#8c959f", markerfacecolor="none")

x = np.linspace(0, 1.5, 50)
for cost in priced:
    gained = cost.points[2].figures["throughput_gain_share"]
    waits = [1 - 1 / (1 + end) for end in (gained.low, gained.nominal, gained.high)]
    low, middle, high = (1 / (1 - wait * (1 - x)) for wait in waits)
    (line,) = axes.plot(x, middle, label=f"{cost.card.name}, {cost.law}")
    axes.fill_between(x, low, high, color=line.get_color(), alpha=0.12)
axes.set_xlim(-0.03, 1.5)
axes.set_xlabel("imbalance over that of JSQ")
axes.set_ylabel("tokens / s over those of JSQ")
axes.legend(fontsize=8)

print(f"published, at a fifth of the imbalance or less: {min(hollow):.3f} to {max(hollow):.3f} times as fast")
assert min(hollow) > 1.04 and max(hollow) < 1.08

# %% [markdown]
# No law reaches the hollow marks here. Their requests were longer: three to five thousand tokens of prompt, where
# `burstgpt-like` has some hundreds, so there was more to balance. And no law of the step time says anything of the
# distance from hollow to full, which is a fuller batch.
#
# ## Where balancing pays
#
# Strip a step to two numbers, `C + κ · max L`. What `br-0` gains over `jsq` then depends on one ratio alone, the
# overhead over the cost of the mean load, `C / (κ · mean L)`. We sweep it, in the simulator and by the formula.

# %%
kappa = 100e-9
mean = counted.mean_load_tokens
peaks = {policy: runs["h800", policy].steps["barrier_max"] for policy in ("jsq", "br-0")}
window = {policy: slice(0, runs["h800", policy].window.last) for policy in peaks}
peak = {policy: float(peaks[policy][window[policy]].mean()) for policy in peaks}


def gain_by_formula(ratio):
    return (ratio * mean + peak["jsq"]) / (ratio * mean + peak["br-0"]) - 1


def gain_in_simulator(ratio):
    law = AffineStepTime(ratio * kappa * mean, kappa)
    speed = {policy: run(policy, law).metrics().throughput_tokens_per_second for policy in peak}
    return speed["br-0"] / speed["jsq"] - 1


ratios = np.array([0, 0.3, 1, 3, 10, 30])
simulated = np.array([gain_in_simulator(ratio) for ratio in ratios])
print(dict(zip(ratios.tolist(), (f"{value:.2%}" for value in simulated), strict=True)))

assert np.abs(simulated - gain_by_formula(ratios)).max() < 0.01
assert simulated[0] > 0.1 > simulated[3] and simulated[-1] < 0.01

# %% [markdown]
# Where fleets lie: BF-IO's simulator, the published slopes, the rooflines of this fleet, and one of them with contexts
# ten times as long, as unevenly spread as here.

# %%
bf_io = AffineStepTime.of_bf_io_paper(B)
places = {"BF-IO's simulator": bf_io.fixed_seconds / (bf_io.seconds_per_token * mean)}
for device, spec in laws.items():
    frozen = make_step_time(spec).frozen(G, requests)
    known = calibration_of(device, "deepseek-v3")
    places[f"{device}, roofline"] = frozen.fixed_seconds / (frozen.seconds_per_token * mean)
    places[f"{device}, published slope"] = known.balanced_step.value / (known.per_token.value * mean) - 1
places["h800, roofline, 10 times the context"] = places["h800, roofline"] / 10

figure, axes = plt.subplots()
sweep = np.geomspace(0.1, 60, 200)
axes.plot(sweep, 100 * gain_by_formula(sweep), color="#57606a", label="by formula")
axes.plot(ratios[1:], 100 * simulated[1:], "k.", label="simulated")
for name, place in places.items():
    axes.plot([place], [100 * gain_by_formula(place)], "D", label=f"{name}: {gain_by_formula(place):.1%}")
axes.axhline(1, color="#57606a", linewidth=0.8, linestyle=":")
axes.set_xscale("log")
axes.set_xlabel("overhead / (κ · mean load)")
axes.set_ylabel("br-0 over jsq, tokens / s (%)")
axes.legend(fontsize=8)

pays = sweep[gain_by_formula(sweep) > 0.01].max()
print(f"one per cent is gained up to a ratio of {pays:.0f}")
assert places["BF-IO's simulator"] < 1.2 and min(places["h800, roofline"], places["ascend-910c, roofline"]) > pays > 10

# %% [markdown]
# The ten per cent that routers promise are at home on the left, where a step is mostly attention: long contexts, full
# batches, engines with little overhead, models whose cache is large. On the right a step is mostly something else, and
# a router may rather look after waiting times.
#
# So the overhead must be known before the gain is. Can it be read off published tables?
#
# ## What published tables can tell
#
# The table of BalanceRoute gives a time per token for every imbalance. We fit a line, a root and a logarithm to each of
# its groups, and judge each by the rows that it has not seen.

# %%
calibration = calibrate(read_rows("published:balance-route"))
for group in calibration.groups:
    print(f"{group.observed.group}: {verdict(group)}")

told = {
    group.observed.group: {one.worse for one in group.comparisons if one.told_apart} for group in calibration.groups
}
assert told["prop-g4"] == set() and told["prop-g8"] == told["azure-g8"] == {"constant"}
assert "linear" in told["prop-g16"]

# %% [markdown]
# In three groups of four the line cannot be distinguished from the logarithm. That matters, because they differ
# where no row is: towards perfect balance.

# %%
group = next(one for one in calibration.groups if one.observed.group == "prop-g8")
observed = group.observed
places = np.geomspace(1, 600, 200)
figure, axes = plt.subplots()
axes.plot(observed.columns["x"], observed.y, "ko", label="published, G = 8")
for fit in group.fits:
    if fit.law.needs:
        axes.plot(
            places, fit.predict({"x": places}), label=f"{fit.law.name}, left-out error {fit.left_out_error:.2f} ms"
        )
axes.set_xlabel("max − min (thousands of tokens)")
axes.set_ylabel("TPOT P95 (ms)")
axes.legend(fontsize=8)

near = {fit.law.name: float(fit.predict({"x": np.array([1.0])})[0]) for fit in group.fits}
print("at 1,000 tokens:", {name: round(value, 1) for name, value in near.items()})
assert near["linear"] - near["logarithmic"] > 8

# %% [markdown]
# The line says that balance is done at 78 ms; the logarithm predicts another 8 ms, which was not observed.
#
# Nine rows are few. If the truth were the line with the scatter of these rows, how often would the line be named, with
# nine rows and with four times as many?

# %%
rng = np.random.default_rng(5)
line, logarithm = (next(fit for fit in group.fits if fit.law.name == name) for name in ("linear", "logarithmic"))
scatter = line.numbers.rmse_unbiased
named = {}
for times in (1, 4):
    loads = np.tile(observed.columns["x"], times)
    outcomes = []
    for _ in range(25):
        y = line.predict({"x": loads}) + rng.normal(0, scatter, loads.size)
        drawn = Observations("", y, {"x": loads}, ("",) * loads.size)
        found = compare([fit_law(LAWS[name], drawn) for name in ("linear", "logarithmic")])[0]
        outcomes.append(found.better if found.told_apart else "neither")
    named[loads.size] = pd.Series(outcomes).value_counts().to_dict()
print(named)

assert named[36].get("linear", 0) > named[9].get("linear", 0)
assert all(count.get("logarithmic", 0) <= 2 for count in named.values())

# %% [markdown]
# So: measure your own fleet, with more than nine rows and with the loads themselves, not their spread alone. Then
# `lbopt fit` says which laws are left, and `lbopt cost --set step_time=...` prices your router by yours. The
# manual's page on hardware has the laws, the cards and their limits.
