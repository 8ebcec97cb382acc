"""What no rule can do that counts requests or does not see the future: adversaries, run by the simulator.

The shortest queue and round-robin can be G times off (BF-IO, appendix A.1.1). Each other claim is a theorem of the
manual's page *What no rule that does not see the future can do*. An adversary proves its lower bound for every rule;
here it meets one, and the bound is compared with what that rule did. The upper bounds are checked on the same runs.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

import numpy as np

from lbopt.hardware import AffineStepTime
from lbopt.model import Fleet, Trace
from lbopt.model.integers import IntArray
from lbopt.policies import Policy, make_policy
from lbopt.simulator import ClosedLoop, Run, SimulationSetting, simulate
from lbopt.theory.chains.adversaries import (
    TIES,
    Duel,
    Ints,
    Layout,
    apart_at_least,
    bound_to_one,
    burst,
    drawn_apart,
    expected_apart,
    expected_together,
    last_is_long,
    level_rule,
    on_one_worker,
    one_after_the_other,
    requests_apart,
    shortest_queue,
    strict,
    work_of,
)
from lbopt.theory.chains.batch_means import Average
from lbopt.theory.claim import Claim, Regime, claim, crossed
from lbopt.theory.finding import Finding
from lbopt.theory.regime import Asked, between, measured, one_of, require

_SECONDS_PER_TOKEN = 2.0**-20  # a power of two: step times of whole loads are exact


def _compare(layout: Layout, policy: Policy, G: int, n: int, s_H: int, sync: float) -> list[Finding]:
    """Run the rule and its balanced counterpart; return loads and step times from the steps of heavy requests alone."""
    trace = layout.trace
    setting = SimulationSetting(
        fleet=Fleet(G, layout.slots),
        arrivals=ClosedLoop(layout.at_once),
        step_time=AffineStepTime(sync * s_H * _SECONDS_PER_TOKEN, _SECONDS_PER_TOKEN),
    )
    run, level = simulate(trace, policy, setting), simulate(trace, level_rule(G, s_H), setting)
    both_run = min(run.num_steps, level.num_steps)
    all_heavy = (run.steps["active"][:both_run] == n) & (level.steps["active"][:both_run] == n)
    alone = layout.alone_from + np.flatnonzero(all_heavy[layout.alone_from :])
    size = s_H + alone  # of every heavy request, at each of these steps
    share, regime = -(-n // G), f"G={G}, n={n}, s_H={s_H}, T_sync={sync:g} tau_H, {trace.name}, {policy.name}"

    def exact(quantity: str, misses: Ints) -> Finding:
        none = {} if misses.size else {"violations": 1}  # no such step: the trace was not laid out as said
        return Finding.exact(regime, quantity, misses, **none)

    def computed(quantity: str, measured: float, predicted: float, relation: str = "=") -> Finding:
        more = {"tolerance": 1e-12, "trials": alone.size}
        return Finding.computed(regime, quantity, measured, relation, predicted, **more)

    def heaviest(of: Run) -> Ints:
        found: Ints = of.steps["barrier_max"][alone]
        return found

    both = [
        exact("max load away from n heavy requests, tokens", np.abs(heaviest(run) - n * size)),
        exact("max load of the balanced rule away from ceil(n/G), tokens", np.abs(heaviest(level) - share * size)),
    ]
    if alone.size == 0:
        return both
    seconds, level_seconds = run.steps["seconds"][alone[-1]], level.steps["seconds"][alone[-1]]
    cost, fixed = size[-1] * _SECONDS_PER_TOKEN, setting.form.fixed
    return [
        *both,
        computed("ratio of max loads", float(heaviest(run)[-1] / heaviest(level)[-1]), n / share),
        computed("step time, s, at least n tau_H + T_sync", float(seconds), n * cost + fixed, ">="),
        computed(
            "ratio of step times", float(seconds / level_seconds), float((n * cost + fixed) / (share * cost + fixed))
        ),
    ]


_BURST: dict[str, tuple[Asked, ...]] = {
    "G": between(2, 1024, "2 to 1024 workers"),
    "n": between(1, 1000, "1 to 1000 heavy requests"),
    "s_H": between(2, 2**40, "heavy requests of 2 to 2^40 tokens"),
    "steps": between(1, 10_000, "1 to 10000 steps of heavy requests alone"),
    "sync": between(0, 1e6, "a T_sync of 0 to 1000000 tau_H"),
}


def _require_few(name: str, G: int, n: int) -> None:
    require(name, G * n <= 200_000, "at most 200000 requests, G n", f"G n is {G * n}")


@measured("jsq-adversary", **_BURST, ties=one_of(TIES[:2], "ties to the lowest or the highest number:"))
def _jsq(
    *, G: int = 8, n: int = 16, s_H: int = 100_000, steps: int = 20, sync: float = 0.1, ties: str = "lowest", seed: int
) -> list[Finding]:
    _require_few("jsq-adversary", G, n)
    rule = shortest_queue(ties, seed)
    layout = strict(G, n, s_H, steps, ties)
    rows = _compare(layout, rule, G, n, s_H, sync)
    quantity = "heavy requests that do not find their worker strictly the emptiest"
    strictly = Finding.exact(rows[0].regime, quantity, layout.not_strict, trials=n, violations=layout.not_strict)
    return [*_compare(burst(G, n, s_H, steps), rule, G, n, s_H, sync), *rows, strictly]


@measured("jsq-adversary-random-ties", **_BURST)
def _jsq_random(
    *, G: int = 8, n: int = 16, s_H: int = 100_000, steps: int = 20, sync: float = 0.1, seed: int
) -> list[Finding]:
    _require_few("jsq-adversary-random-ties", G, n)
    return _compare(burst(G, n, s_H, steps), shortest_queue("random", seed), G, n, s_H, sync)


@measured("round-robin-adversary", **_BURST)
def _round_robin(
    *, G: int = 8, n: int = 16, s_H: int = 100_000, steps: int = 20, sync: float = 0.1, seed: int
) -> list[Finding]:
    _require_few("round-robin-adversary", G, n)
    return _compare(burst(G, n, s_H, steps), make_policy("round-robin"), G, n, s_H, sync)


_FULL = [
    {"G": G, "n": n, "s_H": 10_000_000, "sync": sync}
    for G, n in ((2, 2), (2, 7), (4, 4), (8, 20), (16, 64), (32, 96))
    for sync in (0.0, 0.1, 10.0)
]

_OF_COUNTING: tuple[Claim, ...] = (
    claim(
        "jsq-adversary",
        _jsq,
        quick=[{}, {"G": 4, "n": 6, "ties": "highest"}],
        full=[*_FULL, *({**regime, "ties": "highest"} for regime in _FULL[::3])],
    ),
    claim(
        "jsq-adversary-random-ties",
        _jsq_random,
        quick=[{}],
        full=[{"G": G, "n": n, "s_H": 10_000_000} for G, n in ((2, 8), (8, 20), (32, 96))],
    ),
    claim("round-robin-adversary", _round_robin, quick=[{}, {"G": 4, "n": 6}], full=_FULL),
)


def playing(rule: str, G: int, B: int, seed: int) -> Callable[[Trace], tuple[IntArray, IntArray]]:
    """Return how a rule runs requests that all wait from the beginning: start and worker of each.

    Parameters
    ----------
    rule
        As `make_policy` takes it.
    """

    def play(trace: Trace) -> tuple[IntArray, IntArray]:
        setting = SimulationSetting(fleet=Fleet(G, B), arrivals=ClosedLoop(len(trace)))
        columns = simulate(trace, make_policy(rule), setting, seed=seed).requests
        return columns["start_step"].astype(np.int64), columns["worker"].astype(np.int64)

    return play


_ASKED: dict[str, tuple[Asked, ...]] = {
    "rule": (Asked(lambda rule: bool(make_policy(rule).name), "a rule"),),
    "G": between(2, 64, "2 to 64 workers"),
    "B": between(1, 64, "1 to 64 slots a worker"),
    "prompt": between(0, 2**30, "prompts of 0 to 2^30 tokens"),
    "lasting": between(2, 10**6, "2 to 1000000 steps of those that last"),
    "rounds": between(1, 100, "1 to 100 rounds"),
    "refill": between(0, 1, "a refill of 0 or 1"),
    "blocks": between(1, 1000, "1 to 1000 blocks"),
    "apart": between(2, 1000, "an overlap of at most 1 in 2 to 1000"),
    "draws": between(2, 10_000, "2 to 10000 draws"),
}


def _size(name: str, requests: int) -> None:
    require(name, requests <= 1_000_000, "at most 1000000 requests", f"there would be {requests}")


def _compared(regime: str, quantity: str, sides: tuple[int, int], least: Fraction, most: Fraction) -> list[Finding]:
    """Hold a ratio between what the adversary forces and what no rule exceeds.

    Parameters
    ----------
    sides
        What the rule paid, and what the other timetable pays.
    """
    reached, other = sides

    def exact(words: str, excess: Fraction) -> Finding:
        return Finding.exact(regime, words, max(0.0, float(excess)), note=f"ratio {reached / other:.4f}")

    return [
        exact(
            f"{quantity}: ratio below what the adversary forces, {float(least):.4f}", least - Fraction(reached, other)
        ),
        exact(f"{quantity}: ratio above what no rule exceeds, {float(most):.4f}", Fraction(reached, other) - most),
    ]


@measured("online-barriers", **_ASKED)
def _barriers(
    *, rule: str = "jsq-load", G: int = 2, B: int = 2, prompt: int = 1, lasting: int = 200, rounds: int = 1, seed: int
) -> list[Finding]:
    N = rounds * G * (1 + (G * B - 1) * lasting)
    _size("online-barriers", N)
    duel = one_after_the_other(playing(rule, G, B, seed), G, B, prompt, lasting, rounds)
    long = work_of(prompt, lasting)
    # All short ones in steps that hold at most B of them on a worker.
    least = Fraction(rounds * G * long, rounds * long + prompt * B * -(-N // (G * B)))
    regime = f"{rule}, G={G}, B={B}, prompt={prompt}, lasting={lasting}, rounds={rounds}"
    return _compared(regime, "sum of barriers", duel.barriers(), least, Fraction(G))


@measured("online-placing", **_ASKED)
def _placing(
    *, rule: str = "jsq-load", G: int = 4, B: int = 4, prompt: int = 1, lasting: int = 1000, refill: int = 0, seed: int
) -> list[Finding]:
    name = "online-placing"
    pooled = make_policy(rule).admission == "pooled"
    require(name, pooled or not refill, "a rule with a pool where slots are refilled", f"rule is {rule}")
    _size(name, G * B * (1 + refill * lasting))
    duel = on_one_worker(playing(rule, G, B, seed), G, B, prompt, lasting, bool(refill))
    q, filled = min(B, G), B * prompt * (lasting if refill else 1)
    grown = lasting * (lasting - 1) // 2 if refill else work_of(prompt, lasting) - prompt
    least = Fraction(filled + q * grown, filled + grown)
    regime = f"{rule}, G={G}, B={B}, prompt={prompt}, lasting={lasting}" + (", slots refilled" if refill else "")
    return _compared(regime, "sum of barriers, same starts", duel.barriers(), least, Fraction(q))


@measured("online-steps", **_ASKED)
def _steps(*, rule: str = "jsq-load", G: int = 2, B: int = 2, prompt: int = 1, seed: int) -> list[Finding]:
    m = G * B
    _size("online-steps", m * m)
    duel = last_is_long(playing(rule, G, B, seed), G, B, prompt)
    pooled = make_policy(rule).admission == "pooled"
    most = 2 - Fraction(1, m) if pooled else G + 1 - Fraction(1, B)
    return _compared(f"{rule}, G={G}, B={B}", "steps", duel.steps(), 2 - Fraction(1, m), most)


@measured("online-binding", **_ASKED)
def _binding(
    *, rule: str = "jsq", G: int = 2, B: int = 2, prompt: int = 1, lasting: int = 50, blocks: int = 1, seed: int
) -> list[Finding]:
    name = "online-binding"
    require(name, make_policy(rule).admission == "immediate", "a rule that binds on arrival", f"rule is {rule}")
    q = blocks * B
    a = (G * B - 1) * q + 1
    _size(name, G * a)
    duel = bound_to_one(playing(rule, G, B, seed), G, B, prompt, lasting, blocks)
    least = Fraction(q * lasting * (G * B + B - 1), B) / (q * lasting + -(-(G - 1) * a // (G * B)))
    regime = f"{rule}, G={G}, B={B}, lasting={lasting}, blocks={blocks}"
    return _compared(regime, "steps", duel.steps(), least, G + 1 - Fraction(1, B))


@measured("online-randomised", **_ASKED)
def _random(
    *, rule: str = "random", G: int = 2, B: int = 1, prompt: int = 1, lasting: int = 200, apart: int = 10,
    draws: int = 100, seed: int,
) -> list[Finding]:  # fmt: skip
    """Draw which requests last, and hold the mean ratio against an expectation that is computed exactly.

    Where the drawn requests stand in the trace is known for each draw, and its mean is known, too. What a draw is above
    that mean is taken from its ratio (a control variate): the mean stays what it is for every rule, and the noise of a
    rule that starts requests in their order all but vanishes.
    """
    name = "online-randomised"
    N = requests_apart(G, B, lasting, apart)
    _size(name, N)
    expected = expected_apart(N, G, B, prompt, lasting)
    ratios, other = [], 0
    for draw in range(draws):
        duel: Duel = drawn_apart(playing(rule, G, B, seed + draw), G, B, prompt, lasting, apart, seed + draw)
        reached, other = duel.barriers()
        gaps = np.diff(np.flatnonzero(duel.trace.output == lasting))
        above = float(apart_at_least(gaps, G, B, prompt, lasting).sum()) - (G - 1) * expected
        ratios.append((reached - above) / other)
    beside = Fraction(prompt * max(0, N - G - (G * B - 1) * G * lasting), G)
    least = (work_of(prompt, lasting) + (G - 1) * expected + float(beside)) / other
    regime = f"{rule}, G={G}, B={B}, prompt={prompt}, lasting={lasting}, N={N}"
    return [_mean(regime, ratios, ">=", least)]


def _mean(regime: str, ratios: list[float], relation: str, predicted: float) -> Finding:
    """Hold the mean ratio over draws against what the theorem says of it."""
    quantity = "mean ratio of sums of barriers over draws of the lengths"
    return Average.of(ratios, len(ratios)).finding(regime, quantity, predicted, relation)


@measured("online-randomised-placing", **_ASKED)
def _together(
    *, rule: str = "random", G: int = 4, B: int = 4, prompt: int = 1, lasting: int = 1000, draws: int = 200, seed: int
) -> list[Finding]:
    name = "online-randomised-placing"
    drawn = np.random.default_rng(seed)
    grown = work_of(prompt, lasting) - prompt
    ratios = []
    for draw in range(draws):
        output = np.ones(G * B, dtype=np.int64)
        output[drawn.choice(G * B, G, replace=False)] = lasting
        trace = Trace(prompt=np.full(G * B, prompt), output=output)
        start, worker = playing(rule, G, B, seed + draw)(trace)
        # A rule that binds at random may leave slots empty; the theorem is about rules that fill them.
        require(name, not start.any(), "a rule that fills all slots at once", f"rule is {rule}")
        reached, other = Duel(G, B, trace, (start, worker), (start, worker)).barriers()[0], B * prompt + grown
        ratios.append(reached / other)
    E = expected_together(G, B)
    regime = f"{rule}, G={G}, B={B}, prompt={prompt}, lasting={lasting}"
    return [_mean(regime, ratios, "=", (B * prompt + E * grown) / (B * prompt + grown))]


def _of(*rules: str) -> list[Regime]:
    return [{"rule": rule} for rule in rules]


_FLEETS: list[Regime] = [{"G": 2, "B": 1}, {"G": 2, "B": 3}, {"G": 3, "B": 2}, {"G": 4, "B": 4}]
_ALL = _of(*("fcfs", "jsq-load", "max-min", "auto", "br-0", "iqr", "round-robin", "jsq", "vllm", "sglang"))
_POOLED = _of("fcfs", "jsq-load", "max-min", "auto", "br-0", "iqr", "tensorrt-llm")
_BOUND = _of("round-robin", "jsq", "vllm", "sglang", "random", "power-of-two")

_OF_LENGTHS: tuple[Claim, ...] = (
    claim(
        "online-barriers",
        _barriers,
        quick=[{"lasting": 60}, {"lasting": 60, "rule": "auto"}, {"lasting": 60, "rule": "jsq", "G": 3}],
        full=crossed([{"lasting": 60}, {"lasting": 200, "rounds": 2}], crossed(_FLEETS[:3], _ALL)),
    ),
    claim(
        "online-placing",
        _placing,
        quick=[{}, {"rule": "auto"}, {"rule": "jsq", "G": 8}, {"rule": "br-0", "G": 2, "refill": 1, "lasting": 200}],
        full=[
            *crossed([{}, {"prompt": 1000}], crossed(_FLEETS, _ALL)),
            *crossed([{"refill": 1, "lasting": 300}], crossed(_FLEETS, _POOLED)),
        ],
    ),
    claim(
        "online-steps",
        _steps,
        quick=[{}, {"rule": "auto", "G": 4}, {"rule": "jsq", "B": 1}],
        full=crossed(_FLEETS, [*_POOLED, *_BOUND]),
    ),
    claim(
        "online-binding",
        _binding,
        quick=[{}, {"rule": "round-robin", "G": 3}, {"rule": "vllm", "G": 4, "B": 1}],
        full=crossed([{}, {"lasting": 1000, "blocks": 2}], crossed(_FLEETS, _BOUND)),
    ),
    claim(
        "online-randomised",
        _random,
        quick=[{"draws": 10}],
        full=[
            *_of("random", "jsq-load", "auto", "power-of-two"),
            *crossed([{"G": 3, "lasting": 40}], _of("random", "auto")),
        ],
    ),
    claim(
        "online-randomised-placing",
        _together,
        quick=[{"rule": "jsq-load", "draws": 100}],
        full=crossed([{"rule": "jsq-load"}, {"rule": "auto"}, {"rule": "round-robin"}], _FLEETS[1:]),
    ),
)
CLAIMS = (*_OF_COUNTING, *_OF_LENGTHS)
