"""The main questions as functions: what the command line asks, asked from Python.

Each function builds the configuration that the verb of the same name builds, and returns the outcome that the verb
prints. Words are those of the command line: ``workers``, ``slots``, ``requests``. Any further field of the
configuration, the scenario or the request source can be given by its name.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lbopt.exceptions import InputError
from lbopt.instances.router_log import RouterLog
from lbopt.kinds import typed
from lbopt.model import Trace
from lbopt.policies import Policy
from lbopt.simulator import Ceilings, Run
from lbopt.simulator import ceilings as ceilings_of
from lbopt.simulator import simulate as run_policy
from lbopt.spec import unknown
from lbopt.studies.check import CheckOutcome
from lbopt.studies.configuration import Config, from_words, refuse_unknown_words
from lbopt.studies.cost import CostOutcome
from lbopt.studies.gap import GapConfig, GapOutcome, run_gap
from lbopt.studies.gap.config import DEFAULT_BEHAVIOURS, DEFAULT_POLICIES, with_training
from lbopt.studies.progress import Progress
from lbopt.studies.scenario import Scenario
from lbopt.studies.simulation import SimulationConfig, policy_looking, run_simulation
from lbopt.studies.training import refuse_logs_of_other_requests, training_for
from lbopt.studies.training import with_training as scenario_with_training

if TYPE_CHECKING:
    import pandas as pd

    from lbopt.studies.audit import AuditOfGroups, AuditOutcome, RanksOutcome
    from lbopt.studies.hindsight import HindsightOutcome


@typed
def audit(
    log: str | Path | RouterLog,
    *,
    columns: Mapping[str, str] | None = None,
    slots: int | None = None,
    policies: Sequence[str] | None = None,
    price: float | None = None,
    gpus: int | None = None,
    progress: Progress | None = None,
    **more: Any,
) -> AuditOutcome | AuditOfGroups | RanksOutcome:
    """Read a router's log and say whether another rule would serve the same requests faster.

    Parameters
    ----------
    log
        A file with one row a request, or a log that is read already; or what engines say of their ranks: their own
        log, metrics, a table of loads, or a folder of these.
    columns
        Columns that are not recognised, by quantity: ``{"worker": "pod"}``.
    slots
        Slots of a worker; None takes the most that a worker of the log ran at once.
    policies
        Rules to judge; None takes those of the command line.
    price, gpus
        Money for an hour of a GPU, and GPUs of the fleet (None = one a worker).
    progress
        Shows progress; None shows nothing.
    **more
        Further fields of `AuditConfig` by name, such as ``states`` or ``accept_misfit``; of an engine's log those of
        `RanksConfig`, such as ``kv_capacity``.

    Returns
    -------
    outcome
        An `AuditOutcome`; an `AuditOfGroups` where workers meet at several barriers; of an engine's log a
        `RanksOutcome`, which bounds what any rule can gain. Each has ``recommendation``, ``to_frame()``, ``plot()`` and
        ``notes``.

    Raises
    ------
    InputError
        If the log cannot be read, or a name or value is unknown.

    Examples
    --------
    >>> import lbopt
    >>> outcome = lbopt.audit("examples/logs/fleet.csv", policies=["jsq-load"], states=0)
    >>> outcome.recommendation.verdict, outcome.recommendation.rule
    ('switch', 'jsq-load')
    """
    from lbopt.instances.rank_log import is_rank_log
    from lbopt.studies.audit import AuditConfig, RanksConfig, audit_log, run_audit, run_ranks

    if not isinstance(log, RouterLog) and is_rank_log(log):
        named = {"columns": columns, "slots": slots, "policies": policies}
        refuse_unknown_words({name: value for name, value in named.items() if value is not None}, RanksConfig)
        return run_ranks(config_of(RanksConfig, more, log=str(log), price=price, gpus=gpus), progress)
    config = config_of(
        AuditConfig,
        more,
        log=log.name if isinstance(log, RouterLog) else str(log),
        columns=[f"{quantity}={name}" for quantity, name in (columns or {}).items()],
        slots=slots,
        rules=None if policies is None else some("policies", policies),
        price=price,
        gpus=gpus,
    )
    return audit_log(log, config, progress) if isinstance(log, RouterLog) else run_audit(config, progress)


@typed
def ceilings(
    trace: str | Path | Trace = "burstgpt-like",
    *,
    workers: int = 8,
    slots: int = 72,
    requests: int | None = None,
    seed: int = 0,
    groups: int = 1,
    **more: Any,
) -> Ceilings:
    """Say what no routing rule can pass over a whole run, whatever it knows of the future.

    Parameters
    ----------
    trace
        A trace file, the name of a fetched public trace, a seeded family, or a `Trace`, which is taken as it is.
    workers, slots
        Workers, and slots of each.
    requests
        Number of requests; None takes all of a file, or 10,000 of a family.
    seed
        Of the draw of requests.
    groups
        Fleets like this one, each with a barrier of its own; a request runs in any one of them.
    **more
        Further fields of `Scenario` or `RequestSource` by name, such as ``arrivals="trace"`` or ``load=0.95``.

    Raises
    ------
    InputError
        If a name or value is unknown, or requests draft tokens.

    Examples
    --------
    >>> import lbopt
    >>> least = lbopt.ceilings(requests=300, workers=4, slots=8)
    >>> run = lbopt.simulate(requests=300, workers=4, slots=8, policy="br-0")
    >>> bool(least.seconds <= run.metrics().whole_run_seconds)
    True
    """
    words: dict[str, Any] = {"workers": workers, "slots": slots}
    if isinstance(trace, Trace):
        chosen = trace if requests is None else trace.first(requests)
        return ceilings_of(chosen, config_of(Scenario, more, **words).setting, groups)
    scenario = config_of(Scenario, more, trace=trace, requests=requests, **words)
    return ceilings_of(scenario.requests.draw_for(seed), scenario.setting, groups)


@typed
def gap(
    trace: str | Path = "burstgpt-like",
    *,
    policies: Sequence[str] = DEFAULT_POLICIES,
    behaviours: Sequence[str] = DEFAULT_BEHAVIOURS,
    workers: int = 8,
    slots: int = 72,
    requests: int | None = None,
    progress: Progress | None = None,
    **fields: Any,
) -> GapOutcome:
    """Measure how far routing rules are from the best placement, step by step and in the long run.

    Parameters
    ----------
    trace
        A trace file, the name of a fetched public trace, or a seeded family.
    policies, behaviours
        Rules to judge, and rules under which states are sampled, as `make_policy` reads them.
    workers, slots
        Workers, and slots of each.
    requests
        Number of requests; None takes all of a file, or 10,000 of a family.
    progress
        Shows progress, for example a bar; None shows nothing.
    **fields
        Further fields of `GapConfig`, `Scenario` or `RequestSource` by name: ``states`` for each behaviour (50), each
        solved to optimality within ``time_limit`` seconds; the first ``seed`` and the number of ``seeds`` of the long
        runs, where intervals need at least two; ``arrivals="trace"``, ``load=0.95``.

    Raises
    ------
    InputError
        If a name or value is unknown.

    Examples
    --------
    >>> import lbopt
    >>> outcome = lbopt.gap(requests=300, workers=4, slots=8, states=2, policies=["jsq", "br-0"], time_limit=5.0)
    >>> outcome.count("proved") > 0
    True
    >>> list(outcome.to_frame().columns[:2])
    ['behaviour', 'policy']
    """
    config = config_of(
        GapConfig,
        fields,
        trace=trace,
        workers=workers,
        slots=slots,
        requests=requests,
        policies=some("policies", policies),
        behaviours=some("behaviours", behaviours),
    )
    return run_gap(with_training(config), progress)


@typed
def in_hindsight(
    trace: str | Path = "burstgpt-like",
    *,
    policies: Sequence[str] | None = None,
    workers: int = 8,
    slots: int = 72,
    requests: int | None = None,
    progress: Progress | None = None,
    **fields: Any,
) -> HindsightOutcome:
    """Say how far rules were from what was possible with all lengths known.

    Parameters
    ----------
    trace
        A trace file, the name of a fetched public trace, or a seeded family.
    policies
        Rules to judge, as `make_policy` reads them; None takes the default ones.
    workers, slots
        Workers, and slots of each.
    requests
        Number of requests; None takes all of a file, or 10,000 of a family.
    progress
        Shows progress; None shows nothing.
    **fields
        Further fields of `HindsightConfig`, `Scenario` or `RequestSource` by name, such as ``arrivals="trace"``:
        ``effort`` is the exchanges of chains that the search tries for each step of a timetable (20), and, without a
        limit of time, seconds of the exact search of a small run (at most 100 requests and 4 slots a worker);
        ``time_limit`` the seconds of search for each timetable; ``seed`` that of the requests, the runs and the search.

    Raises
    ------
    InputError
        If a name or value is unknown.

    Examples
    --------
    >>> import lbopt
    >>> outcome = lbopt.in_hindsight(policies=["jsq", "auto"], requests=200, workers=3, slots=4, effort=2)
    >>> [one.rule for one in outcome.rules]
    ['jsq', 'auto']
    >>> all(1 - 1e-9 <= one.ratio.low <= one.ratio.high for one in outcome.rules)
    True
    """
    from lbopt.studies.hindsight import HindsightConfig, run_hindsight
    from lbopt.studies.hindsight.study import DEFAULT_POLICIES as HINDSIGHT_POLICIES

    chosen = some("policies", HINDSIGHT_POLICIES if policies is None else policies)
    words = {"trace": trace, "policies": chosen, "workers": workers, "slots": slots, "requests": requests}
    return run_hindsight(config_of(HindsightConfig, fields, **words), progress)


@typed
def simulate(
    trace: str | Path | Trace = "burstgpt-like",
    policy: str | Policy = "br-0",
    *,
    workers: int = 8,
    slots: int = 72,
    requests: int | None = None,
    seed: int = 0,
    **fields: Any,
) -> Run:
    """Run one routing rule over a trace until every request has ended.

    Parameters
    ----------
    trace
        A trace file, the name of a fetched public trace, a seeded family, or a `Trace`, which is run as it is.
    policy
        A rule as `make_policy` reads it, or a policy object.
    workers, slots
        Workers, and slots of each.
    requests
        Number of requests; None takes all of a file, or 10,000 of a family.
    seed
        Of the draw of requests and of rules that draw random numbers.
    **fields
        Further fields of `SimulationConfig`, `Scenario` or `RequestSource` by name, such as ``arrivals="trace"`` or
        ``load=0.95``; ``horizon`` steps that a rule looks ahead by a ``predictor``, where it can.

    Raises
    ------
    InputError
        If a name or value is unknown.

    Examples
    --------
    >>> import lbopt
    >>> run = lbopt.simulate(policy="br-0", requests=300, workers=4, slots=8)
    >>> run
    <Run br-0 (pooled) on burstgpt-like: 300 requests, 4 workers, ... steps>
    >>> bool(run.metrics().imbalance_tokens > 0)
    True
    """
    words: dict[str, Any] = {"workers": workers, "slots": slots, "requests": requests}
    if isinstance(policy, str) and not isinstance(trace, Trace):
        config = config_of(SimulationConfig, fields, trace=trace, policy=policy, seed=seed, **words)
        return run_simulation(config).run
    horizon, predictor = fields.pop("horizon", None), fields.pop("predictor", None)
    if isinstance(policy, str):
        policy = policy_looking(policy, horizon, predictor)
    elif horizon or predictor:
        raise InputError(f"policy '{policy.name}' is an object, built already; leave horizon and predictor out")
    if isinstance(trace, Trace):
        scenario = config_of(Scenario, fields, workers=workers, slots=slots)
        return run_policy(trace if requests is None else trace.first(requests), policy, scenario.setting, seed=seed)
    scenario = scenario_with_training(config_of(Scenario, fields, trace=trace, **words), [policy])
    refuse_logs_of_other_requests(scenario.requests, [policy])
    training = training_for(scenario, [policy], seed)
    return run_policy(scenario.requests.draw_for(seed), policy, scenario.setting, seed=seed, training=training)


@typed
def check(*claims: str, full: bool = False, seed: int = 0, progress: Progress | None = None) -> CheckOutcome:
    """Check theorems and lemmas by their names, as printed and as corrected.

    Parameters
    ----------
    *claims
        Names from the ledger, optionally with one regime: ``"theorem-2:G=16,p=0.2"``. None names the whole ledger.
    full
        Whether to measure the regimes of the full level, which takes minutes.
    seed
        Seed of the samples.
    progress
        Shows progress; None shows nothing.

    Raises
    ------
    InputError
        If a claim is unknown or does not speak of a value.

    Examples
    --------
    >>> import lbopt
    >>> outcome = lbopt.check("lemma-1")
    >>> outcome.claims[0].verdict.value
    'holds'
    """
    from lbopt.studies.check import CheckConfig, run_check

    level = "full" if full else "quick"
    return run_check(CheckConfig.of(claims, everything=not claims, level=level, seed=seed), progress)


@typed
def cost(
    source: str | Path | None = None,
    *,
    devices: Sequence[str] | None = None,
    progress: Progress | None = None,
    **fields: Any,
) -> CostOutcome:
    """Price the imbalance of a fleet in milliseconds, joules and money.

    Parameters
    ----------
    source
        Output folder of `lbopt gap` or `lbopt simulate`; None prices plain numbers.
    devices
        Names of device cards; None takes the default ones.
    progress
        Shows progress; None shows nothing.
    **fields
        Fields of `LoadsAsked` and `CostConfig` by name. Plain numbers are ``mean_load`` and ``imbalance`` (tokens) with
        ``workers`` and ``running`` (requests of a worker), or ``loads``. Of a folder ``router`` names today's rule,
        ``what_if`` other fleets, and ``allow_code`` lets policy files run that it names. ``model`` and ``carbon`` are
        examples of the others.

    Raises
    ------
    InputError
        If a name is unknown, or both a folder and numbers are given.

    Examples
    --------
    >>> import lbopt
    >>> outcome = lbopt.cost(mean_load=85_000, imbalance=200_000, workers=8, running=35, devices=["h800"], draws=200)
    >>> outcome.devices[0].card.name
    'h800'
    """
    from lbopt.report.cost_question import read_question
    from lbopt.studies.cost import CostConfig
    from lbopt.studies.cost.source import LoadsAsked

    refuse_unknown_words(fields, CostConfig, LoadsAsked)
    given = fields | {"source": None if source is None else Path(source)}
    return read_question(given | ({} if devices is None else {"devices": some("devices", devices)})).price(progress)


def list_policies() -> pd.DataFrame:
    """Return the routing rules that `make_policy` knows, one row each, with their options.

    Examples
    --------
    >>> import lbopt
    >>> "br-0" in set(lbopt.list_policies()["policy"])
    True
    """
    import pandas as pd

    from lbopt.policies.table import describe_policies

    return pd.DataFrame(
        [
            {
                "policy": rule.name,
                "options": ", ".join(f"{name}={default}" for name, default in rule.options.items()),
                "description": rule.does,
                "needs": rule.needs,
                "admission": rule.admission,
                "source": rule.source,
            }
            for rule in describe_policies()
        ]
    )


@typed
def study(
    name: str,
    *,
    progress: Progress | None = None,
    store: str | Path | None = None,
    engine: str = "serial",
    **config: Any,
) -> Any:
    """Run one of the studies that have no function of their own here.

    Parameters
    ----------
    name
        "misprediction", "prediction", "prefill", "batches", "scaling", "stale", "staggered", "locality" or "placement".
    progress
        Shows progress; None shows nothing.
    store
        File that keeps the answers of tasks, so that the same call goes on where it was stopped; for studies of tasks.
    engine
        Where tasks run, e.g. "joblib:jobs=2"; for studies of tasks.
    **config
        Fields of the study's configuration by name. A study of requests also takes ``trace``, ``requests`` (their
        number), ``workers``, ``slots`` and the fields of `Scenario` and `RequestSource`.

    Returns
    -------
    outcome
        With ``to_frame()``, ``plot()`` and ``notes``.

    Raises
    ------
    InputError
        If the study, a field or a value is unknown.

    Examples
    --------
    >>> import lbopt
    >>> lbopt.study("prediction", requests=400, horizon=20, predictors=["survival"])
    <PredictionOutcome burstgpt-like: 1 scores>
    """
    from lbopt.studies.registry import STUDIES, find_study

    if name in _OWN:
        raise InputError(f"study '{name}' is run by {_OWN[name]}")
    if name not in STUDIES:
        raise unknown("study", name, [one for one in STUDIES if one not in _OWN])
    found = find_study(name)
    execution: dict[str, Any] = {}
    if found.tasks:
        execution = {"store": None if store is None else Path(store), "engine": engine}
    elif store is not None or engine != "serial":
        raise InputError(f"study '{name}' does not run as tasks; leave store and engine out")
    return found.run(config_of(found.config, config), progress, **execution)


#: Studies with a function or a verb of their own.
_OWN = {
    "audit": "lbopt.audit",
    "gap": "lbopt.gap",
    "hindsight": "lbopt.in_hindsight",
    "simulation": "lbopt.simulate",
    "check": "lbopt.check",
    "cost": "lbopt.cost",
}


def config_of(kind: type[Config], more: Mapping[str, Any], **words: Any) -> Config:
    """Build a configuration from the arguments of a function here, and further words that its fields must know."""
    refuse_unknown_words(more, kind)
    given = {**more, **words}
    if isinstance(given.get("trace"), Path):
        given["trace"] = str(given["trace"])
    return from_words(kind, given)


def some(what: str, names: Sequence[str]) -> tuple[str, ...]:
    """Return the names, of which there has to be one."""
    if not len(names):
        raise InputError(f"{what} is empty; name at least one, or leave {what} out")
    return tuple(names)
