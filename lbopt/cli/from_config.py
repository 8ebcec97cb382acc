"""Options and settings of the command line, made of the fields of a configuration (`lbopt.studies.configuration`).

A field that most users need, or that has a spelling of one letter, is an option of its own. Every field is a setting
besides: `--set NAME=VALUE` gives it by the name that `run.json` has, and `--help-all` lists those that are no options.
What a field is called as an option, it is understood as, whether it is listed as one or not: `--kv-capacity 9000` is
`--set kv_capacity=9000`.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import MISSING
from typing import Annotated, Any, ClassVar, NamedTuple, get_args, get_origin

import typer
from typer.core import TyperCommand

from lbopt.exceptions import InputError
from lbopt.spec import unknown, value_of
from lbopt.studies.configuration import Configuration, Option, fields_of, is_annotated, is_configuration

_ALL = "lbopt.help_all"


class Asked(NamedTuple):
    """A field of a configuration as a command asks for it.

    Parameters
    ----------
    key
        Name of the parameter of the command.
    field
        Name of the field.
    kind
        Its type, or that of an entry of a list.
    several
        Whether it is a list.
    """

    key: str
    field: str
    kind: Any
    several: bool
    default: Any
    option: Option

    @property
    def own(self) -> bool:
        """Whether it is an option or argument of its own."""
        return self.option.first or self.option.argument or any(len(name) == 2 for name in self.option.names)

    @property
    def spellings(self) -> tuple[str, ...]:
        """Every spelling as an option; those after the sign / say no."""
        return self.option.names or (f"--{self.key.replace('_', '-')}",)

    @property
    def said_default(self) -> str | None:
        """What help says of the default beside what typer would say."""
        if self.option.shown is None and self.several and isinstance(self.default, tuple) and self.default:
            return ", ".join(f"{one:g}" if isinstance(one, float) else str(one) for one in self.default)
        return self.option.shown

    def parameter(self) -> inspect.Parameter:
        """Return the parameter of the command; the default that a field makes of nothing is said in words."""
        words, default = self.option.help, self.said_default
        if default is not None:
            words = f"{words.removesuffix('.')} [default: {default}]."
        names = self.option.names if self.option.names or self.option.key is None else self.spellings
        info: Any = (
            typer.Argument(help=words, show_default=not self.several)
            if self.option.argument
            else typer.Option(*names, help=words)
        )
        accepted = list[self.kind] | None if self.several else self.kind  # type: ignore[name-defined]
        missing = inspect.Parameter.empty if self.default is MISSING else self.default
        return parameter(self.key, Annotated[accepted, info], None if self.several else missing)

    def read(self, text: str) -> list[Any]:
        """Return the values that a text says: one, or several numbers with commas between them."""
        parts = text.split(",") if self.several and self.kind in (int, float) else (text,)
        return [value_of(f"--set {self.key}", part, self.kind) for part in parts]


def parameter(name: str, annotation: Any, default: Any) -> inspect.Parameter:
    """Return a parameter of a command."""
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)


def asked(kind: type[Any], leave_out: frozenset[str] = frozenset()) -> Iterator[Asked]:
    """Yield the fields of a configuration and of those in it.

    Parameters
    ----------
    leave_out
        Names of fields that are not asked for.
    """
    for field, annotation, option, without in fields_of(kind):
        if field.name in leave_out:
            continue
        if option is None:
            if is_configuration(annotation):
                yield from asked(annotation, without)
            continue
        several = get_origin(annotation) is tuple
        entry = get_args(annotation)[0] if several else annotation
        yield Asked(option.key or field.name, field.name, entry, several, field.default, option)


class Command(TyperCommand):
    """A command with settings."""

    settings: ClassVar[tuple[Asked, ...]] = ()

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read the words; a setting may be spelled as an option."""
        try:
            return super().parse_args(ctx, list(self._plain(args)))
        except UsageError as error:
            if hasattr(error, "possibilities"):  # the option does not exist
                near = unknown("", error.option_name[2:], self.named()).args[0].partition("did you mean ")[2]
                error.possibilities = [*(error.possibilities or ()), *(f"--set {near[:-1]}=..." for _ in near[:1])]
            raise

    @classmethod
    def named(cls) -> dict[str, Asked]:
        """Return every setting by each of its names."""
        return {name: one for one in cls.settings for name in (one.field, one.key)}

    def _plain(self, args: list[str]) -> Iterator[str]:
        spelled: dict[str, tuple[Asked, str | None]] = {}
        for one in self.settings:
            flag = one.kind is bool or (bool in get_args(one.kind))
            for spelling in () if one.own else one.spellings:
                yes, _, no = spelling.partition("/")
                spelled[yes] = one, "yes" if flag else None
                if flag and (no or not one.option.names):
                    spelled[no or f"--no-{yes[2:]}"] = one, "no"
        words = iter(args)
        for word in words:
            if word == "--":
                yield from (word, *words)
                return
            name, equals, value = word.partition("=")
            found, flag_value = spelled.get(name, (None, None))
            if found is not None and flag_value is None and not equals:
                value, equals = next(words, ""), "="
            yield word if found is None else f"--set={found.key}={flag_value or value}"

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Write the help, and at its end how many settings there are."""
        count = sum(not one.own for one in self.settings)
        if count:
            self.epilog = f"{count} settings, by --set NAME=VALUE: {ctx.command_path} --help-all"
        super().format_help(ctx, formatter)


#: What typer raises where a command line is wrong; the class that it derives from has no name of its own there.
UsageError: Any = typer.BadParameter.__base__


def _show_all(context: typer.Context, value: bool) -> None:
    if not value or context.resilient_parsing:
        return
    from lbopt.cli.console import print_lines

    text = context.get_help()
    if text:
        typer.echo(text)
    command: Any = context.command
    listed = [one for one in command.settings if not one.own]
    lines = [
        (f"{one.key} ({one.said_default or _said(one.default)})", one.option.help.replace("**", "")) for one in listed
    ]
    note = "A list takes its entries one by one, numbers also with commas between them; run.json has the same names."
    print_lines("Settings: --set NAME=VALUE (default)", lines, note)
    raise typer.Exit


def _said(default: Any) -> str:
    if isinstance(default, bool):
        return "yes" if default else "no"
    return "none" if default in (None, ()) else f"{default:g}" if isinstance(default, float) else str(default)


_HelpAll = Annotated[
    bool,
    typer.Option("--help-all", callback=_show_all, is_eager=True, expose_value=False, help="Show settings, too."),
]


def _begun(ctx: typer.Context, incomplete: str) -> list[str]:
    """Return the settings that begin so, for the completion of a shell."""
    command: Any = ctx.command
    return [f"{one.key}=" for one in command.settings if one.key.startswith(incomplete)]


_Set = Annotated[
    list[str] | None,
    typer.Option(
        "--set", metavar="NAME=VALUE", help="A setting, by its name; may be given again.", autocompletion=_begun
    ),
]


def settled(kinds: Iterable[type[Any]], texts: Sequence[str]) -> dict[str, Any]:
    """Return the values of settings by the keys of their fields.

    Parameters
    ----------
    texts
        NAME=VALUE each.

    Raises
    ------
    InputError
        Where a name is unknown, or a value is not of its kind.
    """
    named = {name: one for kind in kinds for one in asked(kind) for name in (one.field, one.key)}
    values: dict[str, Any] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        one = named.get(name.replace("-", "_"))
        if one is None:
            raise unknown("setting", name, named)
        if not equals:
            raise InputError(f"setting {name} has no value; expected --set {name}=VALUE")
        read = one.read(value)
        values[one.key] = [*values.get(one.key, ()), *read] if one.several else read[0]
    return values


def as_verb(
    function: Callable[..., None],
    name: str,
    text: str,
    kinds: Sequence[type[Any]],
    more: Mapping[str, inspect.Parameter],
) -> Callable[..., None]:
    """Return the command that calls a function of keywords with what was given.

    Parameters
    ----------
    kinds
        Configurations whose fields are asked for; keys of their options and of settings that were given are keywords.
    more
        Further parameters.
    """
    found = [one for kind in kinds for one in asked(kind)]
    own = {one.key: one.parameter() for one in found if one.own} | dict(more)
    given: dict[str, inspect.Parameter] = {}
    if not all(one.own for one in found):
        given = {"set": parameter("set", _Set, None), "help_all": parameter("help_all", _HelpAll, False)}

    def verb(**words: Any) -> None:
        values = settled(kinds, words.get("set") or ())
        function(**{name: value for name, value in words.items() if name not in given} | values)

    verb.__name__, verb.__doc__, verb.__annotations__ = name, text, {}
    verb.__signature__ = _signature([*(own | given).values()])  # type: ignore[attr-defined]
    verb.command = type("Command", (Command,), {"settings": tuple(found)})  # type: ignore[attr-defined]
    return verb


def _signature(of: Sequence[inspect.Parameter]) -> inspect.Signature:
    """Return the signature that a command shows to typer: arguments first, then options."""

    def is_option(one: inspect.Parameter) -> bool:
        info = get_args(one.annotation)[1] if is_annotated(one.annotation) else None
        return isinstance(info, typer.models.OptionInfo)

    return inspect.Signature(sorted(of, key=is_option))


def refuse_others(asked_for: Configuration, what: str, concerned: Iterable[str] = ()) -> None:
    """Refuse options that do not concern what a command of several kinds was asked for.

    Parameters
    ----------
    what
        What that is, for the error.
    concerned
        Names of the fields that do beside its arguments; others must have their defaults.
    """
    for one in asked(type(asked_for)):
        value = getattr(asked_for, one.field, one.default)
        if not one.option.argument and one.field not in concerned and value != one.default:
            raise InputError(f"{one.spellings[0].partition('/')[0]} does not concern {what}; leave it out")
