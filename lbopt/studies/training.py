"""Which requests the predictors of a study learn from.

A router's log is of certain requests in their order; over any others its rows would be those of others.

A log by steps would soon contradict the run, in words that lead nowhere; one by seconds would be followed to the end.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from lbopt.exceptions import InputError
from lbopt.model import Trace
from lbopt.policies import CompiledPolicy, Policy, foresight_of
from lbopt.policies.replay import Replay
from lbopt.predictors import needs_training
from lbopt.studies.requests import RequestSource
from lbopt.studies.scenario import Scenario


def refuse_logs_of_other_requests(source: RequestSource, policies: Iterable[Policy], *, num_seeds: int = 1) -> None:
    """Refuse to replay a log where the requests that are run are not those of the file in their order."""
    for log in (policy.name for policy in policies if isinstance(policy, Replay)):
        if source.is_family:
            if num_seeds > 1:
                raise InputError(f"'{log}' is a log of the requests of one seed of '{source.trace}'; use seeds=1")
        elif not source.in_order(num_seeds=num_seeds):
            raise InputError(
                f"'{log}' is a log of the requests of '{source.trace}' in their order, and here they are drawn with "
                "replacement; use seeds=1 and draw=order"
            )


#: The first share of a file that is kept for learning where the user does not say.
DEFAULT_SHARE = 0.2


def any_policy_learns(policies: Iterable[Policy]) -> bool:
    """Return whether one of the policies goes by a predictor that learns from other requests."""
    return any(_learns(policy) for policy in policies)


def _learns(policy: Policy) -> bool:
    if isinstance(policy, CompiledPolicy):
        return policy.guide is not None and policy.guide.learns
    wanted = foresight_of(policy)
    return wanted is not None and needs_training(wanted.predictor)


def with_training(scenario: Scenario, policies: Iterable[Policy], *, num_seeds: int = 1) -> Scenario:
    """Return the scenario in which the first part of a file is kept for those that learn, where that is needed."""
    policies, source = list(policies), scenario.requests
    share = source.train_share
    if share is None and _is_to_be_divided(source, policies, num_seeds):
        share = DEFAULT_SHARE
    if not share:
        return scenario
    for log in (policy.name for policy in policies if isinstance(policy, Replay)):
        raise InputError(
            f"'{log}' is a log of all requests of '{source.trace}', so the first {share:g} of them cannot be kept for "
            "predictors to learn from; give other requests by train_on, or use the predictor oracle"
        )
    kept = replace(source, train_share=share)
    if source.in_order(num_seeds=num_seeds) and (source.count or 0) > kept.num_to_run:
        raise InputError(
            f"{source.count} requests of '{source.trace}' are to be run, and {kept.num_to_run} are left when the first "
            f"{share:g} are kept for predictors to learn from; ask for fewer by --requests, or give train_share, "
            "train_on or draw=resample"
        )
    return replace(scenario, requests=kept)


def _is_to_be_divided(source: RequestSource, policies: list[Policy], num_seeds: int) -> bool:
    """Return whether requests to learn from have to be taken from those of a file."""
    if source.train_on is not None or source.is_family or not any_policy_learns(policies):
        return False
    # another draw of the same prompts would show a rule that goes by experts the very prompts that it routes
    return source.in_order(num_seeds=num_seeds) or source.knows_experts


def training_for(scenario: Scenario, policies: Iterable[Policy], seed: int, *, num_seeds: int = 1) -> Trace | None:
    """Return the requests to learn from in the run of `seed`; None where no policy learns."""
    return scenario.requests.training_for(seed, num_seeds=num_seeds) if any_policy_learns(policies) else None


def said_of_training(scenario: Scenario, policies: Iterable[Policy]) -> list[str]:
    """Return what a reader of the results has to know of the requests that predictors learned from."""
    source = scenario.requests
    if not any_policy_learns(policies):
        return []
    if source.train_on is not None:
        return [f"learned from requests of '{source.train_on}'"]
    if source.train_share:
        return [f"the first {source.train_share:.0%} of '{source.trace}' are learned from and are not run"]
    return [f"learned from another draw of '{source.trace}'"]
