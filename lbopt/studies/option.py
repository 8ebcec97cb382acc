"""What the command line has to know of a field of a configuration: spelling, help, and where `--help` shows it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Option:
    """Metadata of a field, given by ``Annotated``.

    Parameters
    ----------
    help
        One or two sentences. Names in it may be marked up: ``**closed**``.
    names
        Spellings such as ("--workers", "-G"); none = the field's name.
    key
        Name of the parameter, where it is not the field's; it is the spelling, too, where `names` is empty.
    panel
        The panel of `--help` that holds it.
    first
        Whether the short help of a command with many options shows it.
    argument
        Whether it is given without a spelling, by its place.
    shown
        What help says of the default; None = the default itself.
    """

    help: str
    names: tuple[str, ...] = ()
    key: str | None = None
    panel: str = "Study"
    first: bool = False
    argument: bool = False
    shown: str | None = None


@dataclass(frozen=True, slots=True)
class Without:
    """Metadata of a field that is itself a configuration: its fields that are no options here."""

    fields: frozenset[str]

    @classmethod
    def of(cls, *fields: str) -> Without:
        """Name the fields."""
        return cls(frozenset(fields))
