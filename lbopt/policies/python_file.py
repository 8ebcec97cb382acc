"""A policy of one's own in a Python file, and where such a file is refused.

Python that a file names: refused where the file may come from elsewhere, and known by its SHA-256 where it is run.

A user who names a policy file on the command line asks for its code. A `run.json` that names one does not: its
author would choose what runs here. Such folders are read within `refused_code`.

`file.py:function`: any Python callable as a policy. It gets a read-only `Observation` and returns workers.

The function may carry an attribute ``admission = "immediate"``; it is then asked for one arriving request at a time,
with `sizes` of length one, and -1 holds that request back until the next step. What it returns is checked; what it
raises is reported with the step in which it happened.
"""

from __future__ import annotations

import hashlib
import importlib.util
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import CodeType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lbopt.exceptions import InfeasibleDecisionError, InputError, LbOptError
from lbopt.files import called, listed, opened, read_bytes, shown
from lbopt.policies.observation import Observation
from lbopt.policies.policy import Admission, checked_admission

_refusal: ContextVar[str | None] = ContextVar("refusal", default=None)

#: SHA-256 of each policy file that this process has run, by the path as it was given.
_run: dict[str, str] = {}


@contextmanager
def refused_code(source: str, *, allowed: bool = False) -> Iterator[None]:
    """Refuse to run any policy file within the block.

    Parameters
    ----------
    allowed
        Whether the user has allowed it. That does not lift a refusal around this one.
    """
    token = _refusal.set(_refusal.get() if allowed else source)
    try:
        yield
    finally:
        _refusal.reset(token)


def require_allowed(path: str) -> None:
    """Raise InputError within `refused_code`."""
    source = _refusal.get()
    if source is not None:
        raise InputError(
            f"policy file '{path}' is Python code that {source} names, and it would be run; read it, and add "
            "--allow-code (from Python: allow_code=True) if you trust it"
        )


def note_code(path: str, content: bytes) -> None:
    """Remember the SHA-256 of a policy file that is run now."""
    _run[path] = hashlib.sha256(content).hexdigest()


def code_in(configuration: Any) -> dict[str, str]:
    """Return the SHA-256 of each policy file that a configuration in plain data names and this process has run."""
    texts = list(_texts(configuration))
    return {path: sha256 for path, sha256 in sorted(_run.items()) if any(f"{path}:" in text for text in texts)}


def changed_code(recorded: Mapping[str, str]) -> str | None:
    """Return a sentence on the first policy file that is not what it was, or None.

    Parameters
    ----------
    recorded
        SHA-256 by path, as a `run.json` keeps them.
    """
    for path, then in recorded.items():
        try:
            now = hashlib.sha256(read_bytes(path)).hexdigest()
        except InputError:
            return f"policy file '{path}': SHA-256 {then[:16]}... then, not readable now"
        if now != then:
            return f"policy file '{path}': SHA-256 {then[:16]}... then, {now[:16]}... now"
    return None


def _texts(data: Any) -> Iterator[str]:
    if isinstance(data, str):
        yield data
    elif isinstance(data, Mapping):
        for value in data.values():
            yield from _texts(value)
    elif isinstance(data, list | tuple):
        for value in data:
            yield from _texts(value)


#: Bytes of a policy file.
LARGEST_POLICY = 2**22


@dataclass(frozen=True, slots=True)
class CallablePolicy:
    """A Python function as a policy."""

    name: str
    function: Callable[[Observation], Any]
    admission: Admission = "pooled"

    def decide(self, observation: Observation) -> NDArray[np.int64]:
        """Ask the function; whatever it raises becomes one sentence that names policy and step."""
        try:
            answer = self.function(observation)
        except LbOptError:
            raise
        except (Exception, SystemExit) as error:
            raise InputError(
                f"policy '{self.name}' raised {type(error).__name__} in step {observation.step}: {_one_line(error)}"
            ) from error
        try:
            workers = np.asarray(answer)
        except (ValueError, OverflowError):
            workers = np.asarray(None)
        if workers.size == 0 and observation.sizes.size == 0:
            return np.zeros(0, dtype=np.int64)
        if workers.dtype.kind != "i":
            raise InfeasibleDecisionError(
                f"policy '{self.name}' returned {_shorten(answer)} in step {observation.step}; "
                f"expected {observation.sizes.size} whole worker numbers, -1 for a request that keeps waiting"
            )
        return workers.astype(np.int64)


def load_callable(spec: str) -> CallablePolicy:
    """Load `path/to/file.py:function`."""
    path_text, _, name = spec.rpartition(":")
    path = Path(path_text)
    shown_path = called(path_text)
    require_allowed(shown_path)
    with opened(
        path_text, f"policy file '{shown_path}'", largest=LARGEST_POLICY, way_out="; expected path/to/file.py:function"
    ) as stream:
        content = stream.read()
    unique = hashlib.sha256(str(path.resolve()).encode()).hexdigest()[:12]  # two files may have the same name
    loader = _Content(f"lbopt_policy_{path.stem}_{unique}", str(path), content)
    module_spec = importlib.util.spec_from_file_location(loader.name, path, loader=loader)
    if module_spec is None or module_spec.loader is None:
        raise InputError(f"policy file '{shown_path}' is not a Python file")
    module = importlib.util.module_from_spec(module_spec)
    sys.modules[module_spec.name] = module  # dataclasses and pickling inside the file look it up there
    note_code(path_text, content)
    try:
        module_spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:
        raise InputError(
            f"policy file '{shown_path}' cannot be loaded: {type(error).__name__}: {_one_line(error)}"
        ) from error
    function = getattr(module, name, None)
    if not callable(function):
        offered = listed(n for n, v in vars(module).items() if callable(v) and not n.startswith("_"))
        raise InputError(f"policy file '{shown_path}' has no function {shown(name)}; its functions: {offered}")
    admission = checked_admission(spec, getattr(function, "admission", "pooled"))
    return CallablePolicy(name=spec, function=function, admission=admission)


class _Content(SourceFileLoader):
    """Runs the bytes that were read and noted, and never a compiled file that lies beside them."""

    def __init__(self, name: str, path: str, content: bytes) -> None:
        super().__init__(name, path)
        self._content = content

    def get_code(self, fullname: str) -> CodeType:
        """Return the compiled content."""
        code: CodeType = self.source_to_code(self._content, self.path)
        return code


def _one_line(error: BaseException) -> str:
    return " ".join(str(error).split())


def _shorten(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."
