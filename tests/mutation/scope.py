"""What is mutated: seven rooms, how many mutants of each, and which share the tests have to kill."""

from __future__ import annotations

import hashlib
import math
import re
import tomllib
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from tests.mutation.operators import Mutant, mutants_of
from tests.rules import lists

ROOT = Path(__file__).resolve().parents[2]
HERE = Path(__file__).resolve().parent
NEAREST = HERE / "nearest.toml"
EQUIVALENTS = HERE / "equivalents.toml"

#: Another seed draws other mutants; equivalents are listed by what they change, whatever the draw.
SEED = 1

#: So many of the test files that import a module are tried on its mutants.
FEW = 6


@dataclass(frozen=True, slots=True)
class Room:
    """One folder of the package.

    Parameters
    ----------
    folder
        Its path in the package.
    mutants
        How many of its mutants are drawn.
    goal
        Share of the mutants that are not equivalent which the tests have to kill.
    interpreted
        Whether tests run as plain Python. A mutant of a kernel compiles for a minute, and the suite passes both ways.
    """

    folder: str
    mutants: int
    goal: float
    interpreted: bool = False

    def may_survive(self, mutants: int) -> int:
        """Return how many of so many mutants may survive, rounded up: one of a handful does not fail the gate."""
        return math.ceil(round((1 - self.goal) * mutants, 9))


ROOMS = (
    Room("kernels/routing", 110, 0.95, interpreted=True),
    Room("kernels/search", 80, 0.90, interpreted=True),
    Room("solvers/certificates", 110, 0.95),
    Room("simulator", 65, 0.90),
    Room("policies", 75, 0.90),
    Room("runner", 60, 0.90),
    Room("theory/chains", 10, 0.90),
)


@cache
def modules(folder: str) -> dict[str, list[Mutant]]:
    """Return all mutants of each module of a folder that has any, by the path of the module in the package."""
    found = {}
    for path in sorted((ROOT / "lbopt" / folder).rglob("*.py")):
        name = path.relative_to(ROOT / "lbopt").as_posix()
        found[name] = mutants_of(name, path.read_text(encoding="utf-8"))
    return {name: mutants for name, mutants in found.items() if mutants}


def room_of(file: str) -> Room | None:
    """Return the room of a module of the package, or None if it lies in none."""
    return next((room for room in ROOMS if file.startswith(f"{room.folder}/")), None)


def drawn(room: Room, seed: int = SEED) -> list[Mutant]:
    """Return the mutants of a room that are tried, in the order of a hash of seed and identifier.

    A new function adds mutants; those of the others keep their order among themselves.
    """
    everyone = [mutant for mutants in modules(room.folder).values() for mutant in mutants]
    everyone.sort(key=lambda mutant: hashlib.sha256(f"{seed} {mutant.id}".encode()).digest())
    return everyone[: room.mutants]


def mapped() -> list[str]:
    """Return the modules that the map knows by name."""
    return list(tomllib.loads(NEAREST.read_text(encoding="utf-8"))["by_hand"])


def nearest(file: str) -> list[str]:
    """Return the test files of a module, nearest first.

    Those named by hand, the twin of a kernel, a few that import it or have its name, and those of its room.
    """
    tables = tomllib.loads(NEAREST.read_text(encoding="utf-8"))
    room = room_of(file)
    twin = lists.listed_twins().get(file, "").split("::")[0]
    rows = [*tables["by_hand"].get(file, []), twin, *importers(file)[:FEW], *tables["by_room"].get(room.folder, [])]
    return [test for test in dict.fromkeys(filter(None, rows)) if not (room.interpreted and test in compiled_tests())]


@cache
def importers(file: str) -> list[str]:
    """Return the test files with the name of a module, then those that import it or its classes, own room first."""
    package, _, name = f"lbopt/{file.removesuffix('.py')}".replace("/", ".").rpartition(".")
    text = (ROOT / "lbopt" / file).read_text(encoding="utf-8")
    defined = re.findall(r"^class ([A-Z]\w+)", text, re.M)
    ways = [rf"{re.escape(package)}\.{name}\b", rf"from {re.escape(package)} import [^\n]*\b{name}\b"]
    uses = re.compile("|".join([*ways, *(rf"^(?:from|import) .*\b{one}\b" for one in defined)]), re.M)
    texts = texts_of_tests()
    named = [test for test in texts if Path(test).stem == f"test_{name}" and file.split("/")[0] in test]
    others = [test for test, said in texts.items() if test not in named and uses.search(said)]
    room = f"tests/{file.split('/')[0]}/"
    return named + sorted(others, key=lambda test: (not test.startswith(room), texts[test].count("from lbopt")))


@cache
def texts_of_tests() -> dict[str, str]:
    """Return what each test file says, by its path in the checkout."""
    paths = sorted((ROOT / "tests").rglob("test_*.py"))
    return {path.relative_to(ROOT).as_posix(): path.read_text(encoding="utf-8") for path in paths}


@cache
def compiled_tests() -> set[str]:
    """Return the test files that take too long where kernels are plain Python."""
    return {test for test, text in texts_of_tests().items() if re.search(r"^pytestmark = .*mark\.jit", text, re.M)}


@cache
def equivalents() -> dict[str, dict[str, str]]:
    """Return change and reason of each mutant that no test can tell from the original, by its identifier."""
    return tomllib.loads(EQUIVALENTS.read_text(encoding="utf-8"))


def is_equivalent(mutant: Mutant) -> bool:
    """Whether a mutant is listed as equivalent, and still changes what the list says."""
    return equivalents().get(mutant.id, {}).get("change") == mutant.change
