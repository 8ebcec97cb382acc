"""Try mutants and judge the tests by them: `make test-mutation`, or `python -m tests.mutation --help`.

Each mutant is tried in a process of its own by the tests nearest to its module, in a copy of the checkout. A run that
is stopped goes on where it was. The exit code is 1 where a room does not reach its goal.

Why this program and not one of those that exist: mutmut leaves decorated functions alone, and every kernel is
decorated. cosmic-ray changes the checkout itself, and has one command of tests for all modules. It numbers mutants
through a whole file, so that an edit renames those below it, and it does not try survivors again when tests change.
"""

from __future__ import annotations

import argparse
import itertools
import json
import tempfile
import time
from contextlib import ExitStack, closing
from pathlib import Path

from tests.mutation.gate import row_of, table
from tests.mutation.operators import Mutant
from tests.mutation.records import KILLED, SURVIVED, TIMEOUT, Record, Records, hash_of, hash_of_package
from tests.mutation.scope import ROOMS, ROOT, SEED, Room, drawn, is_equivalent, modules, nearest
from tests.mutation.workplace import Workplace

#: A mutant may take this many times as long as the original, and this many seconds more.
SLOWER, STARTING = 2.0, 15.0

#: Seconds for all tests without a mutant.
UNCHANGED_LIMIT = 3600.0

OUTCOMES = {"passed": SURVIVED, "failed": KILLED, "timeout": TIMEOUT}


def arguments() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutation", description=__doc__)
    parser.add_argument("--seed", type=int, default=SEED, help="which mutants are drawn")
    parser.add_argument("--mutants", type=int, default=None, help="at most so many of each room")
    parser.add_argument("--minutes", type=float, default=None, help="begin no trial after this time")
    parser.add_argument("--room", action="append", help="a room of tests/mutation/scope.py; may be repeated")
    parser.add_argument("--only", action="append", help="all mutants of FILE:LINE, or with this in their identifier")
    parser.add_argument("--results", type=Path, default=ROOT / "mutation-results.jsonl", help="file of the records")
    parser.add_argument("--list", action="store_true", help="list the mutants and what is known of them; try none")
    parser.add_argument("--report", action="store_true", help="print the table of what is known; try none")
    return parser.parse_args()


def chosen(given: argparse.Namespace) -> list[tuple[Room, Mutant]]:
    """Return the mutants to try: the rooms take turns, so that a run cut short has tried some of each."""
    rooms = [room for room in ROOMS if not given.room or room.folder in given.room]
    if given.only:
        found = [(r, m) for r in rooms for own in modules(r.folder).values() for m in own]
        return [
            (r, m) for r, m in found if any(o in m.id or o == f"{m.id.split('::')[0]}:{m.line}" for o in given.only)
        ]
    rows = [[(room, mutant) for mutant in drawn(room, given.seed)[: given.mutants]] for room in rooms]
    return [pair for turn in itertools.zip_longest(*rows) for pair in turn if pair is not None]


def unchanged(place: Workplace, todo: list[tuple[Room, Mutant]], file: Path) -> dict[tuple[bool, str], float]:
    """Run the tests without a mutant, each file once; return the seconds of each, with and without compilation.

    Parameters
    ----------
    place
        The copy of the checkout.
    todo
        The mutants that will be tried.
    file
        Keeps the seconds of test files of this package for the next run.
    """
    known = json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}
    package = hash_of_package()
    seconds: dict[tuple[bool, str], float] = {}
    for interpreted in sorted({room.interpreted for room, _ in todo}):
        files = [nearest(m.id.split("::")[0]) for room, m in todo if room.interpreted == interpreted]
        keys = {test: f"{package} {hash_of([test])} {interpreted}" for test in sorted(set(itertools.chain(*files)))}
        tests = [test for test, key in keys.items() if key not in known]
        if tests:
            ending = place.run(tests, interpreted, UNCHANGED_LIMIT)
            if ending.how != "passed":
                raise SystemExit(f"{ending.output[-3000:]}\nthe tests fail without a mutant: {ending.how}")
            known |= {keys[test]: place.seconds().get(test, 0.0) for test in tests}
        seconds |= {(interpreted, test): known[key] for test, key in keys.items()}
    file.write_text(json.dumps(known), encoding="utf-8")
    return seconds


def attempt(place: Workplace, room: Room, mutant: Mutant, seconds: dict[tuple[bool, str], float]) -> Record:
    """Try one mutant.

    Parameters
    ----------
    place
        The copy of the checkout.
    room, mutant
        What is tried.
    seconds
        How long each test file takes without a mutant.
    """
    tests = nearest(mutant.id.split("::")[0])
    limit = STARTING + SLOWER * sum(seconds.get((room.interpreted, test), 0.0) for test in tests)
    with place.changed(mutant):
        ending = place.run(tests, room.interpreted, limit)
    outcome = OUTCOMES[ending.how]
    return Record(
        mutant.id,
        mutant.hash,
        mutant.change,
        hash_of(tests, place.root),
        outcome,
        ending.first,
        round(ending.seconds, 2),
    )


def try_all(given: argparse.Namespace, records: Records, todo: list[tuple[Room, Mutant]]) -> None:
    """Try the mutants that have no record yet.

    Parameters
    ----------
    given
        The command line.
    records
        What is known.
    todo
        The mutants.
    """
    begin = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="mutation-") as folder, ExitStack() as stack:
        place = stack.enter_context(closing(Workplace(Path(folder))))
        seconds = unchanged(place, todo, given.results.with_suffix(".seconds.json"))
        print(f"the tests pass without a mutant, {time.monotonic() - begin:.0f} s; {len(todo)} mutants", flush=True)
        for k, (room, mutant) in enumerate(todo, 1):
            if given.minutes is not None and time.monotonic() - begin > 60 * given.minutes:
                print(f"{given.minutes:g} minutes are over; {len(todo) - k + 1} mutants were not tried")
                break
            record = attempt(place, room, mutant, seconds)
            records.add(record)
            print(
                f"{k}/{len(todo)} {record.outcome:8} {record.seconds:5.1f} s  {mutant.id}  {mutant.change}", flush=True
            )


def main() -> int:
    """Try mutants, print the table and the survivors."""
    given = arguments()
    records = Records(given.results)
    pairs = chosen(given)

    def find(mutant: Mutant) -> Record | None:
        if is_equivalent(mutant):  # no need to try it
            return Record(mutant.id, mutant.hash, mutant.change, "", SURVIVED, "", 0.0)
        return records.find(mutant, nearest(mutant.id.split("::")[0]))

    todo = [(room, mutant) for room, mutant in pairs if find(mutant) is None]
    if given.list:
        for _, mutant in pairs:
            record = find(mutant)
            print(f"{record.outcome if record else '-':8} {mutant.id}:{mutant.line}  {mutant.change}")
        return 0
    if todo and not given.report:
        try_all(given, records, todo)
    rows = [row_of(room, [m for r, m in pairs if r is room], find) for room in ROOMS]
    rows = [row for row in rows if row.tried]
    print(table(rows))
    for row in rows:
        for record in row.survivors:
            print(f"survived: {record.id}  {record.change}")
    return 0 if all(row.passes for row in rows) else 1


if __name__ == "__main__":
    raise SystemExit(main())
