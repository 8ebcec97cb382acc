"""Small random prefill cases whose times are short binary fractions, so that ties abound and sums are exact."""

from dataclasses import dataclass

import numpy as np
from hypothesis import strategies as st
from naive.prefill import Fleet

from lbopt.prefill import PassTime, PrefillRequests, PrefillSetting

POLICIES = ("random", "round-robin", "jsq", "jsq:by=tokens", "pooled", "spacing", "tick", "anticipating")


@dataclass
class Case:
    requests: PrefillRequests
    setting: PrefillSetting
    seed: int
    twin: Fleet


def deviations_of(error, seed):
    """The draws behind the predictions of a run."""
    return np.random.default_rng([seed, 4]).standard_normal(65_536).tolist() if error else [0.0]


@st.composite
def prefill_cases(draw, policies=POLICIES):
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    n, N, D = draw(st.integers(1, 16)), draw(st.integers(1, 4)), draw(st.integers(1, 3))
    arrival = np.sort(rng.integers(0, draw(st.sampled_from([4, 30, 120])), n)) / 8
    length = rng.integers(1, 13, n)
    hits = rng.integers(0, length[:, None, None] + 1, (n, N, D)) if draw(st.booleans()) else None
    chunk, capacity = draw(st.sampled_from([None, 1, 3, 8])), draw(st.sampled_from([None, 1, 2]))
    base, per_token, per_longest, per_mean = (
        draw(st.sampled_from(values)) for values in ([0.25, 1.0, 1.5], [0, 1 / 16], [0, 1 / 8], [0, 3 / 8])
    )
    latency = draw(st.sampled_from([0.0, 0.125, 0.5]))
    policy = draw(st.sampled_from(policies))
    interval = draw(st.sampled_from([None, 0.125, 0.5]))
    window = draw(st.sampled_from([0, 1, 3])) if interval is None else 0
    default = draw(st.sampled_from([None, 0.75])) if interval is None else None
    ahead = policy == "anticipating"
    if ahead:
        interval, window = None, draw(st.sampled_from([1, 3, 8]))
    margin, share, error = (draw(st.sampled_from(values)) for values in ([0, 0.5, 2], [0, 0.5, 1], [0, 0, 0.5, 2]))
    bypass, freest, left_over = draw(st.booleans()), draw(st.booleans()), draw(st.booleans())
    held = policy in ("pooled", "spacing", "tick")
    topology = ()
    if (held or ahead) and draw(st.booleans()):
        times = np.sort(rng.integers(0, 60, 3)) / 8
        topology = tuple(zip(times.tolist(), [*rng.integers(0, N + 1, 2).tolist(), N], strict=True))
    spec = policy
    if policy in ("spacing", "tick"):
        options = {"timer": policy, "interval": interval, "window": window, "default_pass": default}
        written = [f"{name}={value}" for name, value in options.items() if value is not None]
        spec = "staggered:" + ",".join([*written, *["idle_bypass=yes"] * bypass, *["target=free"] * freest])
    if ahead:
        spec = f"anticipating:margin={margin},spacing={share},error={error},window={window}"
        spec += "" if default is None else f",default_pass={default}"
    if held and not left_over:
        spec += ("," if ":" in spec else ":") + "ready=free"
    phases = tuple(np.sort(rng.integers(0, 8, N) / 8).tolist())
    allocations = ["round-robin", "least-loaded", "longest-first"]
    split = draw(st.sampled_from([0, 0.5, 1]))
    allocation = draw(st.sampled_from([*allocations, "backfill"] if ahead else allocations))
    engine = draw(st.sampled_from(["work-conserving", "back-to-back"]))
    limit = draw(st.sampled_from([None, None, 1, 3]))
    seed = draw(st.integers(0, 100))
    named, allocation = allocation, f"backfill:split={split}" if allocation == "backfill" else allocation
    setting = PrefillSetting(
        N, D, spec, allocation, PassTime(base, per_token, per_longest, per_mean), chunk, capacity, latency, engine,
        phases, limit, topology,
    )  # fmt: skip
    twin = Fleet(
        arrival.tolist(),
        length.tolist(),
        np.random.default_rng([seed, 1]).random(n).tolist(),
        phases,
        D,
        "jsq-tokens" if policy == "jsq:by=tokens" else policy,
        named,
        lambda loads, longest: (
            base + per_token * max(loads) + per_longest * longest + per_mean * (sum(loads) / len(loads))
        ),
        chunk or float("inf"),
        capacity or float("inf"),
        latency,
        engine == "back-to-back",
        interval,
        default or base,
        window,
        bypass,
        limit or float("inf"),
        topology,
        None if hits is None else hits.tolist(),
        freest,
        held and left_over,
        margin,
        share,
        error,
        deviations_of(error, seed),
        split,
    )
    return Case(PrefillRequests(arrival, length, hits), setting, seed, twin)
