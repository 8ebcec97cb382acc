"""What to do: which rule to switch to and what that is worth, or that nothing is to be gained, and why.

A rule is recommended where its interval lies below zero, it gains at least half a per cent, and requests do not wait
longer for it: the upper end of the mean wait's change is at most a step, and the 99 % quantile grows by at most a long
one. Of the rules left, the one with the least time per token is taken, or one within half a per cent of it that binds
on arrival,
best one that an engine ships. Where a queue is needed, `auto` is taken unless its interval says that it loses to the
best: which of several rules is ahead in one log is partly chance. The best rule without a queue is named beside it.

The money is the price of the workers that the rule needs no longer to serve the same requests as fast as the log did:
share of workers * GPUs * price * 730 hours a month. Time per token alone is no money.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from lbopt.policies.table import ABOUT
from lbopt.studies.audit.config import AuditConfig
from lbopt.studies.audit.findings import Finding
from lbopt.studies.audit.happened import Happened, Misfit
from lbopt.studies.audit.law_from_log import LawFromLog
from lbopt.studies.audit.rules import RuleRun

#: The law must give the log's own times within this share.
MOST_MISFIT = 0.05
#: ... and in each window of time within this one.
MOST_MISFIT_OF_A_WINDOW = 0.10
LEAST_GAIN = 0.005
#: Where workers wait for less than this share of the time, no rule gains much.
_LITTLE_IDLE = 0.02
#: Lifetimes of a request (95 % quantile) that a log has to last.
LEAST_LIFETIMES = 5
#: The rule that lbopt recommends where a router has a queue.
SAFE = "auto"
#: A simpler rule is preferred where it is behind by no more than this share of the time per token.
NEARLY = 0.005
HOURS_A_MONTH = 730

#: How rules are switched on where engines have them; sources in the manual, page *audit*.
IN_ENGINES = {
    "round-robin": "most routers' default, for example --policy round_robin of vllm-router and sglang-router",
    "random": "--policy random of vllm-router and sglang-router",
    "power-of-two": "--policy power_of_two of vllm-router and sglang-router",
    "jsq": "SGLang: --load-balance-method total_requests; vLLM's own balancer is close to it",
    "jsq-load:admission=immediate": "SGLang: --load-balance-method total_tokens",
    "vllm": "vLLM: its own balancer between data-parallel ranks, since pull request 49204",
    "sglang": "SGLang: --load-balance-method total_tokens",
    "tensorrt-llm": "TensorRT-LLM: its default with attention data parallelism",
    "tpu-inference": "tpu-inference: its scheduler of data-parallel ranks",
    "smg": "smg: its policy least_load",
    "dynamo": "Dynamo: its KV router in front of decode workers",
    "llm-d": "llm-d: the scorers of queues, running requests and KV cache, with equal weights",
    "lmdeploy": "LMDeploy: its proxy's default",
    "lightllm": "LightLLM: its default between data-parallel ranks",
    "vllm-ascend": "vllm-ascend: the example proxy for prefill apart from decode",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Recommendation:
    """What to do.

    Parameters
    ----------
    verdict
        "switch", "stay" or "withheld".
    rule
        The rule to switch to; None where there is none.
    change, change_interval
        Of the mean time per token, as a share: -0.06 is 6 % less.
    workers
        Workers that the rule needs to be no slower than the log.
    per_month
        Money for the others in a month; None without a price.
    sentences
        The paragraph, sentence by sentence.
    """

    verdict: str
    rule: str | None = None
    change: float | None = None
    change_interval: tuple[float, float] | None = None
    workers: int | None = None
    per_month: float | None = None
    sentences: tuple[str, ...] = ()

    def __str__(self) -> str:
        return " ".join(self.sentences)

    def to_dict(self) -> dict[str, Any]:
        """Return it as plain data."""
        return asdict(self)


def recommend(
    config: AuditConfig,
    law: LawFromLog,
    happened: Happened,
    findings: Sequence[Finding],
    runs: Sequence[RuleRun],
    *,
    needed: int | None = None,
    knows_waits: bool = True,
) -> Recommendation:
    """Return what to do.

    Parameters
    ----------
    runs
        The log itself, then each rule; empty where none was run.
    needed
        Workers that the rule recommended needs to be no slower than the log; None where that is not known.
    knows_waits
        Whether the log has arrivals.
    """
    why = _withheld(config, law, happened, findings, runs)
    if why is not None:
        return Recommendation(verdict="withheld", sentences=(f"No recommendation: {why}",))
    if not law.is_sure_of_slope:
        if (at_most := _most_idle(law, happened)) > _LITTLE_IDLE and not config.accept_misfit:
            return Recommendation(verdict="withheld", sentences=(_not_identified(law, happened, at_most),))
        return Recommendation(
            verdict="stay",
            sentences=(
                "Stay with the present rule: in this log a step takes no longer when its heaviest worker holds more "
                "tokens, so balance does not buy time.",
            ),
        )
    step = happened.mean_step_seconds
    gaining = [run for run in runs[1:] if run.change_interval[1] < 0 and run.change <= -LEAST_GAIN]
    fitting = sorted(
        (run for run in gaining if _waits_no_longer(run, runs[0], happened)), key=lambda run: run.tpot_mean
    )
    if not fitting:
        return _stay(happened, runs, gaining)
    best = _simplest(fitting)
    waits = f", {_waits(best, runs[0], step)}" if knows_waits else "; the log has no arrivals to judge waits by"
    sentences = [f"Switch to {best.rule}: {_percent(best.change)} time per token ({_interval(best)}){waits}."]
    month, sized = _worth(config, happened, needed)
    sentences += [*sized, *_queue(best, fitting), _how(best.rule)]
    return Recommendation(
        verdict="switch",
        rule=best.rule,
        change=best.change,
        change_interval=best.change_interval,
        workers=needed,
        per_month=month,
        sentences=tuple(sentences),
    )


def _withheld(
    config: AuditConfig, law: LawFromLog, happened: Happened, findings: Sequence[Finding], runs: Sequence[RuleRun]
) -> str | None:
    """Return why there is no recommendation, if so."""
    if happened.workers < 2:
        return "the log has one worker, so there is nothing to be balanced."
    forbidding = [finding.kind for finding in findings if finding.forbids]
    if forbidding:
        return "these workers seem not to meet at a barrier, see below."
    if not config.accept_misfit:
        if law.per_token_interval[1] < 0:
            return (
                "in this log steps get shorter when the heaviest worker holds more tokens, as they seem to where rows "
                "are missing. Complete the log, or add accept_misfit=yes."
            )
        if happened.lifetimes < LEAST_LIFETIMES:
            return (
                f"the log lasts only {happened.lifetimes:.1f} times as long as its requests do (95 % quantile); "
                "requests that began before it, and are not in it, would weigh too much. Take a log at least "
                f"{LEAST_LIFETIMES} times as long, or add accept_misfit=yes."
            )
        if happened.misfit.follows_something_unseen:
            return _unseen(happened)
        if not happened.misfit.within(MOST_MISFIT, MOST_MISFIT_OF_A_WINDOW):
            return _misfit(happened)
    return "no rule was run to its end." if len(runs) < 2 and law.per_token > 0 else None


def _percent(share: float) -> str:
    """Return a signed share in per cent, with a true minus sign."""
    return f"{round(100 * share, 1) + 0.0:+.1f} %".replace("-", "−").replace("+0.0 %", "0.0 %")


def _interval(run: RuleRun) -> str:
    return " to ".join(map(_percent, run.change_interval))


def _simplest(fitting: Sequence[RuleRun]) -> RuleRun:
    """Return the best rule, or one that binds on arrival, and best an engine's own, if it is nearly as good.

    Where none is, `auto` stands for rules with a queue that its interval does not tell from it.
    """
    near = [run for run in fitting if run.change <= fitting[0].change + NEARLY]
    shipped = [run for run in near if run.admission == "immediate" and run.rule in IN_ENGINES]
    immediate = [run for run in near if run.admission == "immediate"]
    safe = [run for run in fitting if run.rule == SAFE and run.change_interval[0] <= fitting[0].change]
    return (shipped or immediate or safe or near)[0]


def _waits_no_longer(run: RuleRun, logged: RuleRun, happened: Happened) -> bool:
    """Whether a rule has requests wait for the step that runs when they come, and for no more."""
    mean, long = happened.wait_may_grow
    return bool(run.wait_change_interval[1] <= mean and run.wait_p99 <= logged.wait_p99 + long)


def _misfit(happened: Happened) -> str:
    off = happened.misfit
    windows = ", ".join(f"{_percent(value)}" for value in off.by_window)
    return (
        f"the fitted law misses the log's own time per token by {_percent(off.mean)} in the mean and "
        f"{_percent(off.p95)} at the 95 % quantile (by window of time: {windows}), so what it says of other rules "
        f"cannot be relied on. {_share_of_noise(off)}Look for what the log does not show (prefill between steps, slow "
        "workers, other tenants), or add accept_misfit=yes."
    )


def _share_of_noise(off: Misfit) -> str:
    whole, window = off.by_noise
    if whole < NEARLY:
        return ""
    return f"The noise of steps alone gives up to {whole:.1%}, and {window:.1%} in a window. "


def _unseen(happened: Happened) -> str:
    off = happened.misfit
    return (
        f"the times follow something that the log does not show. The fitted law is off by {off.drift:.1%} over "
        f"stretches of steps, and stretches beside each other are off alike (correlation {off.drift_likeness:.2f} over "
        f"{off.drift_stretches} of them), as they are when rows are missing, other requests share the workers, or "
        "prefill runs between steps. Complete the log, or add accept_misfit=yes."
    )


def _most_idle(law: LawFromLog, happened: Happened) -> float:
    """Return the share of the time in which workers wait at the barrier by the steepest law of the interval."""
    waiting = law.per_token_interval[1] * happened.imbalance / happened.workers
    return float(waiting / max(happened.mean_step_seconds, 1e-12))


def _not_identified(law: LawFromLog, happened: Happened, at_most: float) -> str:
    low, high = (1e6 * end for end in law.per_token_interval)
    return (
        "No recommendation: the log does not tell whether a step takes longer when its heaviest worker holds more "
        f"tokens. 1,000 tokens add {low:.2g} to {high:.2g} ms (95 %) to a step of "
        f"{_time(happened.mean_step_seconds)}, since steps vary by {law.noise:.0%} at the same load, and at the upper "
        f"end workers would wait for {at_most:.0%} of the time. Take a longer log, or one at several loads, or add "
        "accept_misfit=yes."
    )


def _worth(config: AuditConfig, happened: Happened, needed: int | None) -> tuple[float | None, list[str]]:
    """Return the money of a month, and what to say of it."""
    if needed is None:
        return None, []
    G, gpus = happened.workers, config.gpus or happened.workers
    month = None if config.price is None else (1 - needed / G) * gpus * config.price * HOURS_A_MONTH
    if needed == G:
        return month, [f"All {G} workers stay needed for the present time per token: the gain is speed, not GPUs."]
    text = f"With it, {needed} of {G} workers serve these requests no slower than the log"
    if month is None:
        return None, [f"{text}."]
    return month, [
        f"{text}: worth {month:,.0f} {config.currency} a month at {gpus} GPUs and {config.price:g} {config.currency} "
        "an hour, if the others are given back."
    ]


def _queue(best: RuleRun, fitting: Sequence[RuleRun]) -> list[str]:
    if best.admission != "pooled":
        return []
    text = "It needs a queue at the router, which binds a request when a slot is free and not when it arrives."
    second = next((run for run in fitting if run.admission == "immediate"), None)
    if second is None:
        return [text]
    return [text, f"Without a queue, {second.rule} has {_percent(second.change)} ({_interval(second)})."]


def _waits(run: RuleRun, logged: RuleRun, step: float) -> str:
    shown = (
        f"{_time(logged.wait_mean)} to {_time(run.wait_mean)} in the mean, {_time(logged.wait_p99)} to "
        f"{_time(run.wait_p99)} at the 99 % quantile"
    )
    return f"waits {'shorter' if run.wait_change_interval[1] < -step else 'no longer'} ({shown})"


def _time(seconds: float) -> str:
    return f"{1000 * seconds:,.0f} ms" if seconds < 1 else f"{seconds:,.1f} s"


def _how(rule: str) -> str:
    known = IN_ENGINES.get(rule)
    if known is not None:
        return f"How: {known}."
    name = rule.partition(":")[0]
    needs = ABOUT[name].needs if name in ABOUT else ""
    return f"How: no engine ships this rule; it needs to know {needs}." if needs else "How: a rule of your own."


def _stay(happened: Happened, runs: Sequence[RuleRun], gaining: Sequence[RuleRun]) -> Recommendation:
    if gaining:
        best = min(gaining, key=lambda run: run.tpot_mean)
        why = (
            f"{best.rule} would take {-best.change:.1%} less time per token, but not surely without longer waits "
            f"({_time(runs[0].wait_mean)} to {_time(best.wait_mean)} in the mean, {_time(runs[0].wait_p99)} to "
            f"{_time(best.wait_p99)} at the 99 % quantile)"
        )
    elif happened.idle_time_share < _LITTLE_IDLE:
        why = f"the fleet spends only {happened.idle_time_share:.1%} of its time waiting at the barrier"
    else:
        best = min(runs[1:], key=lambda run: run.tpot_mean)
        why = (
            f"the best other rule, {best.rule}, changes the time per token by {_percent(best.change)} "
            f"({_interval(best)})"
        )
    return Recommendation(verdict="stay", sentences=(f"Stay with the present rule: {why}.",))
