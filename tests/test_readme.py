"""README and manual say only what works: their Python runs, their commands parse, their notebook is the paired one."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import pytest
import typer

from lbopt.cli import app
from lbopt.policies import make_policy
from lbopt.studies.prefill import PrefillConfig
from lbopt.studies.scaling.cell import REPLETE

ROOT = Path(__file__).resolve().parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")), *sorted((ROOT / "docs" / "results").glob("*.md"))]
SCRIPTS = sorted((ROOT / "examples").glob("*.py"))

_FENCE = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def blocks(page: Path, language: str) -> list[str]:
    return [text for kind, text in _FENCE.findall(page.read_text(encoding="utf-8")) if kind == language]


def commands(page: Path) -> list[str]:
    """Every `lbopt ...` line of a page's console blocks or of an example's docstring."""
    text = "\n".join(blocks(page, "console")) if page.suffix == ".md" else page.read_text(encoding="utf-8")
    text = re.sub(r" \\\n\s*", " ", text)
    return [line.strip() for line in re.findall(r"^\s*(?:\$ )?(lbopt \w.*)$", text, re.MULTILINE)]


@pytest.mark.some(but=("locality.md", "hindsight.md", "misprediction.md", "mock.md", "policies.md"))
@pytest.mark.jit
@pytest.mark.parametrize("page", [p for p in PAGES if blocks(p, "python")], ids=lambda p: p.name)
def test_python_blocks_run(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The blocks of a page run one after the other, in an empty folder, as a reader would paste them."""
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {"__name__": page.stem}
    for number, text in enumerate(blocks(page, "python"), start=1):
        exec(compile(text, f"{page.name}, block {number}", "exec"), names)


def test_commands_parse(monkeypatch: pytest.MonkeyPatch) -> None:
    """Verb, options and their values are understood; nothing is run. Policies that need no file of yours exist."""
    monkeypatch.chdir(ROOT)
    for line in sorted({line for page in PAGES + SCRIPTS for line in commands(page)}):
        try:
            parse(line)
        except Exception as wrong:
            raise AssertionError(line) from wrong


def parse(line: str) -> None:
    """Read a command as the program does, up to the point where it would run."""
    words = shlex.split(line)[1:]
    command = typer.main.get_command(app)
    context = command.make_context("lbopt", list(words))
    while hasattr(command, "resolve_command"):
        rest = [*context._protected_args, *context.args]
        if not rest and command.invoke_without_command:
            break
        name, command, rest = command.resolve_command(context, rest)
        assert command is not None, line
        context = command.make_context(name, rest, parent=context)
    if rules := context.params.get("rule"):
        PrefillConfig(rules=tuple(rules))
    named = context.params.get("policy") or []
    for spec in [named] if isinstance(named, str) else named:
        if not spec.startswith("replay:") and spec != REPLETE:
            make_policy(spec)


def test_there_are_commands() -> None:
    """The pattern that finds them still does."""
    assert len(commands(ROOT / "README.md")) >= 4
    assert any(blocks(page, "python") for page in PAGES)


def test_named_files_exist() -> None:
    """Paths in code spans that begin in the repository exist."""
    span = re.compile(r"`((?:lbopt|tests|docs|examples)/[\w./-]+)(?::\w+)?`")
    spans = [(page.name, name) for page in PAGES for name in span.findall(page.read_text(encoding="utf-8"))]
    assert [(page, name) for page, name in spans if not (ROOT / name).exists()] == []


def test_policy_tables_are_complete() -> None:
    """Every policy has its row in the manual."""
    from lbopt.policies import POLICIES

    page = (ROOT / "docs" / "policies.md").read_text(encoding="utf-8")
    rows = "\n".join(line for line in page.splitlines() if line.startswith("| `"))
    assert [name for name in POLICIES if f"`{name}`" not in rows] == []


def test_readme_is_short() -> None:
    """The README fits on a screen or two; what is longer belongs to the manual."""
    assert len((ROOT / "README.md").read_text(encoding="utf-8").splitlines()) < 100


def test_relative_links_lead_somewhere() -> None:
    """Links and pictures of a page, in Markdown's own form, name files of the repository."""
    lost = []
    for page in PAGES:
        text = _FENCE.sub("", page.read_text(encoding="utf-8"))
        links = [link for link in re.findall(r"\]\(([^)#\s]+)(?:#[\w-]*)?\)", text) if "://" not in link]
        targets = {link: (page.parent / link, page.parent / f"{link}.md") for link in links}
        lost += [(page.name, link) for link, paths in targets.items() if not any(path.exists() for path in paths)]
    assert lost == []


def test_every_page_of_the_manual_has_a_place() -> None:
    """Every page is an entry of one of the five parts."""
    entries = re.compile(r"^```{toctree}\n(.*?)^```$", re.MULTILINE | re.DOTALL)
    tables = "\n".join(text for part in PAGES for text in entries.findall(part.read_text(encoding="utf-8")))
    pages = {page.stem for page in PAGES if page.parent.name == "docs"}
    assert pages - {"index", *tables.splitlines()} == set()


@pytest.mark.parametrize("script", [s for s in SCRIPTS if s.with_suffix(".ipynb").exists()], ids=lambda p: p.name)
def test_notebook_is_paired(script: Path) -> None:
    """The notebook holds the cells of its percent script."""
    jupytext = pytest.importorskip("jupytext")
    notebook = json.loads(script.with_suffix(".ipynb").read_text(encoding="utf-8"))
    paired = [(cell.cell_type, cell.source) for cell in jupytext.read(script).cells]
    assert [(cell["cell_type"], "".join(cell["source"])) for cell in notebook["cells"]] == paired


@pytest.mark.jit
def test_the_readme_shows_the_answer_of_its_audit(tmp_path: Path) -> None:
    """Rule, times, waits, workers and money that the README quotes are those of the command above them."""
    from lbopt import audit

    said = audit(ROOT / "examples" / "logs" / "fleet.csv", price=2.5, gpus=8).recommendation
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    shown = text[text.index("**switch to") : text.index("From Python: `lbopt.audit")]
    rule = re.search(r"`([^`]+)`", shown)
    assert rule is not None and rule.group(1) in str(said)
    numbers = re.findall(r"−?\d+\.\d+ %|\d of \d workers|[\d,]+ USD", shown)
    assert len(numbers) == 5
    assert [number for number in numbers if number not in str(said)] == []


def test_the_index_counts_the_notebooks() -> None:
    """The manual's first page, its list of notebooks and the folder agree."""
    count = sum(script.with_suffix(".ipynb").exists() for script in SCRIPTS)
    words = ("seven", "eight", "nine", "ten", "eleven", "twelve")
    start = (ROOT / "docs" / "start.md").read_text(encoding="utf-8")
    assert f"{words[count - 7]} notebooks" in (ROOT / "docs" / "index.md").read_text(encoding="utf-8")
    assert len(re.findall(r"^\| \{doc\}`.* <examples/", start, re.MULTILINE)) == count


def test_one_step_example_opens() -> None:
    """The step problem of the examples is the one of the README."""
    from lbopt import StepProblem

    problem = StepProblem.from_json(ROOT / "examples" / "one_step.json")
    assert problem == StepProblem.now([900, 700, 400], [1, 2, 1], [310, 260, 150, 120, 80])
