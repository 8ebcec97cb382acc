"""The output folder of a measurement: card.toml, samples.csv, power.csv, forecast.csv, the picture, run.json."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from lbopt.hardware.measure import Measurement
from lbopt.hardware.measure.forecast import Compared
from lbopt.report.contents import Contents, write_folder
from lbopt.report.measure_figure import measure_figure
from lbopt.report.measure_tables import forecast_csv, measure_csv, power_csv

FORMAT = "lbopt-measure"
FORMAT_VERSION = 1


def write_measure_folder(
    found: Measurement, card: str | None, folder: Path, command: str, compared: Sequence[Compared] = ()
) -> None:
    """Write the folder whole or not at all; `card` is the card's text, None where none could be made.

    Parameters
    ----------
    found
        The measurement.
    card
        Text of the card; None where none could be made.
    folder
        The output folder.
    command
        The command line.
    compared
        Forecasts beside what was measured.
    """
    fitted = any(one.law is not None for one in found.attention)
    contents = Contents(
        tables={
            "samples": measure_csv(found),
            **({} if found.power is None else {"power": power_csv(found.power)}),
            **({"forecast": forecast_csv(compared)} if compared else {}),
        },
        figures={"measure": measure_figure(found) if fitted else None},
        others={} if card is None else {"card.toml": card},
    )
    account = {
        "machine": found.machine,
        "date": found.date,
        "configuration": found.config.to_dict(),
        "interrupted": found.interrupted,
        "notes": found.notes,
        "seconds": found.seconds,
    }
    write_folder(folder, FORMAT, FORMAT_VERSION, command, lambda _made: contents, account)
