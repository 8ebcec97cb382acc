"""Fetch public traces once, check them, keep them.

A file whose SHA-256 lbopt knows must match it. For the others the SHA-256 of the first download is kept beside the
file (``FILE.sha256``, as ``sha256sum -c`` reads it), and every later use must match that; a note says that the first
one was not pinned. A download goes to a temporary name and is moved only when it is complete, of the right format and
of the right hash. Everything comes over https, so that none on the way can change a first download; a server of this
machine may use http.
"""

from __future__ import annotations

import hashlib
import ipaddress
import logging
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from lbopt.exceptions import InputError
from lbopt.instances.catalogue import PublicTrace, public_trace
from lbopt.instances.readers.formats import detect
from lbopt.whole_file import write_file


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
