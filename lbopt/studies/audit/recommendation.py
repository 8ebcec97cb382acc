"""What to do: which rule to switch to and what that is worth, or that nothing is to be gained, and why.

A rule is recommended where its interval lies below zero, it gains at least half a per cent, and requests do not wait
longer for it: the interval of the change of the mean wait reaches zero, or the wait grows by less than a step. Of the
rules left, the one with the least time per token is taken, or one within half a per cent of it that binds on arrival,
best one that an engine ships; where a queue is needed, the best rule without one is named beside it.

The money is that of the GPU time which the same tokens take less: saving * GPUs * price * 730 hours a month. It is in
the bank only if the fleet is made smaller by that share or serves more.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from lbopt.policies.table import ABOUT
from lbopt.studies.audit.config import AuditConfig
from lbopt.studies.audit.findings import Finding
from lbopt.studies.audit.happened import Happened
from lbopt.studies.audit.law_from_log import LawFromLog
from lbopt.studies.audit.rules import RuleRun

#: The law must give the log's own times within this share.
MOST_MISFIT = 0.05
#: ... and in each window of time within this one.
MOST_MISFIT_OF_A_WINDOW = 0.10
LEAST_GAIN = 0.005
#: A simpler rule is preferred where it is behind by no more than this share of the time per token.
NEARLY = 0.005
HOURS_A_MONTH = 730

#: How rules are switched on where engines have them; sources in the manual, page *audit*.
IN_ENGINES = {
    "round-robin": "most routers' default, for example --policy round_robin of vllm-router and sglang-router",
    "random": "--policy random of vllm-router and sglang-router",
    "power-of-two": "--policy power_of_two of vllm-router and sglang-router",
    "jsq": "SGLang: --load-balance-method total_requests; vLLM's own balancer is close to it",
    "jsq-load": "SGLang: --load-balance-method total_tokens",
    "jsq-load:admission=immediate": "SGLang: --load-balance-method total_tokens",
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
    per_month
        Money for the GPU time saved in a month; None without a price.
    sentences
        The paragraph, sentence by sentence.
    """

    verdict: str
    rule: str | None = None
    change: float | None = None
    change_interval: tuple[float, float] | None = None
    per_month: float | None = None
    sentences: tuple[str, ...] = ()

    def __str__(self) -> str:
        return " ".join(self.sentences)

    def to_dict(self) -> dict[str, Any]:
        """Return it as plain data."""
        return asdict(self)


def recommend(
    config: AuditConfig, law: LawFromLog, happened: Happened, findings: Sequence[Finding], runs: Sequence[RuleRun]
) -> Recommendation:
    """Return what to do.

    Parameters
    ----------
    config
        What was asked.
    law, happened, findings
        What the log says.
    runs
        The log itself, then each rule; empty where none was run.
    """
    forbidding = [finding.sentence for finding in findings if finding.forbids]
    if forbidding:
        return Recommendation(verdict="withheld", sentences=(f"No recommendation. {forbidding[0]}.",))
    if happened.misfit.follows_something_unseen and not config.accept_misfit:
        return Recommendation(verdict="withheld", sentences=(_unseen(happened),))
    off = happened.misfit.worst > MOST_MISFIT or happened.misfit.worst_window > MOST_MISFIT_OF_A_WINDOW
    if off and not config.accept_misfit:
        return Recommendation(verdict="withheld", sentences=(_misfit(happened),))
    if not law.is_sure_of_slope:
        return Recommendation(
            verdict="stay",
            sentences=(
                "Stay with the present rule: in this log a step takes no longer when its heaviest worker holds more "
                "tokens, so balance does not buy time.",
            ),
        )
    if len(runs) < 2:
        return Recommendation(verdict="withheld", sentences=("No recommendation: no rule was run.",))
    step = happened.mean_step_seconds
    gaining = [run for run in runs[1:] if run.change_interval[1] < 0 and run.change <= -LEAST_GAIN]
    fitting = sorted((run for run in gaining if _waits_no_longer(run, step)), key=lambda run: run.tpot_mean)
    if not fitting:
        return _stay(happened, runs, gaining)
    return _switch(config, _simplest(fitting), fitting, happened)


