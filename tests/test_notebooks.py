"""The notebooks are kept with outputs: they are executed again, and their words and numbers are compared."""

from __future__ import annotations

from pathlib import Path

import nbformat
import pytest
from notebooks import EXAMPLES, TIMES, differences, execute, numbers

SCRIPTS = sorted(EXAMPLES.glob("[0-9]*.py"))

#: Bytes. A notebook is read on the web; its figures are PNG files within it.
LIMIT = 300_000


@pytest.mark.some(1)
@pytest.mark.jit
@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_outputs_come_out_again(script: Path) -> None:
    """Executed again, a notebook prints the same words and numbers; cells with the tag `times` are left out."""
    assert differences(nbformat.read(script.with_suffix(".ipynb"), as_version=4), execute(script)) == []


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_outputs_are_kept_and_small(script: Path) -> None:
    """Every notebook holds outputs, none of them an error, and is small enough for a page."""
    kept = script.with_suffix(".ipynb")
    assert kept.stat().st_size < LIMIT
    outputs = [out for cell in nbformat.read(kept, as_version=4).cells for out in cell.get("outputs", [])]
    assert len(outputs) >= 3
    assert not [out for out in outputs if out["output_type"] == "error" or out.get("name") == "stderr"]


def test_times_are_the_only_tag() -> None:
    """A cell is left out of the comparison only because it prints times."""
    tags = [
        tag
        for script in SCRIPTS
        for cell in nbformat.read(script.with_suffix(".ipynb"), as_version=4).cells
        for tag in cell.metadata.get("tags", [])
    ]
    assert set(tags) <= {TIMES}
    assert len(tags) <= 2


def test_numbers_of_a_text() -> None:
    """Numbers are taken with a unit of their last printed digit, counts exactly; names that hold digits are words."""
    words, found = numbers("br-0 of lemma_1 has 1,234.5 tokens, -3 and 2e-3")
    assert words == "br-0 of lemma_1 has # tokens, # and #"
    assert [value for value, _ in found] == [1234.5, -3.0, 0.002]
    assert [slack for _, slack in found] == pytest.approx([0.1012345, 0.0, 0.001000002])


def test_a_changed_number_is_found() -> None:
    """One number beyond its printed digits, or one word, is a difference."""

    def notebook(text: str) -> nbformat.NotebookNode:
        out = nbformat.v4.new_output("stream", name="stdout", text=text)
        return nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell("x", outputs=[out])])

    assert differences(notebook("mean 1.25"), notebook("mean 1.25")) == []
    assert differences(notebook("mean 1.25"), notebook("mean 1.27")) != []
    assert differences(notebook("mean 1.25"), notebook("median 1.25")) != []
