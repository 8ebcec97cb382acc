"""Forecasts the decode step of a model with experts, or times it and fits the constants of the step time `experts`.

    python -m tools.expert_step --forecast --model qwen3-30b-a3b
    python -m tools.expert_step --model qwen3-30b-a3b --out expert-step      (needs torch, Triton and an NVIDIA GPU)

Weights are random, in bfloat16; the step is replayed as a CUDA graph. 48 layers of Qwen3-30B-A3B need 70 GB, 8 of
GPT-OSS-120B 60 GB. The folder has steps.csv, law.json and run.json.
"""

from __future__ import annotations

import argparse
import shlex
import sys
from pathlib import Path

from lbopt.exceptions import LbOptError
from lbopt.hardware.measure.timing import Estimate
from lbopt.report.folder import check_target
from tools.expert_step.measured import forecast, measure_steps
from tools.expert_step.plan import DecoderShape
from tools.expert_step.tables import FORMAT, step_time_tables, write_step_times

#: Bytes a second of the card `h100` (its value; low: 13 % less; high: 0.92 of the printed rate), and of a kernel that
#: has next to nothing to do, within a graph.
RATE, LAUNCH, FLOPS = Estimate(3.0e12, 2.6e12, 3.08e12), Estimate(2.5e-6, 1.5e-6, 5e-6), 5e14


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="qwen3-30b-a3b")
    parser.add_argument("--layers", type=int, help="layers held in memory (as many as fit)")
    parser.add_argument("--device")
    parser.add_argument("--budget", type=float, default=60.0, help="seconds of the rounds")
    parser.add_argument("--forecast", action="store_true", help="print what bytes and launches alone make")
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    if args.forecast:
        for name, one in forecast(DecoderShape.of(args.model), RATE, LAUNCH, FLOPS).items():
            print(f"{name:22} {1e6 * one.value:10.4g} us ({1e6 * one.low:.4g} ... {1e6 * one.high:.4g})")
        return
    if args.out:
        check_target(args.out, FORMAT)
    found = measure_steps(args.model, print, device=args.device, layers=args.layers, budget=args.budget)
    if args.out:
        write_step_times(found, args.out, f"python -m tools.expert_step {shlex.join(sys.argv[1:])}")
    for table in step_time_tables(found):
        print(table)
    print(f"uncaptured {found.uncaptured}, {found.seconds:.0f} s in all")


if __name__ == "__main__":
    try:
        main()
    except LbOptError as error:
        sys.exit(str(error))
