"""What no rule that does not see the future can do: adversaries run by the simulator against rules of the table.

Each claim is a theorem of the manual's page *What no rule that does not see the future can do*. An adversary proves
its lower bound for every rule; here it meets one, and the bound is compared with what that rule did. The upper bounds
are checked on the same runs.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

import numpy as np

from lbopt.model import Fleet, Trace
from lbopt.model.integers import IntArray
from lbopt.policies import make_policy
from lbopt.simulator import ClosedLoop, SimulationSetting, simulate
from lbopt.theory.chains.online_adversaries import (
    Duel,
    apart_at_least,
    bound_to_one,
    drawn_apart,
    expected_apart,
    expected_together,
    last_is_long,
    on_one_worker,
    one_after_the_other,
    requests_apart,
    work_of,
)
from lbopt.theory.claim import Claim, Regime, crossed
from lbopt.theory.finding import Finding
from lbopt.theory.hypotheses import require
from lbopt.theory.verdict import Verdict


def playing(rule: str, G: int, B: int, seed: int) -> Callable[[Trace], tuple[IntArray, IntArray]]:
    """Return how a rule runs requests that all wait from the beginning: start and worker of each.

    Parameters
    ----------
    rule
        As `make_policy` takes it.
    G, B
        Workers, and slots of a worker.
    seed
        Of rules that draw.
    """

    def play(trace: Trace) -> tuple[IntArray, IntArray]:
        setting = SimulationSetting(fleet=Fleet(G, B), arrivals=ClosedLoop(len(trace)))
        columns = simulate(trace, make_policy(rule), setting, seed=seed).requests
        return columns["start_step"].astype(np.int64), columns["worker"].astype(np.int64)

    return play


def _require(name: str, *, rule: str, G: int, B: int, prompt: int, lasting: int) -> None:
    make_policy(rule)
    require(name, 2 <= G <= 64, "2 to 64 workers", f"G is {G}")
    require(name, 1 <= B <= 64, "1 to 64 slots a worker", f"B is {B}")
    require(name, 0 <= prompt <= 2**30, "prompts of 0 to 2^30 tokens", f"prompt is {prompt}")
    require(name, 2 <= lasting <= 10**6, "2 to 1000000 steps of those that last", f"lasting is {lasting}")


def _size(name: str, requests: int) -> None:
    require(name, requests <= 1_000_000, "at most 1000000 requests", f"there would be {requests}")


def _compared(regime: str, quantity: str, sides: tuple[int, int], least: Fraction, most: Fraction) -> list[Finding]:
    """Hold a ratio between what the adversary forces and what no rule exceeds.

    Parameters
    ----------
    regime, quantity
        Words of the report.
    sides
        What the rule paid, and what the other timetable pays.
    least, most
        The two bounds of the theorem.
    """
    reached, other = sides

    def exact(words: str, excess: Fraction) -> Finding:
        return Finding(
            regime=regime, quantity=words, kind="exact", relation="<=", measured=max(0.0, float(excess)), predicted=0.0,
            trials=1, violations=int(excess > 0), note=f"ratio {reached / other:.4f}",
        )  # fmt: skip

    return [
        exact(
            f"{quantity}: ratio below what the adversary forces, {float(least):.4f}", least - Fraction(reached, other)
        ),
        exact(f"{quantity}: ratio above what no rule exceeds, {float(most):.4f}", Fraction(reached, other) - most),
    ]


def _barriers(
    *, rule: str = "jsq-load", G: int = 2, B: int = 2, prompt: int = 1, lasting: int = 200, rounds: int = 1, seed: int
) -> list[Finding]:
    name = "online-barriers"
    _require(name, rule=rule, G=G, B=B, prompt=prompt, lasting=lasting)
    require(name, 1 <= rounds <= 100, "1 to 100 rounds", f"rounds is {rounds}")
    N = rounds * G * (1 + (G * B - 1) * lasting)
    _size(name, N)
    duel = one_after_the_other(playing(rule, G, B, seed), G, B, prompt, lasting, rounds)
    long = work_of(prompt, lasting)
    # All short ones in steps that hold at most B of them on a worker.
    least = Fraction(rounds * G * long, rounds * long + prompt * B * -(-N // (G * B)))
    regime = f"{rule}, G={G}, B={B}, prompt={prompt}, lasting={lasting}, rounds={rounds}"
    return _compared(regime, "sum of barriers", duel.barriers(), least, Fraction(G))


def _placing(
    *, rule: str = "jsq-load", G: int = 4, B: int = 4, prompt: int = 1, lasting: int = 1000, refill: int = 0, seed: int
) -> list[Finding]:
    name = "online-placing"
    _require(name, rule=rule, G=G, B=B, prompt=prompt, lasting=lasting)
    require(name, refill in (0, 1), "a refill of 0 or 1", f"refill is {refill}")
    pooled = make_policy(rule).admission == "pooled"
    require(name, pooled or not refill, "a rule with a pool where slots are refilled", f"rule is {rule}")
    _size(name, G * B * (1 + refill * lasting))
    duel = on_one_worker(playing(rule, G, B, seed), G, B, prompt, lasting, bool(refill))
    q, filled = min(B, G), B * prompt * (lasting if refill else 1)
    grown = lasting * (lasting - 1) // 2 if refill else work_of(prompt, lasting) - prompt
    least = Fraction(filled + q * grown, filled + grown)
    regime = f"{rule}, G={G}, B={B}, prompt={prompt}, lasting={lasting}" + (", slots refilled" if refill else "")
    return _compared(regime, "sum of barriers, same starts", duel.barriers(), least, Fraction(q))


def _steps(*, rule: str = "jsq-load", G: int = 2, B: int = 2, prompt: int = 1, seed: int) -> list[Finding]:
    _require("online-steps", rule=rule, G=G, B=B, prompt=prompt, lasting=2)
    m = G * B
    _size("online-steps", m * m)
    duel = last_is_long(playing(rule, G, B, seed), G, B, prompt)
    pooled = make_policy(rule).admission == "pooled"
    most = 2 - Fraction(1, m) if pooled else G + 1 - Fraction(1, B)
    return _compared(f"{rule}, G={G}, B={B}", "steps", duel.steps(), 2 - Fraction(1, m), most)


def _binding(
    *, rule: str = "jsq", G: int = 2, B: int = 2, prompt: int = 1, lasting: int = 50, blocks: int = 1, seed: int
) -> list[Finding]:
    name = "online-binding"
    _require(name, rule=rule, G=G, B=B, prompt=prompt, lasting=lasting)
    require(name, make_policy(rule).admission == "immediate", "a rule that binds on arrival", f"rule is {rule}")
    require(name, 1 <= blocks <= 1000, "1 to 1000 blocks", f"blocks is {blocks}")
    q = blocks * B
    a = (G * B - 1) * q + 1
    _size(name, G * a)
    duel = bound_to_one(playing(rule, G, B, seed), G, B, prompt, lasting, blocks)
    least = Fraction(q * lasting * (G * B + B - 1), B) / (q * lasting + -(-(G - 1) * a // (G * B)))
    regime = f"{rule}, G={G}, B={B}, lasting={lasting}, blocks={blocks}"
    return _compared(regime, "steps", duel.steps(), least, G + 1 - Fraction(1, B))


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
    _require(name, rule=rule, G=G, B=B, prompt=prompt, lasting=lasting)
    require(name, 2 <= apart <= 1000, "an overlap of at most 1 in 2 to 1000", f"apart is {apart}")
    require(name, 2 <= draws <= 10_000, "2 to 10000 draws", f"draws is {draws}")
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
    """Hold the mean ratio over draws against what the theorem says of it.

    Parameters
    ----------
    regime
        Words of the report.
    ratios
        One a draw.
    relation, predicted
        What the theorem says.
    """
    return Finding(
        regime=regime, quantity="mean ratio of sums of barriers over draws of the lengths", kind="mean",
        relation=relation, measured=float(np.mean(ratios)), predicted=predicted, trials=len(ratios),
        error=float(np.std(ratios, ddof=1) / np.sqrt(len(ratios))), dof=len(ratios) - 1,
    )  # fmt: skip


def _together(
    *, rule: str = "random", G: int = 4, B: int = 4, prompt: int = 1, lasting: int = 1000, draws: int = 200, seed: int
) -> list[Finding]:
    name = "online-randomised-placing"
    _require(name, rule=rule, G=G, B=B, prompt=prompt, lasting=lasting)
    require(name, 2 <= draws <= 10_000, "2 to 10000 draws", f"draws is {draws}")
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
_ALL = _of("fcfs", "jsq-load", "max-min", "auto", "br-0", "iqr", "round-robin", "jsq", "vllm", "sglang")
_POOLED = _of("fcfs", "jsq-load", "max-min", "auto", "br-0", "iqr", "tensorrt-llm")
_BOUND = _of("round-robin", "jsq", "vllm", "sglang", "random", "power-of-two")

CLAIMS: tuple[Claim, ...] = (
    Claim(
        name="online-barriers",
        title="The sum of barriers: G, and no rule is better",
        source="lbopt",
        statement=r"Requests of one prompt $s$ and unknown outputs, all waiting from the beginning. For every "
        r"deterministic rule, pooled or not, that may also leave slots idle, there are outputs of 1 and $T$ for which "
        r"$\sum_kM_k\ge G\,w_T/(w_T+sB(GT+1))\cdot\sum_kM^*_k$, $w_T=sT+T(T-1)/2$, which tends to $G$. No rule "
        r"exceeds $G$.",
        refuted_by="A rule below the first ratio, or above G.",
        measure=_barriers,
        quick=[{"lasting": 60}, {"lasting": 60, "rule": "auto"}, {"lasting": 60, "rule": "jsq", "G": 3}],
        full=crossed([{"lasting": 60}, {"lasting": 200, "rounds": 2}], crossed(_FLEETS[:3], _ALL)),
        expected=Verdict.HOLDS,
    ),
    Claim(
        name="online-placing",
        title="Placing alone: min(B, G), and no rule is better",
        source="lbopt",
        statement=r"Against the best workers at the rule's own starts, $\sum_kM_k$ is at most $\min(B,G)$ times the "
        r"least, for every rule. For every deterministic rule that fills all slots there are $GB$ requests of one "
        r"prompt on which it is $(Bs+qv)/(Bs+v)$ times it, $q=\min(B,G)$, $v=w_T-s$, which tends to $\min(B,G)$. With "
        r"slots that are always full it is $(BsT+qu)/(BsT+u)$, $u=T(T-1)/2$.",
        refuted_by="A rule below the second ratio, or above the first.",
        measure=_placing,
        quick=[{}, {"rule": "auto"}, {"rule": "jsq", "G": 8}, {"rule": "br-0", "G": 2, "refill": 1, "lasting": 200}],
        full=[
            *crossed([{}, {"prompt": 1000}], crossed(_FLEETS, _ALL)),
            *crossed([{"refill": 1, "lasting": 300}], crossed(_FLEETS, _POOLED)),
        ],
        expected=Verdict.HOLDS,
    ),
    Claim(
        name="online-steps",
        title="Steps of rules with a pool: 2 - 1/(G B)",
        source="Graham 1966 (upper bound); Shmoys, Wein and Williamson 1995 (lower bound), for GB slots",
        statement=r"A rule with a pool that leaves no slot idle while a request waits needs at most $2-1/(GB)$ times "
        r"the least number of steps, and for every deterministic rule there are $GB(GB-1)+1$ requests of one prompt "
        r"for which it needs as many. Rules that bind on arrival need at most $G+1-1/B$ times the least.",
        refuted_by="A rule with fewer steps than the adversary forces, or more than its bound.",
        measure=_steps,
        quick=[{}, {"rule": "auto", "G": 4}, {"rule": "jsq", "B": 1}],
        full=crossed(_FLEETS, [*_POOLED, *_BOUND]),
        expected=Verdict.HOLDS,
    ),
    Claim(
        name="online-binding",
        title="Steps of rules that bind on arrival: G + 1 - 1/B",
        source="lbopt",
        statement=r"For every deterministic rule that binds requests when they arrive, to workers that start them in "
        r"this order, there are requests of one prompt for which it needs $(G+1-1/B)/(1+O(1/T))$ times the least "
        r"number of steps, and it never needs more than $G+1-1/B$ times it. With a pool it is $2-1/(GB)$.",
        refuted_by="A rule with fewer steps than the adversary forces, or more than the bound.",
        measure=_binding,
        quick=[{}, {"rule": "round-robin", "G": 3}, {"rule": "vllm", "G": 4, "B": 1}],
        full=crossed([{}, {"lasting": 1000, "blocks": 2}], crossed(_FLEETS, _BOUND)),
        expected=Verdict.HOLDS,
    ),
    Claim(
        name="online-randomised",
        title="Drawing at random does not help: G",
        source="lbopt, by Yao's principle",
        statement=r"$N=1+KG(G-1)GBT$ requests of one prompt, of which $G$, drawn at random, take $T$ steps and the "
        r"others one. Every rule that does not know which, randomised or not, pays on average "
        r"$E\sum_kM_k\ge w_T+(G-1)\sum_dP_d\,u(\tau_d)+\frac sG(N-G-(GB-1)GT)^+$ with "
        r"$\tau_d=\min(T,\lceil d/(GB-1)\rceil-1)$, $u(\tau)=\tau(s+T-1)-\tau(\tau-1)/2$ and $P_d$ the chance that "
        r"neighbours among $G$ of $N$ positions, drawn at random, are $d$ apart, where "
        r"$\sum_kM^*_k\le w_T+sB\lceil N/(GB)\rceil$: at least $(1-1/K)\,G$ times the least as $T$ grows.",
        refuted_by="A mean ratio below it.",
        measure=_random,
        quick=[{"draws": 10}],
        full=[
            *_of("random", "jsq-load", "auto", "power-of-two"),
            *crossed([{"G": 3, "lasting": 40}], _of("random", "auto")),
        ],
        expected=Verdict.HOLDS,
    ),
    Claim(
        name="online-randomised-placing",
        title="Placing at random: the fullest of G workers with G of GB slots",
        source="lbopt, by Yao's principle",
        statement=r"All slots are filled with requests of one prompt, of which $G$, drawn at random, take $T$ steps "
        r"and the others one. Every rule, randomised or not, pays $(Bs+Ev)/(Bs+v)$ times the least $\sum_kM_k$ on "
        r"average, where $E$ is the mean number of drawn slots on the worker that has most of them, $v=w_T-s$.",
        refuted_by="Another mean ratio.",
        measure=_together,
        quick=[{"rule": "jsq-load", "draws": 100}],
        full=crossed([{"rule": "jsq-load"}, {"rule": "auto"}, {"rule": "round-robin"}], _FLEETS[1:]),
        expected=Verdict.HOLDS,
    ),
)
