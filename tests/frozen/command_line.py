"""What the command line promises: its verbs, and the names, types and defaults of their options."""

from __future__ import annotations

import os
import signal
import sys
from contextlib import redirect_stderr, redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any, get_args
from unittest.mock import patch

import typer.main

#: Wrong input of every verb that reads something: each is refused with exit code 2 before any work starts.
WRONG_INPUT = {
    "gap": "gap missing.csv",
    "gap-prefill": "gap --side prefill --chunk 0",
    "gap-side": "gap --side sideways",
    "simulate": "simulate burstgpt-like -p fcsf",
    "simulate-fleet": "simulate burstgpt-like -n 10 -G 0",
    "prefill": "prefill burstgpt-like -p nonsense",
    "solve": "solve missing.json",
    "verify": "verify missing.json missing.json",
    "predict": "predict missing.csv",
    "check": "check lemma-nonsense",
    "cost": "cost missing-folder",
    "rerun": "rerun missing-folder",
    "traces describe": "traces describe missing.csv",
    "traces fetch": "traces fetch nonsense",
    "library show": "library show nonsense",
    "library solve": "library solve nonsense",
    "library export": "library export nonsense",
    "hardware fit": "hardware fit missing.csv",
    "hardware measure": "hardware measure --backend nonsense",
    "hardware device": "hardware device nonsense",
    "hardware model": "hardware model nonsense",
    "locality draw": "locality draw nonsense -o c.npz",
    "locality fit": "locality fit missing.npz -G 2 -o t.npz",
    "locality show": "locality show missing.npz",
    "study export": "study export missing.sqlite",
    "study placement": "study placement -R 7",
    "study locality": "study locality nonsense",
    "study scaling": "study scaling --p 0",
    "study stale": "study stale --sight dim",
    "study staggered": "study staggered nonsense",
    "study misprediction": "study misprediction missing.csv",
    "no such verb": "improve",
    "no such sub-verb": "study improve",
}

#: Short commands that end well.
RIGHT_INPUT = (
    "--version",
    "--help",
    "check --list",
    "hardware devices",
    "hardware devices --json",
    "hardware device h800",
    "hardware models",
    "hardware model deepseek-v3 --json",
    "library list",
    "library list --json",
    "library show tiny-makespan",
    "traces list",
    "traces describe burstgpt-like --count 200",
)


def typed(words: str, folder: Path) -> tuple[int, str, str]:
    """Type `lbopt words` in `folder`, within this process: exit code, standard output, standard error."""
    from lbopt.__main__ import main

    shown, said, before, code = StringIO(), StringIO(), Path.cwd(), 0
    handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    hook = sys.unraisablehook
    os.chdir(folder)
    try:
        with patch.object(sys, "argv", ["lbopt", *words.split()]), redirect_stdout(shown), redirect_stderr(said):
            main()
    except SystemExit as leave:
        code = int(leave.code or 0)
    finally:
        os.chdir(before)
        sys.unraisablehook = hook
        for number, handler in handlers.items():  # a program ends by ignoring them
            signal.signal(number, handler)
    return code, shown.getvalue(), said.getvalue()


def root() -> Any:
    """The command line as one command of click, whether its verbs are loaded now or on use."""
    from lbopt.cli import app

    return typer.main.get_command(app) if isinstance(app, typer.Typer) else app


def leaves() -> dict[str, Any]:
    """Every verb that does something, by its words; hidden verbs too."""
    found: dict[str, Any] = {}

    def walk(command: Any, words: tuple[str, ...], parent: Any) -> None:
        context = command.context_class(command, info_name=words[-1] if words else "lbopt", parent=parent)
        if not hasattr(command, "list_commands"):
            found[" ".join(words)] = command
            return
        for name in command.list_commands(context):
            walk(command.get_command(context, name), (*words, name), context)

    walk(root(), (), None)
    return found


def type_of(parameter: Any) -> str:
    """What one value of a parameter is: str, int, float, bool or Path; versions of typer keep it in two places."""
    if hasattr(parameter, "type_descriptor"):
        annotation = parameter.type_descriptor.annotation
        while get_args(annotation):
            annotation = get_args(annotation)[0]
        return str(annotation.__name__)
    words = {"text": "str", "integer": "int", "float": "float", "boolean": "bool", "path": "Path"}
    return words.get(parameter.type.name, parameter.type.name)


def options(command: Any) -> list[dict[str, Any]]:
    """The parameters of a verb in their order: spellings, type, default, and how often each may be given."""
    rows = []
    for parameter in command.params:
        if parameter.name == "help":
            continue
        default = parameter.default
        plain = default is None or isinstance(default, bool | int | float | str)
        rows.append(
            {
                "names": [*parameter.opts, *parameter.secondary_opts],
                "kind": parameter.param_type_name,
                "type": type_of(parameter),
                "default": default if plain else str(default),
                "required": bool(parameter.required),
                "is_flag": bool(getattr(parameter, "is_flag", False)),
                "multiple": bool(getattr(parameter, "multiple", False)),
                "nargs": parameter.nargs,
            }
        )
    return rows


def all_options() -> dict[str, list[dict[str, Any]]]:
    """The options of every verb."""
    return {words: options(command) for words, command in leaves().items()}


def exit_codes(folder: Path) -> dict[str, int]:
    """The exit code of each verb's help, of an unknown option, of wrong and of right input; run in an empty folder."""
    lines = [f"{verb} {end}" for verb in leaves() for end in ("--help", "--no-such-option")]
    return {line: typed(line, folder)[0] for line in (*lines, *WRONG_INPUT.values(), *RIGHT_INPUT)}
