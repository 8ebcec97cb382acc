"""``lbopt study``: questions that take many runs. Its verbs are the studies of the registry that are listed there."""

from __future__ import annotations

from lbopt.cli.lazy import CONTEXT, Verb, group
from lbopt.studies.registry import STUDIES

VERBS = {name: Verb(f"study:{name}", listed.help) for name, listed in STUDIES.items() if listed.in_group}

app = group(
    VERBS,
    name="study",
    help="Questions that take many runs, such as what a wrong forecast costs.",
    add_completion=False,
    context_settings=CONTEXT,
)


@app.callback()
def study() -> None:
    """Questions that take many runs, such as what a wrong forecast costs."""
