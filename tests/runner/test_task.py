"""Keys of tasks, and what a task refuses to be."""

import math
import pickle

import pytest

from lbopt.exceptions import InputError
from lbopt.runner import Task

FROZEN = Task("package.module:name", {"b": [1, 2.5, None, True], "a": {"ü": "\ud83d"}}, 2**70)


def test_the_key_is_the_same_forever():
    """Stores of years ago are found again; whoever changes the key on purpose raises TASK_FORMAT."""
    assert FROZEN.text == (
        '{"format":1,"function":"package.module:name",'
        '"parameters":{"a":{"\\u00fc":"\\ud83d"},"b":[1,2.5,null,true]},"seed":1180591620717411303424}'
    )
    assert FROZEN.key == "87920225f5b178a6b2253dd24f9b4e75abaa0fa24a241df897fa08324f8ba3ec"


def test_the_key_moves_with_each_part():
    """Another function, parameter or seed is another task; 1, 1.0 and true are three."""
    tasks = [
        Task("m:f", {"x": 1}, None),
        Task("m:g", {"x": 1}, None),
        Task("n:f", {"x": 1}, None),
        Task("m:f", {"y": 1}, None),
        Task("m:f", {"x": 1.0}, None),
        Task("m:f", {"x": True}, None),
        Task("m:f", {"x": "1"}, None),
        Task("m:f", {"x": [1]}, None),
        Task("m:f", {}, None),
        Task("m:f", {"x": 1}, 0),
        Task("m:f", {"x": 1}, 1),
    ]
    assert len({task.key for task in tasks}) == len(set(tasks)) == len(tasks)


def test_order_and_kind_of_sequence_do_not_matter():
    """Tasks that call alike are equal."""
    assert Task("m:f", {"a": 1, "b": (2, 3)}, 0) == Task("m:f", {"b": [2, 3], "a": 1}, 0)
    assert Task("m:f", {}, 0) != "m:f"


def test_a_task_is_a_copy():
    """What the caller or the function does to the parameters later changes neither key nor call."""
    given = {"x": [1]}
    task = Task("m:f", given, 7)
    given["x"].append(2)
    task.arguments()["x"].append(3)
    task.parameters["x"].append(4)
    assert task.arguments() == {"x": [1], "seed": 7}
    assert Task.from_text(task.text).key == pickle.loads(pickle.dumps(task)).key == task.key
    with pytest.raises(AttributeError):
        task.seed = 8


@pytest.mark.parametrize(
    "path", ["f", "m:", ":f", "m.:f", "m:f.g", "m:f:g", "m f:g", "a-b:f", "", ".m:f", "m:f()", None, 3]
)
def test_a_path_has_one_form(path):
    with pytest.raises(InputError, match=r"'package\.module:name'"):
        Task(path, {}, None)


def test_a_function_of_the_running_script_is_refused():
    with pytest.raises(InputError, match="can be imported"):
        Task("__main__:f", {}, None)


@pytest.mark.parametrize(
    ("parameters", "said"),
    [
        ({"fine": 1, "odd": {1, 2}}, r"parameter 'odd' of task 'm:f' is a set"),
        ({"odd": {"deep": [0, math.nan]}}, r"parameter 'odd' of task 'm:f'\['deep'\]\[1\] is nan"),
        ({"odd": [math.inf]}, r"parameter 'odd' of task 'm:f'\[0\] is inf"),
        ({"odd": {2: 3}}, r"parameter 'odd' of task 'm:f' has the key 2 of type int"),
        ({"odd": 10**5000}, r"parameter 'odd' of task 'm:f' cannot be written as JSON"),
        ({3: 1}, r"parameter 3"),
        ({"seed": 1}, r"give it as the task's seed"),
        ([1], r"expected a dict"),
    ],
)
def test_parameters_are_json(parameters, said):
    """The message names the parameter and the place in it."""
    with pytest.raises(InputError, match=said):
        Task("m:f", parameters, None)


def test_numpy_numbers_are_named():
    """A NumPy float is a float; a NumPy integer is not an int, and the message says so."""
    numpy = pytest.importorskip("numpy")
    assert Task("m:f", {"x": numpy.float64(1.5)}, None) == Task("m:f", {"x": 1.5}, None)
    with pytest.raises(InputError, match=r"is a numpy\.int64"):
        Task("m:f", {"x": numpy.int64(1)}, None)


@pytest.mark.parametrize("seed", [True, 1.0, "1"])
def test_a_seed_is_an_int(seed):
    with pytest.raises(InputError, match="expected an int or None"):
        Task("m:f", {}, seed)
