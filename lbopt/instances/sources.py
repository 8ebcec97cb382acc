"""One word for a trace: a family, a public trace that was fetched, a file, or a capture of calibration requests.

A capture has real prompts with the experts that they use, and not how long answers are or when requests come: every
answer is taken to be 512 tokens, as in ELDR's runs, and a closed loop needs no times. Requests are in the order of the
file.
"""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np

from lbopt.exceptions import InputError
from lbopt.instances import families
from lbopt.instances.catalogue import CATALOGUE
from lbopt.instances.download import fetched_path
from lbopt.instances.families.experts import OUTPUT_TOKENS
from lbopt.instances.readers import Columns, Reading, read
from lbopt.model import RequestExperts, Trace
from lbopt.spec import did_you_mean

SUFFIX = ".npz"


def read_capture_trace(path: Path) -> Reading:
    """Return the requests of a capture."""
    from lbopt.locality import read_capture  # compiled code is imported when a capture is read, not when a trace is

    capture = read_capture(path)
    N = len(capture.counts)
    trace = Trace(
        prompt=capture.counts[:, 0].sum(axis=1) // capture.experts_per_token,
        output=np.full(N, OUTPUT_TOKENS),
        name=path.stem,
        experts=RequestExperts(
            chosen=capture.counts,
            decode=np.clip(capture.decode, 0, 1).astype(np.float32),  # a capture may be off by rounding
            domain=np.zeros(N, dtype=np.int64) if capture.domain is None else capture.domain,
            profile=np.arange(N),
            gate_prob=capture.gate_prob,
            model=capture.model,
        ),
    )
    return Reading(trace=trace, format="capture")


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
            raise InputError(f"{word} was not fetched yet; get it with: lbopt show traces {word} --fetch")
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