def _percent(share: float) -> str:
    """Return a signed share in per cent, with a true minus sign."""
    return f"{100 * share:+.1f} %".replace("-", "−")


def _interval(run: RuleRun) -> str:
    return " to ".join(map(_percent, run.change_interval))


def _simplest(fitting: Sequence[RuleRun]) -> RuleRun:
    """Return the best rule, or one that binds on arrival, and best an engine's own, if it is nearly as good."""
    near = [run for run in fitting if run.change <= fitting[0].change + NEARLY]
    shipped = [run for run in near if run.admission == "immediate" and run.rule in IN_ENGINES]
    immediate = [run for run in near if run.admission == "immediate"]
    return (shipped or immediate or near)[0]


def _waits_no_longer(run: RuleRun, step: float) -> bool:
    return run.wait_change_interval[0] <= 0 or run.wait_change_interval[1] <= step


def _misfit(happened: Happened) -> str:
    off = happened.misfit
    windows = ", ".join(f"{_percent(value)}" for value in off.by_window)
    return (
        f"No recommendation: the fitted law misses the log's own time per token by {_percent(off.mean)} in the mean "
        f"and {_percent(off.p95)} at the 95 % quantile (by window of time: {windows}), so what it says of other rules "
        "cannot be relied on. Look for what the log does not show (prefill between steps, slow workers, other "
        "tenants), or add --accept-misfit."
    )


def _unseen(happened: Happened) -> str:
    off = happened.misfit
    return (
        "No recommendation: the times follow something that the log does not show. The fitted law is off by "
        f"{off.drift:.1%} over stretches of steps, and stretches beside each other are off alike (correlation "
        f"{off.drift_likeness:.2f} over {off.drift_stretches} of them), as they are when rows are missing, other "
        "requests share the workers, or prefill runs between steps. Complete the log, or add --accept-misfit."
    )


def _switch(config: AuditConfig, best: RuleRun, fitting: Sequence[RuleRun], happened: Happened) -> Recommendation:
    gpus = config.gpus or happened.workers
    sentences = [
        f"Switch to {best.rule}: {_percent(best.change)} time per token ({_interval(best)}), waits "
        f"{_waits(best, happened.mean_step_seconds)}."
    ]
    month = None
    if config.price is not None:
        month = -best.change * gpus * config.price * HOURS_A_MONTH
        ends = sorted(-end * gpus * config.price * HOURS_A_MONTH for end in best.change_interval)
        sentences.append(
            f"The same tokens take that share less GPU time: worth {month:,.0f} {config.currency} a month at {gpus} "
            f"GPUs and {config.price:g} {config.currency} an hour ({ends[0]:,.0f} to {ends[1]:,.0f}), if the fleet is "
            "made smaller by that share or serves more."
        )
    if best.admission == "pooled":
        sentences.append(
            "It needs a queue at the router, which binds a request when a slot is free and not when it arrives."
        )
        immediate = [run for run in fitting if run.admission == "immediate"]
        if immediate:
            second = immediate[0]
            sentences.append(f"Without a queue, {second.rule} has {_percent(second.change)} ({_interval(second)}).")
    sentences.append(_how(best.rule))
    return Recommendation(
        verdict="switch",
        rule=best.rule,
        change=best.change,
        change_interval=best.change_interval,
        per_month=month,
        sentences=tuple(sentences),
    )


def _waits(run: RuleRun, step: float) -> str:
    low, high = run.wait_change_interval
    if high < -step:
        return f"shorter by {-high:,.2g} to {-low:,.2g} s in the mean"
    return "no longer"


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
            f"{best.rule} would take {-best.change:.1%} less time per token, but requests would wait "
            f"{best.wait_mean:.2g} s instead of {runs[0].wait_mean:.2g} s in the mean"
        )
    elif happened.idle_time_share < 0.02:
        why = f"the fleet spends only {happened.idle_time_share:.1%} of its time waiting at the barrier"
    else:
        best = min(runs[1:], key=lambda run: run.tpot_mean)
        low, high = best.change_interval
        why = (
            f"the best other rule, {best.rule}, changes the time per token by {_percent(best.change)} "
            f"({_percent(low)} to {_percent(high)})"
        )
    return Recommendation(verdict="stay", sentences=(f"Stay with the present rule: {why}.",))
