"""Files of version 0.1.0 stay readable: every run.json gives its configuration, every stored task its key."""

import json
import shutil
import sqlite3
from importlib import import_module
from pathlib import Path

import pytest

from lbopt.exceptions import InputError
from lbopt.report.study_report import REPORTS, read_account, read_config, report_of
from lbopt.runner import Task, collect
from lbopt.runner.store import Store
from lbopt.studies.registry import STUDIES, find_study
from lbopt.studies.scaling import ScalingConfig

STORED = Path(__file__).resolve().parents[1] / "stored"
RUNS = sorted((STORED / "runs").glob("*.json"))
STORES = sorted((STORED / "stores").glob("*.sqlite"))


@pytest.fixture
def folder(tmp_path):
    """A function that makes the output folder of a stored run.json."""

    def make(path, **changes):
        place = tmp_path / path.stem
        place.mkdir()
        (place / "run.json").write_text(json.dumps(json.loads(path.read_text()) | changes))
        return place

    return make


@pytest.mark.parametrize("path", RUNS, ids=lambda path: path.stem)
def test_a_stored_run_gives_its_configuration(path, folder):
    study, account = read_account(folder(path))
    assert study.format == account["format"]
    config = study.config_of(account, "run.json")
    assert json.loads(json.dumps(config.to_dict())) == account[study.config_key]


def test_every_study_has_a_stored_run_and_a_report():
    assert {read_account_name(path) for path in RUNS} == set(STUDIES) == set(REPORTS)


def read_account_name(path):
    formats = {find_study(name).format: name for name in STUDIES}
    return formats[json.loads(path.read_text())["format"]]


@pytest.mark.parametrize("name", STUDIES)
def test_a_study_has_tables_to_write(name):
    assert find_study(name).name == name
    assert report_of(name).csv


def test_another_version_of_the_schema_is_refused(folder):
    with pytest.raises(InputError, match="has version 2; this lbopt reads version 1"):
        read_account(folder(RUNS[0], version=2))


def test_a_folder_of_another_study_is_refused(folder):
    with pytest.raises(InputError, match="was not written by the study gap"):
        read_config(folder(STORED / "runs" / "scaling.json"), "gap")


@pytest.mark.parametrize("path", STORES, ids=lambda path: path.stem)
def test_stored_tasks_keep_their_keys_and_functions(path):
    """A key is made of the function's path: a function that moved would make every stored result unknown."""
    connection = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
    rows = connection.execute("SELECT key, task FROM results").fetchall()
    connection.close()
    assert rows
    for key, text in rows:
        task = Task.from_text(text)
        assert task.key == key
        module, _, name = task.function.partition(":")
        assert callable(getattr(import_module(module), name))


def test_a_stored_study_goes_on_without_running(tmp_path, monkeypatch):
    """The tasks of the configuration that filled a store are those that the store holds."""
    monkeypatch.setattr("lbopt.__version__", "0.1.0")  # part of every key
    store = tmp_path / "scaling.sqlite"
    shutil.copy(STORED / "stores" / "scaling.sqlite", store)
    account = json.loads((STORED / "runs" / "scaling.json").read_text())
    config = ScalingConfig.from_dict(account["configuration"])
    tasks = [config.task(policy=policy, G=G, B=B) for G, B in config.fleets() for policy in config.policies]
    with Store(store, read_only=True) as opened:
        found = collect(tasks, opened)
    assert not found.missing
    assert not found.failed
