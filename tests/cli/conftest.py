"""A terminal in the test's own process, in an empty folder."""

import sys

import pytest


@pytest.fixture
def here(tmp_path, monkeypatch):
    """The present folder, empty."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def type_in(here, monkeypatch, capsys):
    """A function that types a command; gives (exit code, standard output, standard error). A traceback fails."""
    from lbopt.cli import main

    def call(*words):
        monkeypatch.setattr(sys, "argv", ["lbopt", *map(str, words)])
        capsys.readouterr()
        try:
            main()
            code = 0
        except SystemExit as leave:
            code = leave.code or 0
        shown = capsys.readouterr()
        return code, shown.out, shown.err

    return call
