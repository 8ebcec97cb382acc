"""Where the step problems come from: sampled under each behaviour policy, or read from a frozen file."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from lbopt.exceptions import InputError
from lbopt.files import called, json_lines, read_text
from lbopt.policies import Policy
from lbopt.simulator import SampledState, sample_states
from lbopt.studies.progress import Progress
from lbopt.studies.scenario import Scenario
from lbopt.studies.training import training_for

#: Bytes of a file of states; each line is read by itself.
LARGEST_STATES = 2**30


def gather_states(
    behaviours: Sequence[Policy], scenario: Scenario, count: int, seed: int, num_seeds: int, progress: Progress
) -> tuple[list[SampledState], list[str]]:
    """Return states sampled under each behaviour, and remarks about what could not be had.

    Parameters
    ----------
    behaviours
        Policies that are run over the requests.
    scenario
        Requests, fleet and arrivals.
    count
        States per behaviour.
    seed, num_seeds
        Seed of the requests and of the sample, and number of seeds of the study, which decides how a file is drawn.
    progress
        Shows one stage, a unit for each behaviour.

    Raises
    ------
    InputError
        If no behaviour makes a decision with a real choice.
    """
    states: list[SampledState] = []
    notes: list[str] = []
    progress.begin("sampling states", len(behaviours))
    requests, setting = scenario.requests.draw_for(seed, num_seeds=num_seeds), scenario.setting
    for policy in behaviours:
        training = training_for(scenario, [policy], seed, num_seeds=num_seeds)
        found, run = sample_states(requests, policy, setting, count, seed=seed, training=training)
        metrics = run.metrics()
        if len(found) < count:
            notes.append(
                f"behaviour {policy.name}: {len(found)} states instead of {count}; its run has no more "
                f"decisions with a real choice between warm-up and cool-down (requests are admitted "
                f"until step {run.window.last}; "
                f"{metrics.real_choice_share:.1%} real choices, occupancy {metrics.occupancy:.1%})"
            )
        states.extend(found)
        progress.advance()
    if not states:
        raise InputError(
            "no decision between warm-up and cool-down of these runs has a real choice, so every policy ties; "
            "use more requests, more than one worker, or requests that differ in size"
        )
    return states, notes


def over_window(states: Sequence[SampledState], horizon: int, new: str) -> list[SampledState]:
    """Return the states with the problems by which they are judged: over a window of `horizon` steps, 0 for none."""
    return [state.over_window(horizon, new) for state in states] if horizon else list(states)


def read_states(path: Path) -> list[SampledState]:
    """Read states from a file with one JSON object a line, as `steps.jsonl` or as bare step problems."""
    source = called(path)
    states = [
        SampledState.from_dict(data, source=f"{source}, line {number}")
        for number, data in json_lines(read_text(path, f"the problems in '{source}'", largest=LARGEST_STATES), source)
    ]
    if not states:
        raise InputError(f"'{path}' holds no step problem")
    return states
