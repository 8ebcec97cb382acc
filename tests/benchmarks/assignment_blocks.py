"""Time and memory of a balanced assignment whose costs are never held whole.

    python -m tests.benchmarks.assignment_blocks --points 10000000 --centres 64

Float32 points in ten dimensions; squared distances are made a block at a time. Held whole, they would take 8 bytes for
each point and centre. The answer is checked in exact integers, by blocks as well. Peak memory is that of the process
from its start on (`resource.getrusage`), Python and the compiled kernels included.
"""

from __future__ import annotations

import argparse
import resource
import time

import numpy as np

from lbopt.assignment import CostBlocks, balanced_assignment


def peak() -> float:
    """Return the peak of the memory of this process, GiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20


def main() -> None:
    """Assign, check, and print what it took."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--points", type=int, default=1_000_000)
    parser.add_argument("--centres", type=int, default=64)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    rng = np.random.default_rng(given.seed)
    small = CostBlocks.of_points(rng.normal(size=(2_000, 10)).astype(np.float32), rng.normal(size=(8, 10)))
    balanced_assignment(small, 250).check(small)  # compiles, or reads what was compiled
    points = rng.standard_normal((given.points, 10), dtype=np.float32)
    centers = rng.standard_normal((given.centres, 10))
    blocks, before = CostBlocks.of_points(points, centers), peak()
    whole = 8 * given.points * given.centres / 2**30
    start, wall = time.process_time(), time.perf_counter()
    found = balanced_assignment(blocks, -(-given.points // given.centres))
    spent, took, most = time.process_time() - start, time.perf_counter() - wall, peak()
    start = time.process_time()
    found.check(blocks)
    print(f"{given.points} x {given.centres}: {spent:.1f} s of processor time ({took:.1f} s on the clock)")
    print(f"peak memory {most:.2f} GiB ({before:.2f} before it); the costs alone would be {whole:.2f} GiB")
    print(f"total {found.cost:.9g}, at most {found.rounding:.3g} above the least")
    print(f"check: {time.process_time() - start:.1f} s, peak {peak():.2f} GiB")


if __name__ == "__main__":
    main()
