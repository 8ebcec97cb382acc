"""Canonical JSON: one value, one text.

Keys are sorted and nothing is spaced, so equal values have equal texts; 1, 1.0 and true have different ones. What JSON
does not hold exactly (NaN, infinities, keys that are not text, objects of other types) is refused by name. A tuple is
written as a list.

A task: a function path, parameters and a seed. Its key is the hash of the three.

The key is the SHA-256 of the canonical JSON of function, parameters, seed and the version of this format, so it is the
same on every machine and in every process, and moves when any of them moves.
"""

from __future__ import annotations

import hashlib
import json
import math
from dataclasses import dataclass, field
from typing import Any

from lbopt.exceptions import InputError

#: Deeper values are refused: a text that could be written must also be readable, from any depth of calls.
DEEPEST = 100

_HELD = "None, bool, int, finite float, text, list, or dict with text keys"


def canonical_json(value: Any, name: str) -> str:
    """Return the text of `value` in ASCII; `name` is what messages call it."""
    _check(value, name, DEEPEST)
    try:
        return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)
    except ValueError as error:  # an int of more digits than Python writes
        raise InputError(f"{name} cannot be written as JSON: {error}") from None


def _check(value: Any, name: str, levels: int) -> None:
    if value is None or isinstance(value, str | int):
        return
    if isinstance(value, float):
        if not math.isfinite(value):
            raise InputError(f"{name} is {value}, which JSON does not hold; expected {_HELD}")
    elif levels == 0:
        raise InputError(f"a value nested more than {DEEPEST} levels deep, or inside itself, is at {name[:100]}...")
    elif isinstance(value, list | tuple):
        for place, entry in enumerate(value):
            _check(entry, f"{name}[{place}]", levels - 1)
    elif isinstance(value, dict):
        for key, entry in value.items():
            if not isinstance(key, str):
                raise InputError(f"{name} has the key {key!r} of type {_type(key)}; JSON has text keys only")
            _check(entry, f"{name}[{key!r}]", levels - 1)
    else:
        raise InputError(f"{name} is a {_type(value)}, which JSON does not hold; expected {_HELD}")


def _type(value: object) -> str:
    kind = type(value)
    return kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"


#: Part of every key: raise it when the same text would mean another computation.
TASK_FORMAT = 1


@dataclass(frozen=True, slots=True, eq=False)
class Task:
    """One call, written down.

    Parameters
    ----------
    function
        "package.module:name" of a function of a module that every process can import.
    parameters
        Its keyword arguments, of values that JSON holds. They are copied (a tuple becomes a list), and every engine
        calls the function with that copy.
    seed
        Passed as the keyword argument `seed`; None passes nothing.

    Attributes
    ----------
    text
        The canonical JSON of the task.
    key
        The SHA-256 of `text`, in hexadecimal.
    """

    function: str
    parameters: dict[str, Any]
    seed: int | None
    text: str = field(init=False, repr=False)
    key: str = field(init=False, repr=False)

    def __post_init__(self) -> None:
        _check_path(self.function)
        if not isinstance(self.parameters, dict):
            raise InputError(f"parameters of task '{self.function}' are {self.parameters!r}; expected a dict")
        if self.seed is not None and (isinstance(self.seed, bool) or not isinstance(self.seed, int)):
            raise InputError(f"seed of task '{self.function}' is {self.seed!r}; expected an int or None")
        for name, value in self.parameters.items():
            if not isinstance(name, str):
                raise InputError(f"task '{self.function}' has the parameter {name!r}; expected a name, as text")
            if name == "seed":
                raise InputError(f"task '{self.function}' has a parameter named 'seed'; give it as the task's seed")
            canonical_json(value, f"parameter '{name}' of task '{self.function}'")
        content = {
            "format": TASK_FORMAT,
            "function": self.function,
            "parameters": self.parameters,
            "seed": self.seed,
        }
        text = canonical_json(content, f"task '{self.function}'")
        object.__setattr__(self, "parameters", json.loads(text)["parameters"])
        object.__setattr__(self, "text", text)
        object.__setattr__(self, "key", hashlib.sha256(text.encode("ascii")).hexdigest())

    def __eq__(self, other: object) -> bool:
        return self.key == other.key if isinstance(other, Task) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.key)

    @classmethod
    def from_text(cls, text: str) -> Task:
        """Return the task whose `text` this is."""
        content = json.loads(text)
        return cls(content["function"], content["parameters"], content["seed"])

    def arguments(self) -> dict[str, Any]:
        """Return the keyword arguments of the call, new objects each time."""
        content = json.loads(self.text)
        given: dict[str, Any] = content["parameters"]
        return given if self.seed is None else given | {"seed": content["seed"]}


def _check_path(path: object) -> None:
    """Refuse what cannot be the path of a function that another process imports."""
    if not isinstance(path, str):
        raise InputError(f"the function of a task is {path!r}; expected text of the form 'package.module:name'")
    module, _, name = path.partition(":")
    if not (name.isidentifier() and all(part.isidentifier() for part in module.split("."))):
        raise InputError(f"the function of a task is '{path}'; expected the form 'package.module:name'")
    if module == "__main__":
        raise InputError(
            f"the function of a task is '{path}', which only the running script has; "
            "move it to a module that can be imported"
        )
