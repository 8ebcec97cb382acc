"""`make test` leaves cases and tests to `make test-more`, but no verb and no function that `lbopt` offers by name."""

import inspect
import re
from pathlib import Path

import lbopt
from lbopt.cli import VERBS

TESTS = Path(__file__).resolve().parents[1]
ELSEWHERE = re.compile(r"^(?:@|pytestmark = .*)pytest\.mark\.(?:more|slow)\b", re.MULTILINE)


def blocks(path):
    """Top-level statements of a file that `make test` runs, decorators with their function."""
    text = path.read_text(encoding="utf-8")
    if re.search(r"^pytestmark = .*mark\.(?:more|slow)\b", text, re.MULTILINE):
        return []
    return [block for block in re.split(r"\n\n+(?=[@\w#\"])", text) if not ELSEWHERE.search(block)]


def test_every_verb_and_function_is_used():
    """A function is called, and a verb is typed, in a test without the marks `more` and `slow`."""
    text = "\n".join(block for path in TESTS.rglob("test_*.py") for block in blocks(path))
    functions = {name for name in lbopt.__all__ if inspect.isfunction(getattr(lbopt, name))}
    assert len(functions) > 10
    assert functions - set(re.findall(r"\b(\w+)\(", text)) == set()
    typed = re.findall(r"""(?:\("|LBOPT, "|"lbopt", "|"lbopt )(\w+)""", text)
    assert set(VERBS) - set(typed) == set()
