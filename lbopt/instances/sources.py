"""One word for a trace: a family, a public trace that was fetched, or a file."""

from __future__ import annotations

import os
from pathlib import Path

from lbopt.exceptions import InputError
from lbopt.instances import families
from lbopt.instances.captures import SUFFIX, read_capture_trace
from lbopt.instances.catalogue import CATALOGUE
from lbopt.instances.download import fetched_path
from lbopt.instances.readers import Columns, Reading, read
from lbopt.model.trace import Trace
from lbopt.spec import did_you_mean


def open_trace(
    spec: str | os.PathLike[str],
    *,
    count: int | None = None,
    seed: int | None = None,
    format: str = "auto",
    columns: Columns | None = None,
    skip_malformed: bool = False,
) -> Trace:
    """Return the trace that a word stands for.

    Parameters
    ----------
    spec
        A family ("azure-like", "moe-task", ...), the name of a fetched public trace ("azure-2023-conv"), or the path
        of a file. Names go first; write "./azure-like" for a file that is called like a family.
    count
        Requests: how many to draw from a family (needed there); of a file, only the first `count`.
    seed
        Needed for a family; a file has nothing random and passes it over.
    format, columns, skip_malformed
        How to read a file, as in `lbopt.instances.readers.read_trace`.

    Examples
    --------
    >>> import lbopt
    >>> lbopt.open_trace("burstgpt-like", count=1000, seed=1)
    <Trace burstgpt-like: 1,000 requests, mean prompt ... and output ... tokens, ...>
    """
    reading = open_reading(spec, count=count, seed=seed, format=format, columns=columns, skip_malformed=skip_malformed)
    return reading.trace


def open_reading(
    spec: str | os.PathLike[str],
    *,
    count: int | None = None,
    seed: int | None = None,
    format: str = "auto",
    columns: Columns | None = None,
    skip_malformed: bool = False,
) -> Reading:
    """Do the same as `open_trace`, and keep the account of how the file was read.

    Parameters
    ----------
    spec, count, seed, format, columns, skip_malformed
        As in `open_trace`.
    """
    word = os.fspath(spec)
    if word in families.ALL_NAMES:
        if count is None or seed is None:
            raise InputError(f"the family {word!r} needs a count of requests and a seed")
        draw = families.generate_experts if word in families.EXPERT_NAMES else families.generate
        return Reading(trace=draw(word, count, seed), format="family")
    path, name = Path(word), None
    if word in CATALOGUE:
        fetched = fetched_path(word)
        if fetched is None:
            raise InputError(f"{word} was not fetched yet; get it with: lbopt traces fetch {word}")
        path, name = fetched, word
    elif "/" not in word and os.sep not in word and not _exists(path):
        known = (*families.ALL_NAMES, *CATALOGUE)
        raise InputError(
            f"no file, family or public trace {word!r}; known are {', '.join(known)}{did_you_mean(word, known)}"
        )
    if path.suffix == SUFFIX and format == "auto":
        reading = read_capture_trace(path)
    else:
        reading = read(path, format, columns, skip_malformed=skip_malformed, name=name)
    if count is None:
        return reading
    return Reading(trace=reading.trace.first(count), format=reading.format, reordered=reading.reordered)


def _exists(path: Path) -> bool:
    try:
        return path.exists()
    except (OSError, ValueError):  # too long, or a NUL inside
        return False
