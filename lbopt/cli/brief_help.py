"""`--help` that shows the options which most users need, and `--help-all` that shows every one in its panel."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar

import typer
from typer.core import TyperCommand

_ALL = "lbopt.help_all"


class BriefCommand(TyperCommand):
    """A command whose `--help` shows the parameters named in `first` alone."""

    first: ClassVar[frozenset[str]] = frozenset()

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Write the help into the formatter or the terminal."""
        of: list[Any] = [] if ctx.meta.get(_ALL) else list(self.params)
        rest = [one for one in of if one.name not in self.first]
        hidden = [one for one in rest if one.param_type_name == "option" and not one.hidden]
        epilog = self.epilog
        try:
            for one in hidden:
                one.hidden = True
            if hidden:
                self.epilog = f"{len(hidden)} more options: {ctx.command_path} --help-all"
            super().format_help(ctx, formatter)
        finally:
            self.epilog = epilog
            for one in hidden:
                one.hidden = False


def brief(first: frozenset[str]) -> type[BriefCommand]:
    """Return the class of a command that first shows these parameters and those of help."""
    return type("Brief", (BriefCommand,), {"first": first | {"help", "help_all"}})


def _show_all(context: typer.Context, value: bool) -> None:
    if value and not context.resilient_parsing:
        context.meta[_ALL] = True
        text = context.get_help()
        if text:
            typer.echo(text)
        raise typer.Exit


HelpAll = Annotated[
    bool,
    typer.Option("--help-all", callback=_show_all, is_eager=True, expose_value=False, help="Show every option."),
]
