"""What every certificate has in common, as one JSON object, whatever its kind.

    {"format": "lbopt-certificate", "version": 1, "problem_digest": "...", "kind": "...", "bound": C,
     ... the fields of the kind ..., "digest": SHA-256 of the canonical JSON of everything else}

Canonical JSON has sorted keys, no spaces, and ASCII only. Reading refuses what cannot be a certificate and believes
nothing: whether the bound follows is for `check`. The digest guards against truncated and edited files, not against
a liar, who can recompute it.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lbopt.exceptions import CertificateError, InputError
from lbopt.files.json_text import parsed_json

FORMAT = "lbopt-certificate"
FORMAT_VERSION = 1

#: No number of an honest certificate is as large; beyond it the arithmetic itself would become the attack.
LARGEST_NUMBER = 2**128

#: Free slots of a worker up to which the kinds that speak of every slot are written and checked.
MOST_SLOTS = 1 << 16

_COMMON = ("format", "version", "problem_digest", "kind", "bound", "digest")


@dataclass(frozen=True, slots=True, eq=False)
class Certificate:
    """A claim with its evidence: no assignment of the problem costs less than `bound`.

    Parameters
    ----------
    problem_digest
        `StepProblem.digest` of the problem that it speaks of.
    kind
        Which reasoning it uses, one of `kinds.KINDS`.
    bound
        C, in tokens.
    body
        The fields of its kind, as plain JSON values; never changed after construction.
    """

    problem_digest: str
    kind: str
    bound: int
    body: dict[str, Any]

    @property
    def digest(self) -> str:
        """SHA-256 of the canonical JSON of everything but itself."""
        return _digest(self._content())

    def __eq__(self, other: object) -> bool:
        return self._content() == other._content() if isinstance(other, Certificate) else NotImplemented

    def __hash__(self) -> int:
        return hash((self.problem_digest, self.kind, self.bound))

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, with format, version and digest."""
        content = self._content()
        return {**content, "digest": _digest(content)}

    @classmethod
    def from_dict(cls, data: Any, *, source: str = "the certificate") -> Certificate:
        """Rebuild a certificate written by `to_dict`.

        Raises
        ------
        CertificateError
            On another format or version, a missing field, a field of the wrong type, or a digest that does not fit.
        """
        if not isinstance(data, dict) or data.get("format") != FORMAT:
            raise CertificateError(f'{source} is not a certificate: expected an object with "format": "{FORMAT}"')
        version = data.get("version")
        if type(version) is not int or version != FORMAT_VERSION:
            raise CertificateError(f"{source} has format version {version!r}; this lbopt reads {FORMAT_VERSION}")
        missing = [name for name in _COMMON if name not in data]
        if missing:
            raise CertificateError(f"{source} lacks {', '.join(missing)}")
        for name in ("problem_digest", "kind", "digest"):
            if type(data[name]) is not str:
                raise CertificateError(f"{source}: {name} is {shown(data[name])}; expected a text")
        bound = whole(data["bound"], f"{source}: bound")
        content = {name: value for name, value in data.items() if name != "digest"}
        own = _digest(content)
        if data["digest"] != own:
            raise CertificateError(
                f"{source} says digest {data['digest'][:12]}… but its content gives {own[:12]}…: "
                "it was cut off or changed after it was written"
            )
        body = {name: value for name, value in data.items() if name not in _COMMON}
        return cls(problem_digest=data["problem_digest"], kind=data["kind"], bound=bound, body=body)

    def to_json(self) -> str:
        """Return the certificate as one line of JSON."""
        return json.dumps(self.to_dict(), separators=(",", ":"))

    @classmethod
    def from_json(cls, text_or_path: str | Path) -> Certificate:
        """Read a certificate from a JSON text or from a file that holds one."""
        try:
            data, source = parsed_json(text_or_path, "the certificate")
        except InputError as error:
            raise CertificateError(str(error)) from None
        return cls.from_dict(data, source=source)

    def _content(self) -> dict[str, Any]:
        return {
            "format": FORMAT,
            "version": FORMAT_VERSION,
            "problem_digest": self.problem_digest,
            "kind": self.kind,
            "bound": self.bound,
            **self.body,
        }


# ---------------------------------------------------------------------- readers of single values


def whole(value: Any, what: str, *, least: int = -LARGEST_NUMBER, below: int = LARGEST_NUMBER + 1) -> int:
    """Return `value` if it is an integer (not a truth value) in least..below - 1.

    Parameters
    ----------
    least, below
        The range least..below - 1.
    """
    if type(value) is not int:
        raise CertificateError(f"{what} is {shown(value)}; expected a whole number")
    if not least <= value < below:
        raise CertificateError(f"{what} is {shown(value)}; expected a whole number from {least} to {below - 1}")
    return value


def items(value: Any, what: str) -> list[Any]:
    """Return `value` if it is a list."""
    if type(value) is not list:
        raise CertificateError(f"{what} is {shown(value)}; expected a list")
    return value


def fields(value: Any, what: str, needed: tuple[str, ...], optional: tuple[str, ...] = ()) -> dict[str, Any]:
    """Return `value` if it is an object with the needed fields and no others than these and the optional ones."""
    if type(value) is not dict:
        raise CertificateError(f"{what} is {shown(value)}; expected an object with {', '.join(needed)}")
    missing = [name for name in needed if name not in value]
    if missing:
        raise CertificateError(f"{what} lacks {', '.join(missing)}")
    unknown = [str(name) for name in value if name not in needed and name not in optional]
    if unknown:
        raise CertificateError(f"{what} has the unknown field {unknown[0]!r}; expected {', '.join(needed + optional)}")
    return value


def refuse_many_slots(slots: Sequence[int]) -> None:
    """Raise where a worker has more slots than a kind of certificate that speaks of every slot is made for."""
    g = max(range(len(slots)), key=slots.__getitem__)
    if slots[g] > MOST_SLOTS:
        raise CertificateError(
            f"worker {g} has {slots[g]} free slots, and certificates of this kind are checked up to {MOST_SLOTS}: give "
            "no worker more slots than requests wait"
        )


def shown(value: Any) -> str:
    """Return a short rendering of any value for an error message; never long, never deep."""
    if type(value) is int and abs(value) > 10**40:
        return f"a whole number of {value.bit_length()} bits"
    if isinstance(value, list | dict):
        return f"{'a list' if isinstance(value, list) else 'an object'} of {len(value)} entries"
    text = repr(value)
    return text if len(text) <= 60 else text[:59] + "…"


def _digest(content: dict[str, Any]) -> str:
    try:
        text = json.dumps(content, sort_keys=True, separators=(",", ":"), allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise CertificateError(f"the certificate holds what JSON cannot hold: {error}") from None
    return hashlib.sha256(text.encode("ascii")).hexdigest()
