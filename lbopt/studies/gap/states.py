"""Where the step problems come from: sampled under each behaviour policy, or read from a frozen file."""

from __future__ import annotations

import json
from pathlib import Path

from lbopt.exceptions import InputError
from lbopt.simulator import SampledState, sample_states
from lbopt.studies.gap.config import GapConfig
from lbopt.studies.progress import Progress
from lbopt.studies.training import training_for


def gather_states(config: GapConfig, progress: Progress) -> tuple[list[SampledState], list[str]]:
    """Return the states, and remarks about what could not be had."""
    if config.problems is not None:
        return _judged(read_states(Path(config.problems)), config), []
    states: list[SampledState] = []
    notes: list[str] = []
    progress.begin("sampling states", len(config.behaviours))
    requests = config.scenario.requests.draw_for(config.seed, num_seeds=config.seeds)
    for spec in config.behaviours:
        policy = config.build(spec)
        training = training_for(config.scenario, [policy], config.seed, num_seeds=config.seeds)
        found, run = sample_states(
            requests, policy, config.scenario.setting, config.states, seed=config.seed, training=training
        )
        metrics = run.metrics()
        if len(found) < config.states:
            notes.append(
                f"behaviour {policy.name}: {len(found)} states instead of {config.states}; its run has no more "
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
    return _judged(states, config), notes


def _judged(states: list[SampledState], config: GapConfig) -> list[SampledState]:
    """Return the states with the problems that they are judged by."""
    return [state.over_window(config.horizon, config.new) for state in states] if config.horizon else states


def read_states(path: Path) -> list[SampledState]:
    """Read states from a file with one JSON object a line, as `steps.jsonl` or as bare step problems."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"cannot read the problems in '{path}': {error}") from None
    states = []
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        source = f"{path} line {number}"
        try:
            data = json.loads(line)
        except json.JSONDecodeError as error:
            raise InputError(f"{source} is not valid JSON: {error}") from None
        states.append(SampledState.from_dict(data, source=source))
    if not states:
        raise InputError(f"'{path}' holds no step problem")
    return states
