"""Times the decode step of a model with experts on an accelerator, and fits the constants of the locality study.

    python -m tests.benchmarks.expert_step --model qwen3-30b-a3b --out expert-step      (needs torch, Triton and a GPU)
    python -m tests.benchmarks.expert_step --forecast

Weights are random, in bfloat16; the step is replayed as a CUDA graph. `--layers` limits what memory must hold: 48
layers of Qwen3-30B-A3B need 62 GB, 8 of GPT-OSS-120B 55 GB.
"""

from __future__ import annotations

import argparse
import json
import time
from dataclasses import astuple
from pathlib import Path

from lbopt.hardware.measure.experts.law import StepLaw, fit, forecast
from lbopt.hardware.measure.experts.plan import Place, Sizes, places
from lbopt.hardware.measure.experts.shape import DecoderShape
from lbopt.hardware.measure.timing import Estimate

#: Bytes a second of the card `h100` (its value; low: 13 % less; high: 0.92 of the printed rate), and of a kernel that
#: has next to nothing to do, within a graph.
RATE, LAUNCH, FLOPS = Estimate(3.0e12, 2.6e12, 3.08e12), Estimate(2.5e-6, 1.5e-6, 5e-6), 5e14


def ends(one: Estimate) -> list[float]:
    return [one.value, one.low, one.high]


def measure(args: argparse.Namespace) -> dict:
    """Time one model and return everything as plain data."""
    import torch

    from lbopt.hardware.measure.experts.sweep import Sweep
    from lbopt.hardware.measure.torch_device import TorchDevice

    begin, shape = time.perf_counter(), DecoderShape.of(args.model)
    layers = args.layers or shape.layers
    sizes = Sizes()
    pool = max(2 * sizes.most_tokens, 1)
    sweep = Sweep(shape, layers, pool, args.device)
    say(f"{shape.name}: {layers} layers in memory after {time.perf_counter() - begin:.0f} s")
    read = sweep.bandwidth()
    say(f"plain read {read / 1e12:.3f} TB/s")
    tuned = sweep.tune(sizes.requests)
    for requests in sizes.requests:
        say(f"tiles at {requests}: {sweep.parts.tiles[requests]}, {1e6 * min(tuned[requests].values()):.1f} us a layer")
    say(f"tuned after {time.perf_counter() - begin:.0f} s")
    errors = [sweep.check(8, 512, 48), sweep.check(64, 1024, 100)]
    say(f"largest error against plain torch {max(max(one.values()) for one in errors):.2e}")
    timed = sweep.time(places(shape, sizes), args.rounds, args.seconds, say)
    alone = {n: sweep.uncaptured(Place("step", n, 512, min(shape.experts, 2 * n))) for n in (8, 64)}
    law = fit(timed, shape, layers)
    return {
        "model": shape.name,
        "layers": layers,
        "machine": TorchDevice(torch, args.device).account(),
        "seconds": time.perf_counter() - begin,
        "plain_read": read,
        "tuned": tuned,
        "tiles": sweep.parts.tiles,
        "errors": errors,
        "uncaptured": alone,
        "law": as_data(law),
        "columns": ["part", "requests", "context", "active", "generalists", "median", "least", "most"],
        "rows": [
            [
                *astuple(one.place),
                *(float(f"{value:.5g}") for value in (one.median, min(one.seconds), max(one.seconds))),
            ]
            for one in timed
        ],
        "of_law": [law.of(one.place, layers) / one.median - 1 for one in timed],
    }


def as_data(law: StepLaw) -> dict:
    parts = {"experts": law.experts, "attention": law.attention, "head": law.head}
    return {
        "constants": {name: ends(one) for name, one in law.constants().items()},
        "ratio": law.ratio(),
        "parts": {
            name: {
                "coefficients": {which: ends(part[which]) for which in part.names},
                "typical_residual": part.typical,
                "worst_residual": part.worst,
            }
            for name, part in parts.items()
        },
    }


def say(text: str) -> None:
    print(text, flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="qwen3-30b-a3b")
    parser.add_argument("--layers", type=int, help="layers held in memory (all)")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--forecast", action="store_true")
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    if args.forecast:
        for name, one in forecast(DecoderShape.of(args.model), RATE, LAUNCH, FLOPS).items():
            say(f"{name:22} {1e6 * one.value:10.4g} us ({1e6 * one.low:.4g} ... {1e6 * one.high:.4g})")
        return
    found = measure(args)
    if args.out:
        args.out.mkdir(parents=True, exist_ok=True)
        (args.out / f"{args.model}.json").write_text(json.dumps(found, indent=1), encoding="utf-8")
    for name, (value, low, high) in found["law"]["constants"].items():
        say(f"{name:22} {1e6 * value:10.4g} us ({1e6 * low:.4g} ... {1e6 * high:.4g})")
    for name, part in found["law"]["parts"].items():
        say(f"{name}: residual {part['typical_residual']:.1%}, at most {part['worst_residual']:.1%}")
    for (part, requests, context, active, _, median, *_), error in zip(found["rows"], found["of_law"], strict=True):
        if part == "step":
            say(f"step {requests:4} x {context:5}, {active:3} experts: {1e3 * median:7.3f} ms, law {error:+.1%}")
    say(f"uncaptured {found['uncaptured']}, {found['seconds']:.0f} s in all")


if __name__ == "__main__":
    main()
