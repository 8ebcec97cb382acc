"""Stops verbs at random moments by SIGINT, SIGTERM and SIGKILL, lets them go on, and compares with an easy run.

    python -m tests.kills --moments 300 --seed 1 --out kills.jsonl

Each line of the file is one moment; the same command goes on where the file ends, and `--table` prints the table of
what it holds. A verb runs in a copy of this process, which has imported everything already, so that moments fall into
the work; every sixth one runs in a fresh interpreter, where they also fall into the start. Moments come in rounds of
three in one folder, after which the verb is run to its end. No moment may leave a traceback, a process, a file that is
not meant to stay, or another result.
"""

from __future__ import annotations

import argparse
import atexit
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import traceback
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]

#: Each verb with a small input; those with a store go on from it.
VERBS = {
    "gap": "gap burstgpt-like -n 300 -G 3 -B 4 --states 6 --behaviour fcfs -p fcfs -p br-0 --time-limit 60 -o out",
    "check": "check lemma-1-printed --seed 1 --store store.sqlite -o out",
    "study": "study scaling -G 2 -G 3 -B 4 --policy fcfs --store store.sqlite -o out",
    "audit": f"audit {ROOT / 'examples' / 'logs' / 'fleet.csv'} -p jsq -p br-0 --states 3 -o out",
    "joblib": "study scaling -G 2 -G 3 -B 4 --policy fcfs --engine joblib:jobs=2 --store store.sqlite -o out",
    "dask": "study scaling -G 2 -G 3 -B 4 --policy fcfs --engine dask:jobs=2 --store store.sqlite -o out",
}
SIGNALS = ("SIGINT", "SIGTERM", "SIGKILL")

#: Moments in one folder before the verb is run to its end.
ROUND = 3

#: A verb must have ended so many seconds after it was asked to.
PATIENCE = 60.0

#: What may lie beside the output folder.
MEANT = {"out", "store.sqlite"}
#: What a kill may leave until the next run.
UNTIL_NEXT = ("store.sqlite-lock", "store.sqlite-journal", "out.old.partial")

_MARK = "LBOPT_KILLS"


