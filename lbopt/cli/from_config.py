"""Options of the command line, made of the fields of a configuration (`lbopt.studies.configuration`)."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from dataclasses import Field
from typing import Annotated, Any, get_args, get_origin

import typer

from lbopt.studies.configuration import Option, fields_of, is_annotated, is_configuration


def parameters(kind: type[Any], leave_out: frozenset[str] = frozenset()) -> dict[str, inspect.Parameter]:
    """Return the parameters of a command that asks for a configuration, by their names.

    Parameters
    ----------
    leave_out
        Names of fields that are no options.
    """
    found: dict[str, inspect.Parameter] = {}
    for field, annotation, option, without in fields_of(kind):
        if field.name in leave_out:
            continue
        if option is None:
            if is_configuration(annotation):
                found |= parameters(annotation, without)
            continue
        several = get_origin(annotation) is tuple
        default = None if several else field.default
        accepted = list[get_args(annotation)[0]] | None if several else annotation  # type: ignore[misc]
        key = option.key or field.name
        found[key] = inspect.Parameter(
            key,
            inspect.Parameter.KEYWORD_ONLY,
            default=default,
            annotation=Annotated[accepted, _described(option, field, several)],
        )
    return found


def joined(first: Mapping[str, inspect.Parameter], other: Mapping[str, inspect.Parameter], name: str) -> dict[str, Any]:
    """Return the parameters of a command with two sides; where defaults differ there is none, and help says both."""
    found = dict(first)
    for key, parameter in other.items():
        if key not in found:
            found[key] = parameter
            continue
        own, more = _info(found[key]), _info(parameter)
        if own.help != more.help:
            own.help = f"{own.help} {name}: {more.help}"
        if found[key].default != parameter.default:
            shown = [_default_of(one) for one in (found[key], parameter)]
            own.help += "" if None in shown else f" [default: {shown[0]}; {name.lower()}: {shown[1]}]"
            own.show_default = False
            found[key] = found[key].replace(default=None, annotation=_optional(found[key].annotation))
    return found


def first_of(kind: type[Any]) -> frozenset[str]:
    """Return the names of the parameters that the short help of a command shows."""
    found: set[str] = set()
    for field, annotation, option, _ in fields_of(kind):
        if option is None and is_configuration(annotation):
            found |= first_of(annotation)
        elif option is not None and (option.first or option.argument):
            found.add(option.key or field.name)
    return frozenset(found)


def signature(of: Sequence[inspect.Parameter]) -> inspect.Signature:
    """Return the signature that a command shows to typer: its context and arguments first, then options."""
    is_option = [is_annotated(one.annotation) and isinstance(_info(one), typer.models.OptionInfo) for one in of]
    first = [one for one, later in zip(of, is_option, strict=True) if not later]
    return inspect.Signature([*first, *(one for one, later in zip(of, is_option, strict=True) if later)])


def _described(option: Option, field: Field[Any], several: bool) -> Any:
    """Return what typer has to know; the default that a field makes of nothing is said in words."""
    words, default = option.help, option.shown
    if default is None and several and isinstance(field.default, tuple) and field.default:
        default = ", ".join(f"{one:g}" if isinstance(one, float) else str(one) for one in field.default)
    if default is not None:
        words = f"{words.removesuffix('.')} [default: {default}]."
    if option.argument:
        return typer.Argument(help=words, show_default=not several)
    return typer.Option(*_names(option, field), help=words, rich_help_panel=option.panel)


def _names(option: Option, field: Field[Any]) -> tuple[str, ...]:
    if option.names or option.key is None:
        return option.names
    return (f"--{option.key.replace('_', '-')}",)


def _info(parameter: inspect.Parameter) -> Any:
    return get_args(parameter.annotation)[1]


def _default_of(parameter: inspect.Parameter) -> Any:
    return parameter.default


def _optional(annotation: Any) -> Any:
    kind, info = get_args(annotation)
    return Annotated[kind | None, info]
