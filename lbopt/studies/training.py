"""Which requests the predictors of a study learn from."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from lbopt.model import Trace
from lbopt.policies import Policy, foresight_of
from lbopt.predictors import needs_training
from lbopt.studies.scenario import Scenario

#: The first share of a file that is kept for learning where the user does not say.
DEFAULT_SHARE = 0.2


def anybody_learns(policies: Iterable[Policy]) -> bool:
    """Return whether one of the policies goes by a predictor that learns from other requests."""
    return any(needs_training(wanted.predictor) for policy in policies if (wanted := foresight_of(policy)))


def with_training(scenario: Scenario, policies: Iterable[Policy], *, num_seeds: int = 1) -> Scenario:
    """Return the scenario in which the first part of a file is kept for those that learn, where that is needed."""
    source = scenario.requests
    if source.train_on is not None or source.train_share or source.is_family or not anybody_learns(policies):
        return scenario
    if not source.in_order(num_seeds=num_seeds):
        return scenario
    return replace(scenario, requests=replace(source, train_share=DEFAULT_SHARE))


def training_for(scenario: Scenario, policies: Iterable[Policy], seed: int, *, num_seeds: int = 1) -> Trace | None:
    """Return the requests to learn from in the run of `seed`; None where nobody learns."""
    return scenario.requests.training_for(seed, num_seeds=num_seeds) if anybody_learns(policies) else None


def said_of_training(scenario: Scenario, policies: Iterable[Policy]) -> list[str]:
    """Return what a reader of the results has to know of the requests that predictors learned from."""
    source = scenario.requests
    if not anybody_learns(policies):
        return []
    if source.train_on is not None:
        return [f"predictors learn from '{source.train_on}'"]
    if source.train_share:
        return [f"the first {source.train_share:.0%} of '{source.trace}' train the predictors and are not run"]
    return [f"predictors learn from another draw of '{source.trace}'"]
