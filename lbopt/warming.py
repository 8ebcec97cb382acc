"""Kernels compiled ahead: what each verb needs, in one table, and `warm_up`, which compiles it.

A kernel is compiled where it is first called, and kept on disk. `warm_up` calls all that a verb calls, on a few small
requests: the verb then compiles nothing. Parts are used rather than listed kernel by kernel, so that a new kernel below
them is compiled, too.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from lbopt import compile_progress
from lbopt.kinds import typed
from lbopt.spec import unknown
from lbopt.studies.progress import Progress, Silent

#: What each verb needs: names of `PARTS`. A verb that is not here needs nothing.
NEEDS: dict[str, tuple[str, ...]] = {
    "audit": ("simulation",),
    "check": ("simulation", "chains", "search"),
    "gap": ("simulation", "states", "search"),
    "hindsight": ("simulation", "hindsight"),
    "lookahead": ("simulation", "states", "forecasts", "windows"),
    "predict": ("forecasts",),
    "prefill": ("prefill",),
    "serve": ("live rules",),
    "simulate": ("simulation", "waiting rules"),
    "solve": ("search", "windows", "leximax", "conditions", "packaged problems"),
}


@typed
def warm_up(*verbs: str, progress: Progress | None = None) -> None:
    """Compile what verbs of the command line need, so that they compile nothing afterwards.

    Parameters
    ----------
    *verbs
        Names such as "gap" and "simulate"; none means all that need compiled code. "lookahead" is what `gap` and
        `simulate` need besides where rules look ahead.
    progress
        Shows progress; None shows nothing.

    Raises
    ------
    InputError
        If a verb is unknown, or needs nothing.
    """
    for verb in verbs:
        if verb not in NEEDS:
            raise unknown("verb to warm up", verb, NEEDS)
    wanted = {part for verb in verbs or NEEDS for part in NEEDS[verb]}
    parts = [part for part in PARTS if part in wanted]
    progress = progress or Silent()
    progress.begin("compile kernels", len(parts))
    compile_progress.said()  # the bar says it
    for part in parts:
        PARTS[part]()
        progress.advance()


def _simulation() -> None:
    """The loop with every compiled rule in it."""
    from lbopt.model import Fleet, Trace
    from lbopt.policies import make_policy
    from lbopt.simulator import SimulationSetting, simulate

    lengths = np.arange(1, 25)
    trace = Trace(prompt=10 * lengths, output=1 + lengths % 5, arrival=0.1 * lengths.astype(np.float64))
    simulate(trace, make_policy("jsq"), SimulationSetting(Fleet(2, 4)))


def _waiting_rules() -> None:
    """What the loop asks for where a rule decides in Python, pooled and on arrival, and `bf-io`'s two searches."""
    from lbopt.api import simulate

    for policy in ("bf-io", "fast-phi"):
        simulate(policy=policy, requests=40, workers=2, slots=4)
    detail = "slow=1:2,preempt=recompute"
    simulate(policy="bf-io", requests=40, workers=2, slots=4, kv_capacity=50_000, detail=detail)


def _states() -> None:
    """States sampled from runs, and rules that decide them."""
    from lbopt.api import gap

    gap(requests=120, workers=3, slots=4, states=2, policies=["br-0"], behaviours=["fcfs"], time_limit=5.0)


def _search() -> None:
    """The exact search at H = 0."""
    from lbopt.solvers.warm_up import warm

    warm("search", window=False)


def _windows() -> None:
    """The exact searches over windows, with requests that end in it and without."""
    from lbopt.model import StepProblem
    from lbopt.solvers import solve
    from lbopt.solvers.warm_up import warm

    warm("search", window=True)
    for sizes in ([5, 3, 3, 8, 1, 9, 4], [5, 3, 3]):
        solve(StepProblem.survives([9, 4, 0], [2, 1, 1], sizes, 3), "search", time_limit=1.0).certificate()


def _packaged_problems() -> None:
    """The smallest problems of the library, with their certificates; kernels are given arrays of other layouts."""
    from lbopt.instances import library
    from lbopt.studies.library.attempts import attempt

    for name in library.names("tiny"):
        attempt(library.load(name), time_limit=5.0).result.certificate()


def _conditions() -> None:
    """The exact search under conditions."""
    from lbopt.model import Conditions, StepProblem
    from lbopt.solvers import solve

    problem = StepProblem.now([9, 0, 3], [1, 2, 2], [1, 2, 4, 5, 7, 9])
    solve(problem.under(Conditions(capacity=np.array([9, 9, 12]), pace=np.array([2, 3, 2]))), "search").certificate()


def _leximax() -> None:
    """What breaks ties, at H = 0 and over windows."""
    from lbopt.model import StepProblem
    from lbopt.solvers import solve

    solve(StepProblem.now([9, 0, 3], [1, 2, 2], [1, 2, 4, 5, 7, 9]), "search", tie="leximax")
    solve(StepProblem.survives([9, 4, 0], [1, 1, 1], [5, 3, 3, 8, 1], 2), "search", tie="leximax")


def _forecasts() -> None:
    """Predictors, their forecasts in a run, and rules that use them."""
    from lbopt.api import gap, study

    study("prediction", trace="azure-like", requests=200, horizon=20, predictors=("survival", "memorised:bins=20"))
    shared = {"requests": 150, "workers": 3, "slots": 4, "states": 2, "time_limit": 5.0, "horizon": 3}
    for predictor in ("oracle", "survival"):
        gap(policies=["br-h"], behaviours=["br-h"], predictor=predictor, **shared)  # type: ignore[arg-type]


def _live_rules() -> None:
    """Every compiled rule, deciding by itself on a live fleet, pooled and on arrival, and `bf-io`'s two searches."""
    from lbopt.policies import POLICIES, CompiledPolicy, make_policy
    from lbopt.serving.rule import LiveRule, warm_rule

    for name in POLICIES:
        if name in ("eldr", "domain"):
            continue  # they go by experts, which no live router sees
        policy = make_policy(name)
        if name == "bf-io" or isinstance(policy, CompiledPolicy):
            rule = LiveRule(policy, num_workers=2, slots=4, kv_capacity=2**20)
            warm_rule(rule, num_workers=2, slots=4)


def _prefill() -> None:
    """The loop of prefill passes."""
    from lbopt.api import study

    study("prefill", trace="burstgpt-like", requests=60)


def _hindsight() -> None:
    """The searches for placements of whole runs, by exchanges and exhaustion, and the bounds of their steps."""
    from lbopt.api import in_hindsight
    from lbopt.hindsight.optimum import compile_exact

    in_hindsight(policies=["fcfs"], requests=40, workers=2, slots=5, effort=2)
    compile_exact()


def _chains() -> None:
    """Samplers of the theory's chains, and its small steps."""
    from lbopt.api import check

    check("berry-esseen-rate:rounds=yes", "fcfs-exact:G=4,p=0.3", "lemma-2-printed", "lemma-3-size", "lemma-4-printed")
    check("waiting-reference-values")


#: The parts, in the order in which they are compiled: a later one finds what an earlier one shares with it.
PARTS: dict[str, Callable[[], None]] = {
    "simulation": _simulation,
    "search": _search,
    "waiting rules": _waiting_rules,
    "states": _states,
    "windows": _windows,
    "leximax": _leximax,
    "conditions": _conditions,
    "packaged problems": _packaged_problems,
    "forecasts": _forecasts,
    "live rules": _live_rules,
    "prefill": _prefill,
    "hindsight": _hindsight,
    "chains": _chains,
}
