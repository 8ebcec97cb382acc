"""`run_scaling`: every rule on every fleet of the grid, through a store if there is one."""

from __future__ import annotations

from lbopt.studies.running import RunTasks, of_tasks
from lbopt.studies.scaling.config import ScalingConfig
from lbopt.studies.scaling.fleet import FleetTheory
from lbopt.studies.scaling.outcome import ScalingCell, ScalingOutcome
from lbopt.studies.study import Study


@of_tasks("fleets and rules")
def run_scaling(config: ScalingConfig, run: RunTasks) -> ScalingOutcome:
    """Run the study; Ctrl-C keeps the cells that have ended."""
    tasks = {(policy, G, B): config.task(policy, G, B) for G, B in config.fleets() for policy in config.policies}
    stored = run(tasks.values())
    outcome = ScalingOutcome(config, notes=list(stored.notes), interrupted=stored.interrupted)
    theory = {(G, B): FleetTheory.of(G, B, config.end_probability(B), config.s_max) for G, B in config.fleets()}
    for (policy, G, B), task in tasks.items():
        if task.key in stored.answers:
            outcome.cells.append(ScalingCell.of(policy, theory[G, B], stored.answers[task.key]))
    left_open = {
        (cell.policy, cell.fleet.G, cell.fleet.B): 1 - cell.closed_share
        for cell in outcome.cells
        if cell.closed_share is not None and cell.closed_share < 1
    }
    if left_open:
        policy, G, B = max(left_open, key=left_open.__getitem__)
        outcome.notes.append(
            f"cells with decisions that the search left open after {config.time_limit:g} s: {len(left_open)}; the "
            f"largest share is {100 * left_open[policy, G, B]:.3g} %, {policy} at G = {G}, B = {B}"
        )
    return outcome


HELP = """Run rules over a grid of fleets, and fit exponents of B and log G to their imbalance.

With --out, writes scaling.csv, exponents.csv, pictures (png, svg) and run.json.

Example: `lbopt study scaling -G 2 -G 8 -B 16 -B 64 --policy fcfs --policy bf-io-replete --out my-scaling`
"""

STUDY = Study(
    name="scaling",
    format="lbopt-scaling",
    config=ScalingConfig,
    help=HELP,
    run=run_scaling,
    tables=("scaling", "exponents"),
    figures=("imbalance", "onset-*", "law-*"),
    tasks=True,
    has_results=lambda outcome: bool(outcome.cells),
)
