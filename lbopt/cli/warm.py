"""`lbopt warm`: compile ahead of use."""

from __future__ import annotations

from typing import Annotated

import typer


def warm(
    verbs: Annotated[list[str] | None, typer.Argument(help="Verbs, such as gap and simulate; all by default.")] = None,
) -> None:
    """Compile what verbs need, once, so that their first use does not wait for it.

    Example: `lbopt warm simulate`
    """
    from lbopt import compile_time
    from lbopt.cli.console import ProgressBar, remark
    from lbopt.warming import warm_up

    with ProgressBar() as progress:
        warm_up(*(verbs or ()), progress=progress)
    remark(f"kernels are compiled; {compile_time.seconds():.0f} s went into it")
