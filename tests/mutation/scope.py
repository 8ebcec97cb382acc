"""What is mutated: seven rooms, how many mutants of each, and which share the tests have to kill."""

from __future__ import annotations

import hashlib
import math
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
    tables = tomllib.loads(NEAREST.read_text(encoding="utf-8"))
    return [*tables["by_hand"], *tables["measured"]]


@cache
def nearest(file: str) -> list[str]:
    """Return the test files of a module, nearest first.

    Those named by hand, the twin of a kernel, those measured; those of the room for a module that is new.
    """
    tables = tomllib.loads(NEAREST.read_text(encoding="utf-8"))
    twin = lists.listed_twins().get(file, "").split("::")[0]
    rows = [*tables["by_hand"].get(file, []), twin, *tables["measured"].get(file, [])]
    found = list(dict.fromkeys(filter(None, rows)))
    room = room_of(file)
    return found or (tables["by_room"].get(room.folder, []) if room else [])


@cache
def equivalents() -> dict[str, dict[str, str]]:
    """Return change and reason of each mutant that no test can tell from the original, by its identifier."""
    return tomllib.loads(EQUIVALENTS.read_text(encoding="utf-8"))


def is_equivalent(mutant: Mutant) -> bool:
    """Whether a mutant is listed as equivalent, and still changes what the list says."""
    return equivalents().get(mutant.id, {}).get("change") == mutant.change
