"""Verbs that are imported when they are named: `lbopt --help` loads none of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any, ClassVar, NamedTuple

import typer
from typer.core import TyperCommand, TyperGroup

CONTEXT = {"help_option_names": ["-h", "--help"]}


class Verb(NamedTuple):
    """Where a verb is, and its line in the list of verbs.

    `where` is ``module:function``, ``module:app`` of a group, or ``study:NAME`` for the verb of a study.
    """

    where: str
    help: str
    panel: str | None = None


class LazyGroup(TyperGroup):
    """A group whose verbs are loaded on use."""

    verbs: ClassVar[Mapping[str, Verb]] = {}
    before: ClassVar[Mapping[str, str]] = {}

    def __init__(self, **given: Any) -> None:
        super().__init__(**given)
        self._listing = False

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Return the verb; one that is called as it once was is found, and its name is said."""
        for old, new in self.before.items():
            verb, flag, value = old.partition(" --")
            words, more = verb.split(), (flag[1:] + value).split()
            at = args.index(more[0]) if more and more[0] in args else 0
            if args[: len(words)] == words and args[at : at + len(more)] == more:
                typer.echo(f"note: lbopt {old} is lbopt {new} now", err=True)
                rest = args[len(words) : at] + args[at + len(more) :] if at else args[len(words) :]
                return super().resolve_command(ctx, [*new.split(), *rest])
        return super().resolve_command(ctx, args)

    def list_commands(self, ctx: Any) -> list[str]:
        """Return the names of the verbs, in the order of the table."""
        return list(self.verbs)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Return the verb; while verbs are only listed, one that knows its line of help alone."""
        if cmd_name not in self.verbs:
            return None
        verb = self.verbs[cmd_name]
        if self._listing:
            return TyperCommand(cmd_name, help=verb.help, rich_help_panel=verb.panel)
        return load(cmd_name, verb.where)

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Write the help without loading a verb."""
        self._listing = True
        try:
            super().format_help(ctx, formatter)
        finally:
            self._listing = False

    def shell_complete(self, ctx: Any, incomplete: str) -> Any:
        """Complete the name of a verb without loading one."""
        self._listing = True
        try:
            return super().shell_complete(ctx, incomplete)
        finally:
            self._listing = False


def group(verbs: Mapping[str, Verb], before: Mapping[str, str] | None = None, **given: Any) -> typer.Typer:
    """Return an app whose verbs are those of the table, loaded on use.

    Parameters
    ----------
    before
        Earlier names of verbs, and those of now.
    """
    lazy = type("Verbs", (LazyGroup,), {"verbs": verbs, "before": before or {}})
    return typer.Typer(
        cls=lazy, no_args_is_help=True, rich_markup_mode="markdown", pretty_exceptions_enable=False, **given
    )


def load(name: str, where: str) -> Any:
    """Return the command at ``module:function``, ``module:app`` or ``study:NAME``."""
    module, _, attribute = where.partition(":")
    found: Any
    if module == "study":
        from lbopt.cli.study_verb import study_verb

        found = study_verb(attribute)
    else:
        found = getattr(import_module(module), attribute)
    return _command(name, found)


def _command(name: str, found: Callable[..., None] | typer.Typer) -> Any:
    from typer.main import get_command

    if isinstance(found, typer.Typer):
        made = get_command(found)
    else:
        app = typer.Typer(
            add_completion=False,
            rich_markup_mode="markdown",
            pretty_exceptions_enable=False,
            context_settings=CONTEXT,
        )
        app.command(name, cls=getattr(found, "command", TyperCommand))(found)
        made = get_command(app)
    made.name = name
    return made
