"""Forecasts the decode step of a model with experts, and times it on an accelerator.

    python -m tests.benchmarks.expert_step --forecast --model qwen3-30b-a3b
    python -m tests.benchmarks.expert_step --model qwen3-30b-a3b --out expert-step      (needs torch, Triton and a GPU)

Weights are random, in bfloat16; the step is replayed as a CUDA graph. `lbopt hardware measure --experts MODEL` does the
same. 48 layers of Qwen3-30B-A3B need 70 GB, 8 of GPT-OSS-120B 60 GB.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from lbopt.hardware.measure.experts.measured import forecast, measure_steps
from lbopt.hardware.measure.experts.plan import DecoderShape
from lbopt.hardware.measure.timing import Estimate

#: Bytes a second of the card `h100` (its value; low: 13 % less; high: 0.92 of the printed rate), and of a kernel that
#: has next to nothing to do, within a graph.
RATE, LAUNCH, FLOPS = Estimate(3.0e12, 2.6e12, 3.08e12), Estimate(2.5e-6, 1.5e-6, 5e-6), 5e14


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="qwen3-30b-a3b")
    parser.add_argument("--layers", type=int, help="layers held in memory (as many as fit)")
    parser.add_argument("--device")
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--forecast", action="store_true")
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    if args.forecast:
        for name, one in forecast(DecoderShape.of(args.model), RATE, LAUNCH, FLOPS).items():
            print(f"{name:22} {1e6 * one.value:10.4g} us ({1e6 * one.low:.4g} ... {1e6 * one.high:.4g})")
        return
    found = measure_steps(args.model, print, device=args.device, layers=args.layers, budget=args.seconds)
    data = found.to_dict()
    if args.out:
        args.out.mkdir(parents=True, exist_ok=True)
        (args.out / f"{args.model}.json").write_text(json.dumps(data), encoding="utf-8")
    for name, (value, low, high) in data["constants"].items():
        print(f"{name:22} {1e6 * value:10.4g} us ({1e6 * low:.4g} ... {1e6 * high:.4g})")
    for place, error in found.errors_of_law().items():
        print(f"step {place.requests:4} x {place.context:5}, {place.active:3} experts: law {error:+.1%}")
    print(f"uncaptured {found.uncaptured}, {found.seconds:.0f} s in all")


if __name__ == "__main__":
    main()
