"""Where traces come from: named public ones, which are fetched and checked, files and families.

Public traces that can be fetched by name: address, licence, and the SHA-256 where it is known.

Fetch public traces once, check them, keep them.

A file whose SHA-256 lbopt knows must match it. For the others the SHA-256 of the first download is kept beside the
file (``FILE.sha256``, as ``sha256sum -c`` reads it), and every later use must match that; a note says that the first
one was not pinned. A download goes to a temporary name and is moved only when it is complete, of the right format and
of the right hash. Everything comes over https, so that none on the way can change a first download; a server of this
machine may use http.

One word for a trace: a family, a public trace that was fetched, a file, or a capture of calibration requests.

A capture has real prompts with the experts that they use, and not how long answers are or when requests come: every
answer is taken to be 512 tokens, as in ELDR's runs, and a closed loop needs no times. Requests are in the order of the
file.
"""

from __future__ import annotations

import hashlib
import ipaddress
import logging
import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import numpy as np

from lbopt.exceptions import InputError
from lbopt.instances import families
from lbopt.instances.families.experts import OUTPUT_TOKENS
from lbopt.instances.readers import Columns, Reading, read
from lbopt.instances.readers.formats import detect
from lbopt.kinds import typed
from lbopt.model import RequestExperts, Trace
from lbopt.spec import did_you_mean
from lbopt.whole_file import write_file

_AZURE_2023 = "https://raw.githubusercontent.com/Azure/AzurePublicDataset/master/data"
_AZURE_2024 = "https://azurepublicdatasettraces.blob.core.windows.net/azurellminfererencetrace"
_BURSTGPT = "https://github.com/HPMLL/BurstGPT/releases/download/v1.2"
_MOONCAKE = "https://raw.githubusercontent.com/kvcache-ai/Mooncake/3b5a594133958449a1feaf1c9e0fc1b553e34a28"
_BF_IO = "https://raw.githubusercontent.com/Echoscd/Load-Balancing-Release/6ae705d5c18e475a1f0a7ed6697c722b76a07d98"


@dataclass(frozen=True, slots=True, kw_only=True)
class PublicTrace:
    """One published file.

    Parameters
    ----------
    name
        What lbopt calls it.
    base_url, file
        Its address is base_url/file; a mirror replaces base_url and keeps the file's name.
    format
        Of `lbopt.instances.readers.formats.TABLE`.
    licence, about
        For people.
    sha256
        Of the file; None where lbopt does not know it, and the first download is trusted and remembered.
    """

    name: str
    base_url: str
    file: str
    format: str
    licence: str
    about: str
    sha256: str | None = None


CATALOGUE = {
    entry.name: entry
    for entry in (
        PublicTrace(
            name="azure-2023-conv",
            base_url=_AZURE_2023,
            file="AzureLLMInferenceTrace_conv.csv",
            format="azure",
            licence="CC BY",
            about="Azure 2023, conversation, 1 hour, 19,366 requests",
            sha256="2f1e5b666d4e3055fdbba98598ce2ec307767b9064e03e2fa46676dbcc7d0bf8",
        ),
        PublicTrace(
            name="azure-2023-code",
            base_url=_AZURE_2023,
            file="AzureLLMInferenceTrace_code.csv",
            format="azure",
            licence="CC BY",
            about="Azure 2023, coding, 1 hour, 8,819 requests",
            sha256="54e9a6d2a4bd06ba1e060304b900abbc74cbea53de96506e60fe5bb4f2277fb6",
        ),
        PublicTrace(
            name="azure-2024-conv",
            base_url=_AZURE_2024,
            file="AzureLLMInferenceTrace_conv_1week.csv",
            format="azure",
            licence="CC BY",
            about="Azure 2024, conversation, 1 week (about 1 GB)",  # size unverified
        ),
        PublicTrace(
            name="azure-2024-code",
            base_url=_AZURE_2024,
            file="AzureLLMInferenceTrace_code_1week.csv",
            format="azure",
            licence="CC BY",
            about="Azure 2024, coding, 1 week (about 1 GB)",  # size unverified
        ),
        PublicTrace(
            name="mooncake-conversation",
            base_url=f"{_MOONCAKE}/FAST25-release/traces",
            file="conversation_trace.jsonl",
            format="mooncake",
            licence="Apache 2.0",
            about="Mooncake, conversation, 1 hour, 12,031 requests",
            sha256="b8cbb061a85206d729d91cdc2981f43c9e0d99209dce588d3af5f7934408b9df",
        ),
        PublicTrace(
            name="burstgpt-8000",
            base_url=_BF_IO,
            file="burst_data_8000.json",
            format="lengths",
            licence="CC BY 4.0 (BurstGPT)",
            about="lengths of 8,000 BurstGPT requests, the sample of the BF-IO authors",
            sha256="f030a60ce35565661e0669484037f823af68a48fcf51e9ef043c9223e4580361",
        ),
        PublicTrace(
            name="arxiv-8000",
            base_url=_BF_IO,
            file="arxiv_data_8000.json",
            format="lengths",
            licence="see ccdv/arxiv-summarization",
            about="lengths of 8,000 summaries of arXiv papers, the sample of the BF-IO authors",
            sha256="6c45abface3b26619953fd91c981ec93d861ac9910fccf3816103df3901f285f",
        ),
        # Unverified: that release v1.2 carries assets of these names. They are the names of the files in the data/
        # folder of the repository, and of the assets of releases v1.1 and v2.0 (there with "without_fails").
        PublicTrace(
            name="burstgpt-1",
            base_url=_BURSTGPT,
            file="BurstGPT_1.csv",
            format="burstgpt",
            licence="CC BY 4.0",
            about="BurstGPT, first part, about 1.4 million requests",
        ),
        PublicTrace(
            name="burstgpt-2",
            base_url=_BURSTGPT,
            file="BurstGPT_2.csv",
            format="burstgpt",
            licence="CC BY 4.0",
            about="BurstGPT, second part, about 3.9 million requests",
        ),
    )
}


