"""`lbopt export`: what lbopt keeps, as files for other programs."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

from lbopt.cli.from_config import as_verb, refuse_others
from lbopt.cli.study_verb import OUT
from lbopt.exceptions import InputError
from lbopt.files import called, check_name
from lbopt.studies.configuration import Configuration, Option, from_words

_FORMATS = ("json", "mps", "lp")
_WORKLOADS = ("task", "language")
_OF_A_CAPTURE = ("requests", "layers", "experts", "per_token", "gate", "seed")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Asked(Configuration):
    source: Annotated[
        str,
        Option(
            "The store of a study; a problem of the library by its name; the folder of a router's record; or **task** "
            "(four domains, strongly marked) or **language** (68, weakly): a synthetic capture of expert choices.",
            argument=True,
        ),
    ]
    to: Annotated[
        str | None,
        Option(
            "Of a store **csv** or **parquet**, of a problem **json** (for `lbopt solve`), **mps** or **lp**.",
            names=("--to", "--format"),
            first=True,
            shown="csv; the ending of --out, or json",
        ),
    ] = None
    requests: Annotated[int, Option("Calibration requests of a capture.", names=("--requests", "-n"))] = 1000
    layers: Annotated[int, Option("Layers with experts.")] = 48
    experts: Annotated[int, Option("Experts of a layer.")] = 128
    per_token: Annotated[int, Option("Experts that a token chooses at a layer.")] = 8
    gate: Annotated[bool, Option("Write the gate's sums too, which two transforms need.", names=("--gate",))] = False
    seed: Annotated[int, Option("Seed of a capture.")] = 0


def _export(**given: Any) -> None:
    """Write a store as a table, a problem of the library as a program, a record as requests, or a drawn capture.

    A store gives one row a task: parameters, seed, answer or failure, time, versions; also while a run goes on. A
    record gives `requests.csv` for `lbopt audit` and `steps.jsonl` for `lbopt gap --set problems=`, and `trace.jsonl`
    for studies of prefix caches, where it tells what prompts begin with.

    Examples: `lbopt export scaling.sqlite --to parquet`, `lbopt export tiny-makespan --to mps` and
    `lbopt export task --requests 300 --set layers=12 --out capture.npz`
    """
    asked, out = from_words(_Asked, given), given["out"]
    what = Path(asked.source)
    check_name(what, f"'{called(what)}'")
    if asked.source in _WORKLOADS:
        refuse_others(asked, "a capture", _OF_A_CAPTURE)
        _capture(asked, out)
    elif what.is_dir():
        refuse_others(asked, "a record")
        _record(asked.source, out)
    elif what.suffix or what.exists():
        refuse_others(asked, "a store", ("to",))
        _store(what, asked.to or "csv", Path(out) if out else None)
    else:
        refuse_others(asked, "a problem", ("to",))
        _problem(asked.source, asked.to, Path(out) if out else None)


export = as_verb(_export, "export", _export.__doc__ or "", (_Asked,), {"out": OUT})


def _store(store: Path, to: str, out: Path | None) -> None:
    from lbopt.cli.console import say
    from lbopt.runner import export_store

    if out is not None:
        check_name(out, f"'{called(out)}'")
    place, rows = export_store(store, to, out)
    say(f"{rows} rows: {place}")


def _problem(name: str, format: str | None, out: Path | None) -> None:
    from lbopt.cli.console import say
    from lbopt.instances import library
    from lbopt.whole_file import write_file

    entry = library.load(name)
    chosen = format or ("json" if out is None else out.suffix.lower().removeprefix("."))
    if chosen not in _FORMATS:
        raise InputError(f"the format is '{chosen}'; expected {', '.join(_FORMATS)}")
    target = out or Path(f"{name}.{chosen}")
    if chosen != "json" and target.suffix.lower() != f".{chosen}":
        raise InputError(f"the file is '{target}'; expected the ending .{chosen} for --to {chosen}")
    if chosen == "json":
        write_file(target, entry.problem.to_json() + "\n")
    else:
        entry.problem.write(target)
    say(f"written: {target}")


def _record(folder: str, out: str | None) -> None:
    from lbopt.cli.console import say
    from lbopt.serving.record.seal import seal

    sealed = seal(folder, out)
    endings = ", ".join(f"{count:,} {ending}" for ending, count in sorted(sealed.endings.items())) or "none"
    say(f"{sealed.requests:,} requests ({endings}), {sealed.steps:,} step problems")
    if sealed.prefixes:
        say(f"trace.jsonl: {sealed.prefixes:,} finished requests with their prefixes")
    for reason, count in sorted(sealed.left_out.items()):
        say(f"left out: {count:,} {reason}")


def _capture(asked: _Asked, out: str | None) -> None:
    from lbopt.cli.console import err, say
    from lbopt.locality import MoEShape, draw_workload, language_workload, task_workload
    from lbopt.locality.archive import check_place
    from lbopt.locality.capture import FORMAT, capture_of, write_capture

    if out is None:
        raise InputError("a capture needs a file, .npz; name it with --out")
    check_place(Path(out), FORMAT)
    workload = task_workload if asked.source == "task" else language_workload
    config = workload(shape=MoEShape(asked.layers, asked.experts, asked.per_token), requests=asked.requests)
    with err.status(f"drawing {asked.requests:,} requests"):
        activity = draw_workload(config, asked.seed)[1]
    capture = capture_of(activity, asked.per_token, f"synthetic {asked.source}, seed {asked.seed}")
    write_capture(capture if asked.gate else replace(capture, gate_prob=None, gate_logit=None), Path(out))
    say(f"capture of {asked.requests:,} requests: {out}")