class Run:
    """One run of a verb in a session of its own."""

    def __init__(self, verb: str, folder: Path, *, cold: bool = False) -> None:
        self.folder = folder
        self.words = VERBS[verb].split()
        self.mark = f"{os.getpid()}-{time.monotonic_ns()}"
        self.temporary = folder.with_name(f"{folder.name}-tmp")
        self.temporary.mkdir(exist_ok=True)
        self.said = folder.with_name(f"{folder.name}-said")
        self.pid = self._cold() if cold else self._warm()

    def _cold(self) -> int:
        with self.said.open("wb") as stream:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "lbopt", *self.words],
                cwd=self.folder,
                env=self._environment(),
                stdout=stream,
                stderr=stream,
                start_new_session=True,
            )
        return self._process.pid

    def _warm(self) -> int:
        sys.stdout.flush()
        pid = os.fork()
        if pid:
            return pid
        code = 70
        try:
            os.setsid()
            os.chdir(self.folder)
            os.environ.update(self._environment())
            tempfile.tempdir = None
            stream = os.open(self.said, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
            os.dup2(stream, 1)
            os.dup2(stream, 2)
            code = as_a_program(self.words)
        finally:
            os._exit(code)

    def _environment(self) -> dict[str, str]:
        path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
        return {**os.environ, "PYTHONPATH": path, "TMPDIR": str(self.temporary), _MARK: self.mark}

    def ended(self, within: float) -> int | None:
        """Wait; return the exit code, negative for a signal, or None where it still runs."""
        limit = time.monotonic() + within
        while True:
            found, status = os.waitpid(self.pid, os.WNOHANG)
            if found:
                return os.waitstatus_to_exitcode(status)
            if time.monotonic() > limit:
                return None
            time.sleep(0.002)

    def orphans(self, within: float = 15.0) -> list[str]:
        """Return the commands of processes that go on without it."""
        limit = time.monotonic() + within
        while (found := list(self._living())) and time.monotonic() < limit:
            time.sleep(0.05)
        for pid, _ in found:
            os.kill(pid, signal.SIGKILL)
        return [command for _, command in found]

    def _living(self):
        for place in Path("/proc").iterdir():
            if not place.name.isdecimal() or int(place.name) == os.getpid():
                continue
            try:
                state, *rest = (place / "stat").read_text().rsplit(")", 1)[1].split()
                ours = f"{_MARK}={self.mark}\0".encode() in (place / "environ").read_bytes()
                if state != "Z" and (ours or int(rest[2]) == self.pid):
                    yield int(place.name), (place / "cmdline").read_text().replace("\0", " ")[:100]
            except (OSError, ValueError):
                continue


def as_a_program(words: list[str]) -> int:
    """Run the command line as the interpreter would, to the end of its exit functions; return the exit code."""
    from lbopt.__main__ import main

    sys.argv = ["lbopt", *words]
    signal.signal(signal.SIGINT, signal.default_int_handler)
    code = 0
    try:
        main()
    except SystemExit as leave:
        code = leave.code if isinstance(leave.code, int) else int(leave.code is not None)
    except BaseException:
        traceback.print_exc()
        code = 1
    threading._shutdown()
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    return code


def results(folder: Path, verb: str) -> dict[str, object]:
    """Return digests of what a folder says, times left out."""
    from frozen.digests import tables

    from lbopt.studies.registry import study_of_format

    account = json.loads((folder / "run.json").read_text())
    study = study_of_format(account["format"])
    found = {
        name: {c: d for c, d in columns.items() if c not in study.timings} for name, columns in tables(folder).items()
    }
    return {"tables": found, "interrupted": account.get("interrupted"), "files": sorted(account["files"])}


def left(run: Run) -> list[str]:
    """Return the names of files that nobody needs any more."""
    beside = [path.name for path in run.folder.iterdir() if path.name not in MEANT]
    inside = [f"out/{path.name}" for path in (run.folder / "out").glob("*") if path.name.endswith(("partial", "-lock"))]
    return sorted([*beside, *inside, *(f"TMPDIR/{path.name}" for path in run.temporary.iterdir())])


def easy(verb: str, base: Path) -> tuple[dict[str, object], float]:
    """Run a verb undisturbed, twice, and return its results and the seconds of the second time."""
    for number in (1, 2):
        folder = base / f"easy-{verb}-{number}"
        folder.mkdir()
        began = time.monotonic()
        run = Run(verb, folder)
        code = run.ended(600)
        seconds = time.monotonic() - began
        assert code in (0, 1), (verb, code, run.said.read_text())
        assert run.orphans() == []
        assert left(run) == [], left(run)
    return results(folder / "out", verb), seconds


class Rounds:
    """The moments of one verb, round after round."""

    def __init__(self, verb: str, base: Path) -> None:
        self.verb, self.base = verb, base
        self.truth, self.seconds = easy(verb, base)

    def moments(self, draw: random.Random, number: int, count: int) -> list[dict[str, object]]:
        """Stop the verb `count` times in one folder, run it to its end, and return an account of each moment."""
        folder = self.base / f"{self.verb}-{number}"
        folder.mkdir()
        found = [self._moment(draw, folder, number + place) for place in range(count)]
        last = Run(self.verb, folder)
        code = last.ended(600)
        wrong = []
        if code not in (0, 1):
            wrong.append(f"the last run ended with {code}: {last.said.read_text()[-300:]}")
        elif results(folder / "out", self.verb) != self.truth:
            wrong.append("other results after going on")
        # temporary files of a killed run are the system's to remove: nothing that lives knows them
        after = [name for name in left(last) if not name.startswith("TMPDIR")]
        wrong += [f"left after going on: {name}" for name in after] + [f"orphan: {one}" for one in last.orphans()]
        found[-1]["wrong"] += wrong
        for path in (folder, last.temporary):
            shutil.rmtree(path, ignore_errors=True)
        last.said.unlink()
        return found

    def _moment(self, draw: random.Random, folder: Path, number: int) -> dict[str, object]:
        name = SIGNALS[number % len(SIGNALS)]
        cold = number % 6 == 5
        after = draw.uniform(0, self.seconds * (1.0 if not cold else 2.0))
        group = name != "SIGKILL" and draw.random() < 0.5
        run = Run(self.verb, folder, cold=cold)
        before = run.ended(after)
        if before is None:
            (os.killpg if group else os.kill)(run.pid, getattr(signal, name))
        asked = time.monotonic()
        code = before if before is not None else run.ended(PATIENCE)
        took = time.monotonic() - asked
        said = run.said.read_text(errors="replace")
        wrong = []
        if code is None:
            wrong.append(f"it had not ended after {PATIENCE:g} s")
            os.killpg(run.pid, signal.SIGKILL)
            run.ended(10)
        elif before is None and code not in _allowed(name, begun=bool(said) or after > (0.2 if cold else 0.02)):
            wrong.append(f"exit code {code}: {said[-300:]}")
        if "Traceback" in said:
            wrong.append(f"traceback: {said[max(0, said.find('Traceback') - 200) :][:3000]}")
        wrong += [f"orphan: {one}" for one in run.orphans()]
        remains = left(run)
        if name == "SIGKILL":
            allowed = [one for one in remains if one in UNTIL_NEXT or one.startswith((".lbopt-", "TMPDIR/", "out/"))]
            remains = [one for one in remains if one not in allowed]
        wrong += [f"left: {one}" for one in remains]
        for path in run.temporary.iterdir():
            shutil.rmtree(path) if path.is_dir() else path.unlink()
        return {
            "verb": self.verb,
            "signal": name,
            "group": group,
            "cold": cold,
            "after": round(after, 3),
            "in_flight": before is None,
            "ended_after": round(took, 3),
            "wrong": wrong,
        }


def _allowed(name: str, *, begun: bool) -> tuple[int, ...]:
    """Return the exit codes after a signal; before the program has begun, nobody but the system answers SIGTERM."""
    if name == "SIGKILL":
        return (0, 1, -9)
    return (0, 1, 130) if begun or name != "SIGTERM" else (0, 1, 130, -15)


def table(lines: list[dict[str, object]]) -> str:
    """Return the table of the moments as Markdown."""
    rows = ["| verb | " + " | ".join(SIGNALS) + " | longest until the end (s) | wrong |", "|---|" + "---:|" * 5]
    for verb in VERBS:
        ours = [line for line in lines if line["verb"] == verb and line["in_flight"]]
        counts = Counter(line["signal"] for line in ours)
        slowest = max((line["ended_after"] for line in ours), default=0.0)
        wrong = sum(bool(line["wrong"]) for line in lines if line["verb"] == verb)
        rows.append(
            f"| `{verb}` | " + " | ".join(str(counts[name]) for name in SIGNALS) + f" | {slowest:.1f} | {wrong} |"
        )
    missed = sum(not line["in_flight"] for line in lines)
    return "\n".join(
        [*rows, "", f"{len(lines) - missed} moments in flight; {missed} more came after the end of the run."]
    )


def main(arguments: list[str] | None = None) -> int:
    """Run the moments that the file lacks; exit code 1 where anything was wrong."""
    parser = argparse.ArgumentParser(prog="python -m tests.kills", description=__doc__)
    parser.add_argument("--moments", type=int, default=300)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", type=Path, default=Path("kills.jsonl"))
    parser.add_argument("--verbs", nargs="*", default=list(VERBS), choices=list(VERBS))
    parser.add_argument("--table", action="store_true", help="print the table of what the file holds")
    options = parser.parse_args(arguments)
    text = options.out.read_text() if options.out.exists() else ""
    lines = [json.loads(line) for line in text.splitlines()]
    sys.path.insert(0, str(ROOT / "tests"))
    base = tempfile.mkdtemp(prefix="kills-")  # not TemporaryDirectory, which a copy of this process would remove
    try:
        rounds: dict[str, Rounds] = {}
        while not options.table and (done := sum(line["in_flight"] for line in lines)) < options.moments:
            number = len(lines)
            verb = options.verbs[number // ROUND % len(options.verbs)]
            if verb not in rounds:
                preload(verb, Path(base))
                rounds[verb] = Rounds(verb, Path(base))
            draw = random.Random(f"{options.seed} {number}")
            new = rounds[verb].moments(draw, number, ROUND)
            lines += new
            with options.out.open("a") as stream:
                stream.writelines(json.dumps(line) + "\n" for line in new)
            for line in new:
                sys.stdout.write(
                    f"{done:4} {line['verb']} {line['signal']} {line['after']} {line['wrong'] or 'good'}\n"
                )
            sys.stdout.flush()
    finally:
        shutil.rmtree(base, ignore_errors=True)
    sys.stdout.write(table(lines) + "\n")
    return int(any(line["wrong"] for line in lines))


def preload(verb: str, base: Path) -> None:
    """Import what a verb needs into this process, by running it here once."""
    before, argv = Path.cwd(), sys.argv
    folder = base / f"here-{verb}"
    folder.mkdir()
    os.chdir(folder)
    from lbopt.cli import main as run

    sys.argv = ["lbopt", *VERBS[verb].replace("--engine dask:jobs=2", "").replace("--engine joblib:jobs=2", "").split()]
    quiet = os.open(os.devnull, os.O_WRONLY)
    kept = os.dup(1), os.dup(2)
    sys.stdout.flush()
    os.dup2(quiet, 1)
    os.dup2(quiet, 2)
    try:
        run()
    except SystemExit:
        pass
    finally:
        sys.stdout.flush()
        os.dup2(kept[0], 1)
        os.dup2(kept[1], 2)
        os.chdir(before)
        sys.argv = argv


if __name__ == "__main__":
    sys.exit(main())
