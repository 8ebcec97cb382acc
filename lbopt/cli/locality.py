"""``lbopt locality``: synthetic captures of expert choices, and routing tables fitted to captures."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from lbopt.cli import options

app = typer.Typer(
    no_args_is_help=True, help="Routing by experts: draw captures of calibration requests, fit and show routing tables."
)

Transform = Annotated[
    str, typer.Option(help="count-idf, count, sqrt-count, binary, gate-prob or gate-logit: cells of a signature.")
]


@app.command()
def draw(
    kind: Annotated[str, typer.Argument(help="**task**: four domains, strongly marked; **language**: 68, weakly.")],
    out: Annotated[Path, typer.Option("--out", "-o", help="File for the capture, .npz.")],
    requests: Annotated[int, typer.Option("--requests", "-n", help="Calibration requests.")] = 1000,
    layers: Annotated[int, typer.Option(help="Layers with experts.")] = 48,
    experts: Annotated[int, typer.Option(help="Experts of a layer.")] = 128,
    per_token: Annotated[int, typer.Option(help="Experts that a token chooses at a layer.")] = 8,
    gate: Annotated[bool, typer.Option("--gate", help="Write the gate's sums too, which two transforms need.")] = False,
    seed: options.Seed = 0,
) -> None:
    """Draw a synthetic capture: what calibration requests would have done to the experts of a model.

    Example: `lbopt locality draw task --requests 300 --layers 12 --out capture.npz`
    """
    from dataclasses import replace

    from lbopt.cli.console import err, say
    from lbopt.locality import MoEShape, draw_workload, language_workload, task_workload
    from lbopt.locality.archive import check_place
    from lbopt.locality.capture import FORMAT, capture_of, write_capture
    from lbopt.spec import unknown

    workloads = {"task": task_workload, "language": language_workload}
    if kind not in workloads:
        raise unknown("workload", kind, workloads)
    check_place(out, FORMAT)
    config = workloads[kind](shape=MoEShape(layers, experts, per_token), requests=requests)
    with err.status(f"drawing {requests:,} requests"):
        activity = draw_workload(config, seed)[1]
    capture = capture_of(activity, per_token, f"synthetic {kind}, seed {seed}")
    write_capture(capture if gate else replace(capture, gate_prob=None, gate_logit=None), out)
    say(f"capture of {requests:,} requests: {out}")


@app.command()
def fit(
    capture: Annotated[Path, typer.Argument(metavar="CAPTURE", help="A capture of calibration requests, .npz.")],
    workers: Annotated[int, typer.Option("--workers", "-G", help="Number of decode workers.")],
    out: Annotated[Path, typer.Option("--out", "-o", help="File for the routing table, .npz.")],
    name: Annotated[
        list[str] | None, typer.Option(help="Name of a worker, in the order of the centroids; once for each of them.")
    ] = None,
    transform: Transform = "count-idf",
    pairs: Annotated[int, typer.Option(help="Pairs of requests by which layers are chosen, at most 100,000.")] = 50_000,
    vanilla: Annotated[bool, typer.Option("--vanilla", help="Let clusters be of any size: plain K-means.")] = False,
    all_layers: Annotated[bool, typer.Option("--all-layers", help="Keep all layers.")] = False,
    seed: options.Seed = 0,
) -> None:
    """Fit a routing table: weights of experts, layers that matter, one centroid for each worker.

    Example: `lbopt locality fit capture.npz --workers 16 --out table.npz`
    """
    import time

    from lbopt.cli.console import print_table, say
    from lbopt.locality.archive import check_place
    from lbopt.locality.capture import read_capture
    from lbopt.locality.fit import fit_routing
    from lbopt.locality.routing_table import FORMAT, write_table
    from lbopt.report.routing_fit_tables import fit_table

    check_place(out, FORMAT)
    requests = read_capture(capture)
    begin = time.perf_counter()
    found = fit_routing(
        requests,
        workers,
        transform=transform,
        workers=name or (),
        balanced=not vanilla,
        mask=not all_layers,
        num_pairs=pairs,
        seed=seed,
    )
    seconds = time.perf_counter() - begin
    write_table(found.table, out)  # before anything is printed: a closed pipe must not cost the result
    print_table(fit_table(found, seconds))
    say(f"routing table: {out}")


@app.command()
def show(table: Annotated[Path, typer.Argument(metavar="TABLE", help="A routing table, .npz.")]) -> None:
    """Show what a routing table is of.

    Example: `lbopt locality show table.npz`
    """
    from lbopt.cli.console import print_table
    from lbopt.locality.routing_table import read_table
    from lbopt.report.routing_fit_tables import routing_table_table

    print_table(routing_table_table(read_table(table)))