def public_trace(name: str) -> PublicTrace:
    """Return the catalogue's entry of that name."""
    if name not in CATALOGUE:
        raise InputError(f"no public trace {name!r}; known are {', '.join(CATALOGUE)}{did_you_mean(name, CATALOGUE)}")
    return CATALOGUE[name]


def record_of(target: Path) -> Path:
    """Return where the SHA-256 of a file is kept."""
    return target.with_name(target.name + ".sha256")


def remembered(target: Path) -> str | None:
    """Return the SHA-256 that a file had when it was first downloaded; None if it never was."""
    try:
        words = record_of(target).read_text(encoding="ascii").split()
    except (FileNotFoundError, NotADirectoryError):
        return None
    except UnicodeDecodeError:
        words = []
    except OSError as error:
        raise InputError(f"{record_of(target)} cannot be read: {error.strerror}") from None
    if not words or len(words[0]) != 64 or set(words[0]) - set("0123456789abcdef"):
        raise InputError(f"{record_of(target)} holds no SHA-256; delete it to trust the next download")
    return words[0]


def remember(target: Path, sha256: str) -> None:
    """Keep the SHA-256 of a first download; the record appears whole or not at all."""
    write_file(record_of(target), f"{sha256}  {target.name}\n")


def sha256_of(path: Path) -> str:
    """Return the SHA-256 of a file's content."""
    try:
        with path.open("rb") as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest()
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}") from None


URL_VARIABLE = "LBOPT_TRACES_URL"
CACHE_VARIABLE = "LBOPT_CACHE"
TIMEOUT = 30.0

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Fetched:
    """A fetched trace.

    Parameters
    ----------
    path
        Where the file is.
    sha256
        Of the file.
    pinned
        Whether lbopt knew the SHA-256 beforehand; if not, the first download was trusted.
    downloaded
        Whether it was downloaded now (False: it was in the cache).
    """

    path: Path
    sha256: str
    pinned: bool
    downloaded: bool


def cache_folder() -> Path:
    """Return the folder that holds fetched traces: $LBOPT_CACHE, or the user's cache folder."""
    given = os.environ.get(CACHE_VARIABLE)
    if given:
        return Path(given).expanduser()
    import pooch

    return Path(pooch.os_cache("lbopt"))


def fetch(name: str, *, base_url: str | None = None, cache: Path | None = None) -> Fetched:
    """Return a public trace, from the cache or else from the network.

    Parameters
    ----------
    name
        Of the catalogue.
    base_url
        Of a mirror that holds the files under their names; by default $LBOPT_TRACES_URL, or the publisher's address.
    cache
        Folder to keep it in; `cache_folder()` by default.
    """
    entry = public_trace(name)
    folder = cache_folder() if cache is None else cache
    target = folder / entry.file
    known = entry.sha256 or remembered(target)
    pinned = entry.sha256 is not None
    if target.is_file() and known is not None:
        if sha256_of(target) == known:
            return Fetched(path=target, sha256=known, pinned=pinned, downloaded=False)
        logger.warning("%s is not what was fetched before (its SHA-256 differs); fetching it again", target)
    _download(entry, _address(entry, base_url), target, known)
    found = sha256_of(target)
    if known is None:
        remember(target, found)
        logger.warning("%s: its SHA-256 is not pinned by lbopt; trusted on first use and remembered: %s", name, found)
    return Fetched(path=target, sha256=found, pinned=pinned, downloaded=True)


def fetched_path(name: str, *, cache: Path | None = None) -> Path | None:
    """Return the checked file of a trace that was fetched before; None if it was not. The network is not used."""
    entry = public_trace(name)
    target = (cache_folder() if cache is None else cache) / entry.file
    known = entry.sha256 or remembered(target)
    if not target.is_file() or known is None:
        return None
    found = sha256_of(target)
    if found != known:
        raise InputError(
            f"{target} has SHA-256 {found[:16]}..., expected {known[:16]}...; get it again: "
            f"lbopt show traces {name} --fetch"
        )
    return target


