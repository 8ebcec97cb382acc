"""`lbopt hardware validate`: how far are forecasts of the calibrated law from steps that it has not seen?"""

from __future__ import annotations

from pathlib import Path

from lbopt.cli import options


def validate(out: options.Out = None) -> None:
    """Forecast published decode steps, each source by a law that has not seen it, and say how far off it was.

    Two sources were drawn before the first fit and are in none; all others are left out in turn. With --out, writes
    forecasts.csv, the picture (png, svg) and run.json.

    Example: `lbopt hardware validate --out my-validation`
    """
    from lbopt.cli.console import command_line, print_table, say
    from lbopt.hardware.calibrated import (
        forecast_source,
        leave_sources_out,
        shipped_posterior,
        steps_to_learn_from,
    )
    from lbopt.hardware.published import held_out_sources, measured_steps
    from lbopt.report.folder import check_target
    from lbopt.report.validation_folder import Validation, validation_tables

    folder = Path(out) if out else None
    if folder is not None:
        from lbopt.report.validation_folder import FORMAT, write_validation_folder

        check_target(folder, FORMAT)
    seen, scatter = steps_to_learn_from(), shipped_posterior().scatter
    unseen = {name: [step for step in measured_steps() if step.source == name] for name in held_out_sources()}
    validation = Validation(
        leave_sources_out(seen, scatter),
        tuple(forecast_source(name, seen, steps, scatter) for name, steps in unseen.items()),
    )
    if folder is not None:  # before anything is printed: a closed pipe must not cost the result
        write_validation_folder(validation, folder, command_line())
    for table in validation_tables(validation):
        print_table(table)
    if folder is not None:
        say(f"table and picture: {folder}")
