"""Read many damaged files: ``python -m tests.fuzz --mutants 1000000 [--first N] [--format NAME]``.

Mutant i of a format is the same on every machine, so that a run is resumed with ``--first``. Mutants are spread evenly
over the formats. The exit code is 1 where one made a reader fail; ``--show NAME NUMBER`` writes one to standard output.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path

from tests.fuzz.formats import FORMATS
from tests.fuzz.tally import fuzz, mutant

_SHARE = 1000


def main() -> int:
    """Run and report; return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--mutants", type=int, default=42_000, help="files to read, of all formats together")
    parser.add_argument("--first", type=int, default=0, help="number of the first mutant of each format")
    parser.add_argument("--format", action="append", choices=list(FORMATS), help="one format; may be repeated")
    parser.add_argument("--show", nargs=2, metavar=("NAME", "NUMBER"), help="write one mutant to standard output")
    options = parser.parse_args()
    if options.show:
        sys.stdout.buffer.write(mutant(options.show[0], int(options.show[1])))
        return 0
    names = options.format or list(FORMATS)
    each = -(-options.mutants // len(names))
    done = failed = 0
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        for start in range(options.first, options.first + each, _SHARE):
            numbers = range(start, min(start + _SHARE, options.first + each))
            for name in names:
                share = time.monotonic()
                tally = fuzz(name, numbers, Path(folder))
                done += len(numbers)
                failed += len(tally.failures)
                for failure in tally.failures[:10]:
                    print(failure)
                print(f"{numbers.start:>9,} {name:<22} {tally}, {time.monotonic() - share:.1f} s", flush=True)
            print(
                f"{done:,} mutants, {failed:,} failures, {time.monotonic() - began:,.0f} s; "
                f"go on with --first {numbers.stop}",
                flush=True,
            )
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
