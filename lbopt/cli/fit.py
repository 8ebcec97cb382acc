"""`lbopt fit`: laws of step time by measured rows, or a routing table by a capture."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from lbopt import compile_time
from lbopt.cli.carry_out import Told, conclude, target
from lbopt.cli.from_config import as_verb, refuse_others
from lbopt.cli.study_verb import OUT
from lbopt.exceptions import InputError
from lbopt.studies.configuration import Configuration, Option, from_words

_LAWS = ("x", "y", "group", "hold_out", "residuals")
_TABLE = ("workers", "name", "transform", "pairs", "vanilla", "all_layers", "seed")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Asked(Configuration):
    file: Annotated[
        str,
        Option(
            "A CSV with a header, or `published:NAME` for a shipped table such as `published:balance-route`; or a "
            "capture of expert choices, .npz.",
            argument=True,
        ),
    ]
    x: Annotated[str | None, Option("Column of the load.", shown="imbalance, spread, max_load, loads")] = None
    y: Annotated[str | None, Option("Column to explain.", shown="step_time, tpot, throughput")] = None
    group: Annotated[str | None, Option("Column that tells groups apart.", shown="group, if there")] = None
    hold_out: Annotated[str | None, Option("Group to predict from the others, or **all** in turn.", first=True)] = None
    residuals: Annotated[bool, Option("Print the residuals of every row.", names=("--residuals",), first=True)] = False
    workers: Annotated[int | None, Option("Decode workers that a routing table is for.", names=("--workers", "-G"))] = (
        None
    )
    name: Annotated[
        tuple[str, ...],
        Option("Name of a worker, in the order of the centroids; once for each of them.", empty=True),
    ] = ()
    transform: Annotated[
        str, Option("count-idf, count, sqrt-count, binary, gate-prob or gate-logit: cells of a signature.")
    ] = "count-idf"
    pairs: Annotated[int, Option("Pairs of requests by which layers are chosen, at most 100,000.")] = 50_000
    vanilla: Annotated[bool, Option("Let clusters be of any size: plain K-means.", names=("--vanilla",))] = False
    all_layers: Annotated[bool, Option("Keep all layers.", names=("--all-layers",))] = False
    seed: Annotated[int, Option("First seed.")] = 0


def _fit(**given: Any) -> None:
    """Fit laws of step time or throughput to measured rows, or a routing table to a capture of expert choices.

    Rows: a header's ending is its unit: _ms, _us, _seconds; _tokens, _ktokens; _tok_s. Laws are compared by the error
    of predicting each row from the others. With --out, writes fits.csv, residuals.csv, comparisons.csv, pictures (png,
    svg) and run.json.

    A capture: weights of experts, layers that matter, one centroid for each of --workers. --out names the table, .npz.

    Examples: `lbopt fit published:balance-route --hold-out all --residuals --out my-fit` and
    `lbopt fit capture.npz --workers 16 --out table.npz`
    """
    asked, out = from_words(_Asked, given), given["out"]
    if asked.workers is not None or Path(asked.file).suffix == ".npz":
        refuse_others(asked, "a capture", _TABLE)
        _fit_table(asked, out)
    else:
        refuse_others(asked, "laws of step time", _LAWS)
        _fit_laws(asked, out)


fit = as_verb(_fit, "fit", _fit.__doc__ or "", (_Asked,), {"out": OUT})


def _fit_laws(asked: _Asked, out: str | None) -> None:
    from lbopt.cli.console import command_line
    from lbopt.hardware.fit import calibrate, read_rows
    from lbopt.report.fit_folder import FORMAT, write_fit_folder
    from lbopt.report.fit_tables import fit_tables

    folder = target(out, FORMAT)
    found = calibrate(read_rows(asked.file, x=asked.x, y=asked.y, group=asked.group), asked.hold_out)
    written = "" if folder is None else f"tables and picture: {folder}"
    conclude(
        folder,
        lambda place: write_fit_folder(found, place, command_line()),
        lambda: Told(tables=fit_tables(found, asked.residuals), written=written),
    )


def _fit_table(asked: _Asked, out: str | None) -> None:
    from lbopt.cli.console import print_table, say
    from lbopt.locality.archive import check_place
    from lbopt.locality.capture import read_capture
    from lbopt.locality.fit import fit_routing
    from lbopt.locality.routing_table import FORMAT, write_table
    from lbopt.report.routing_fit_tables import fit_table

    if asked.workers is None or out is None:
        raise InputError("a routing table needs --workers, whose number it is for, and --out, its file")
    check_place(Path(out), FORMAT)
    requests = read_capture(Path(asked.file))
    begin = compile_time.clock()
    found = fit_routing(
        requests,
        asked.workers,
        transform=asked.transform,
        workers=asked.name,
        balanced=not asked.vanilla,
        mask=not asked.all_layers,
        num_pairs=asked.pairs,
        seed=asked.seed,
    )
    seconds = compile_time.clock() - begin
    write_table(found.table, Path(out))  # before anything is printed: a closed pipe must not cost the result
    print_table(fit_table(found, seconds))
    say(f"routing table: {out}")
