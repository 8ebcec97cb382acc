"""Where instances come from: files, the library, drawn states; and what is said where they do not."""

import json

import numpy as np
import pytest

from lbopt.exceptions import InputError
from lbopt.instances import library
from lbopt.studies.progress import Silent
from tests.benchmarks.race.config import RaceConfig
from tests.benchmarks.race.instances import gather_instances
from tests.benchmarks.race.small_race import problem


def gathered(**given):
    return gather_instances(RaceConfig(solvers=("exact",), **given), Silent())


@pytest.fixture
def traces(tmp_path):
    """A folder with a trace of the name that the classes ask for."""
    rng = np.random.default_rng(3)
    rows = [{"input_length": int(a), "output_length": int(b)} for a, b in rng.integers(5, 400, (300, 2))]
    (tmp_path / "burstgpt_8000.json").write_text(json.dumps({"data": rows}))
    return str(tmp_path)


def test_a_file_and_a_file_of_many(tmp_path):
    """A .json is one problem, a .jsonl one a line; the same problem is taken once."""
    (tmp_path / "one.json").write_text(problem().to_json())
    lines = "".join(f"{problem(first=first).to_json()}\n" for first in (10, 20, 30))
    (tmp_path / "many.jsonl").write_text(lines)
    found = gathered(instances=(str(tmp_path / "one.json"), str(tmp_path / "many.jsonl")))
    assert [one.name for one in found] == ["one", "many/1", "many/2"]


def test_an_entry_a_class_and_everything_of_the_library():
    """Problem, best value and bound are those of the library."""
    names = library.names("tiny")
    (one,) = gathered(instances=(names[0],))
    entry = library.load(names[0])
    assert (one.problem, one.best, one.bound) == (entry.problem, entry.best, entry.bound)
    assert [one.name for one in gathered(instances=("tiny",))] == names
    assert len(gathered(instances=("tiny", names[0]))) == len(names)


def test_states_are_those_of_the_class_and_its_shift(traces):
    """The first states of the class, drawn again to the same problems; another shift is another draw."""
    found = gathered(states=("rich-burstgpt-g4",), count=2, data=traces)
    assert [one.name for one in found] == ["rich-burstgpt-g4/0", "rich-burstgpt-g4/1"]
    again = gathered(states=("rich-burstgpt-g4",), count=2, data=traces)
    assert [one.problem for one in again] == [one.problem for one in found]
    shifted = gathered(states=("rich-burstgpt-g4",), count=2, data=traces, shift=5)
    assert shifted[0].group == "rich-burstgpt-g4+5"
    assert shifted[0].problem != found[0].problem


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({}, "the race has no instance; name some"),
        ({"instances": ("nonsense",)}, "there is no instance 'nonsense' in the library"),
        ({"instances": ("absent.json",)}, "cannot read absent.json"),
        ({"states": ("rich-burstgpt-g5",)}, "no class of states 'rich-burstgpt-g5'"),
        ({"states": ("rich-burstgpt-g4",)}, "give its folder with --data"),
        ({"states": ("rich-burstgpt-g4",), "data": "/nowhere"}, "which is not in '/nowhere'"),
    ],
)
def test_what_is_not_there(given, message, tmp_path, monkeypatch):
    """One sentence that names the thing and the way out."""
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError, match=message):
        gathered(**given)


def test_more_states_than_the_class_has(traces):
    """The frozen lists end somewhere."""
    with pytest.raises(InputError, match="has 1000 states; 1001 were asked for"):
        gathered(states=("rich-burstgpt-g4",), count=1001, data=traces)


def test_two_files_of_one_name(tmp_path):
    """Tables could not tell them apart."""
    for folder, first in (("x", 1), ("y", 2)):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "same.json").write_text(problem(first=first).to_json())
    with pytest.raises(InputError, match="two different instances are called 'same'"):
        gathered(instances=(str(tmp_path / "x/same.json"), str(tmp_path / "y/same.json")))
