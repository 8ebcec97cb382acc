"""Execute the notebooks of `examples`, keep their outputs, and compare a new execution with the kept one.

`python -m tests.notebooks [NAME ...]` brings each notebook together with its percent script, executes it, and writes it
back with its outputs. `test_notebooks.py` executes them again and compares.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

EXAMPLES = Path(__file__).resolve().parents[1] / "examples"

#: What a summary says of a solver's time.
_SOLVER_TIME = re.compile(r"(solver [\w-]+,|that it took) [\d.e-]+ s\b")

#: A cell with this tag prints times, which differ from run to run: its numbers are not compared.
TIMES = "times"

_NUMBER = re.compile(r"(?<![\w.-])-?\d[\d,]*(?:\.\d+)?(?:e[+-]?\d+)?")


def execute(script: Path) -> Any:
    """The notebook of a percent script, executed: outputs without standard error and without times of execution."""
    import jupytext
    import nbformat
    from nbclient import NotebookClient

    notebook = jupytext.read(script)
    kept = script.with_suffix(".ipynb")
    if kept.exists():
        for cell, old in zip(notebook.cells, nbformat.read(kept, as_version=4).cells, strict=False):
            cell.id = old.id
    NotebookClient(notebook, timeout=None, resources={"metadata": {"path": str(EXAMPLES)}}).execute()
    for cell in notebook.cells:
        cell.metadata.pop("execution", None)
        if cell.cell_type == "code":
            cell.outputs = [output for output in cell.outputs if output.get("name") != "stderr"]
    notebook.metadata = {
        "jupytext": {"formats": "ipynb,py:percent"},
        "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
    }
    return notebook


def texts(cell: Any) -> list[str]:
    """What a code cell printed, as text: streams, and results in their plain form."""
    found = []
    for output in cell.get("outputs", []):
        if output["output_type"] == "stream":
            found.append(str(output["text"]))
        elif text := output.get("data", {}).get("text/plain"):
            found.append(re.sub(r"<(\w[\w.]*) at 0x[0-9a-f]+>|0x[0-9a-f]+", r"<\1>", str(text)))
    return found


def kinds(cell: Any) -> list[list[str]]:
    """The media types of a cell's results, in order."""
    return [sorted(output["data"]) for output in cell.get("outputs", []) if "data" in output]


def numbers(text: str) -> tuple[str, list[tuple[float, float]]]:
    """A text with every number replaced by `#`, and the numbers, each with the difference that is allowed.

    The time of a solver is left out. The difference is one unit of the last printed digit, because rounding may tip;
    whole numbers below 1,000 are counts and exact.
    """
    text, found = _SOLVER_TIME.sub(r"\1", text), []
    for printed in _NUMBER.findall(text):
        digits = printed.replace(",", "")
        mantissa, _, exponent = digits.partition("e")
        decimals = len(mantissa.partition(".")[2])
        value, count = float(digits), decimals == 0 and not exponent and abs(float(digits)) < 1000
        found.append((value, 0.0 if count else 10.0 ** (int(exponent or 0) - decimals) + 1e-6 * abs(value)))
    return re.sub(r"\s+", " ", _NUMBER.sub("#", text)), found


def differences(kept: Any, new: Any) -> list[str]:
    """What differs between two executions of a notebook: words, media types and numbers beyond their printed digits."""
    found = []
    for place, (old, now) in enumerate(zip(kept.cells, new.cells, strict=True)):
        if old.source != now.source:
            found.append(f"cell {place}: another source")
        if old.cell_type != "code" or TIMES in now.metadata.get("tags", []):
            continue
        if kinds(old) != kinds(now):
            found.append(f"cell {place}: {kinds(old)} was kept, {kinds(now)} came out")
        (words, had), (words_now, have) = (numbers("\n".join(texts(cell))) for cell in (old, now))
        if words != words_now:
            found.append(f"cell {place}: another text\n{words}\n{words_now}")
        elif off := [(a, b) for (a, slack), (b, _) in zip(had, have, strict=True) if abs(a - b) > slack]:
            found.append(f"cell {place}: numbers differ (kept, new): {off[:5]}")
    return found


def main(names: list[str]) -> None:
    """Execute the named notebooks, or all, and keep their outputs."""
    import nbformat

    for script in sorted(EXAMPLES.glob("[0-9]*.py")):
        if not names or any(script.stem.startswith(name) for name in names):
            nbformat.write(execute(script), script.with_suffix(".ipynb"))
            print(f"{script.stem}: {script.with_suffix('.ipynb').stat().st_size / 1000:.0f} kB")


if __name__ == "__main__":
    main(sys.argv[1:])