def _address(entry: PublicTrace, base_url: str | None) -> str:
    base = base_url or os.environ.get(URL_VARIABLE) or entry.base_url
    try:
        parts = urlsplit(base)
    except ValueError:
        parts = urlsplit("")
    if parts.scheme not in ("http", "https") or not parts.netloc:
        raise InputError(f"base address {base!r} is no web address; expected one such as https://example.org/traces")
    _require_https(base, "base address")
    return f"{base.rstrip('/')}/{entry.file}"


def _require_https(url: str, what: str) -> None:
    parts = urlsplit(url)
    if parts.scheme != "https" and not _is_loopback(parts.hostname or ""):
        raise InputError(
            f"{what} {url!r} is not https, so that it could be changed on the way; expected https, or http "
            "to this machine itself (127.0.0.1, ::1, localhost)"
        )


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _download(entry: PublicTrace, url: str, target: Path, known: str | None) -> None:
    import pooch
    import requests  # comes with pooch, whose errors it raises

    def receive(address: str, partial: str | Path, owner: Any) -> None:
        # redirections, too, stay on https
        hooks = {"response": lambda answer, **_: _require_https(answer.url, "redirected address")}
        pooch.HTTPDownloader(timeout=TIMEOUT, chunk_size=2**20, hooks=hooks)(address, str(partial), owner)
        if known is None:
            _check_format(Path(partial), entry, address)
        elif (found := sha256_of(Path(partial))) != known:
            origin = "pinned in lbopt" if entry.sha256 else f"of the first download, kept in {record_of(target)}"
            raise InputError(f"{address} has SHA-256 {found}; expected {known} ({origin}); nothing was kept")

    try:
        # pooch narrates to stderr through a logger of its own; what matters is in Fetched
        pooch.get_logger().setLevel(logging.WARNING)
        target.unlink(missing_ok=True)
        pooch.retrieve(url, known_hash=None, fname=target.name, path=target.parent, downloader=receive)
    except requests.HTTPError as error:
        status = "an error" if error.response is None else f"{error.response.status_code} {error.response.reason}"
        raise InputError(f"{url} answered {status}; try later, or a mirror (--base-url or ${URL_VARIABLE})") from None
    except requests.Timeout:
        raise InputError(f"{url} did not answer within {TIMEOUT:g} s; try later, or a mirror (--base-url)") from None
    except requests.exceptions.ChunkedEncodingError:
        raise InputError(f"{url} broke off before the end; nothing was kept, try again") from None
    except requests.RequestException as error:
        reason = str(error)[:200]
        raise InputError(f"{url} cannot be reached ({reason}); check the network, or a mirror (--base-url)") from None
    except OSError as error:
        reason = error.strerror or str(error)
        raise InputError(
            f"{target} cannot be written: {reason}; choose another folder with ${CACHE_VARIABLE}"
        ) from None


def _check_format(path: Path, entry: PublicTrace, url: str) -> None:
    """A page of a proxy or a login must not become the trusted first download."""
    with path.open("rb") as stream:
        start = stream.read(65536)
    try:
        found = detect(start, url)
    except (InputError, UnicodeDecodeError):
        found = "no trace"
    if found != entry.format:
        raise InputError(f"{url} is no {entry.format} trace (it starts with {start[:40]!r}); nothing was kept")


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


@typed
def open_trace(
    spec: str | os.PathLike[str],
    *,
    count: int | None = None,
    seed: int | None = None,
    format: str = "auto",
    columns: Columns | Mapping[str, str] | None = None,
    unit: str | None = None,
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
    format, columns, unit, skip_malformed
        How to read a file, as in `lbopt.instances.readers.read_trace`.

    Examples
    --------
    >>> import lbopt
    >>> lbopt.open_trace("burstgpt-like", count=1000, seed=1)
    <Trace burstgpt-like: 1,000 requests, mean prompt ... and output ... tokens, ...>
    """
    return open_reading(
        spec, count=count, seed=seed, format=format, columns=columns, unit=unit, skip_malformed=skip_malformed
    ).trace


@typed
def open_reading(
    spec: str | os.PathLike[str],
    *,
    count: int | None = None,
    seed: int | None = None,
    format: str = "auto",
    columns: Columns | Mapping[str, str] | None = None,
    unit: str | None = None,
    skip_malformed: bool = False,
) -> Reading:
    """Do the same as `open_trace`, and keep the account of how the file was read.

    Parameters
    ----------
    spec, count, seed, format, columns, unit, skip_malformed
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
        reading = read(path, format, columns, unit=unit, skip_malformed=skip_malformed, name=name)
    if count is None:
        return reading
    return replace(reading, trace=reading.trace.first(count))


def _exists(path: Path) -> bool:
    try:
        return path.exists()
    except (OSError, ValueError):  # too long, or a NUL inside
        return False
