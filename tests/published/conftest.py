"""The studies and items of `tools.studies` stand beside those of lbopt while a test runs."""

from unittest.mock import patch

import pytest

from lbopt.cli import study
from lbopt.cli.lazy import Verb
from lbopt.report.staggered_tables import OWN
from lbopt.report.study_report import REPORTS
from lbopt.studies.registry import STUDIES
from lbopt.studies.staggered.questions import ELSEWHERE
from lbopt.studies.staggered.study import ITEMS, PACKAGE_OF
from tools.studies import register


@pytest.fixture(autouse=True)
def registered(monkeypatch):
    monkeypatch.setitem(study.VERBS, "reproduction", Verb("study:reproduction", ""))
    with patch.dict(STUDIES), patch.dict(REPORTS), patch.dict(ITEMS), patch.dict(PACKAGE_OF), patch.dict(OWN):
        register()
        yield
        ELSEWHERE.clear()


from cli.conftest import here, type_in  # noqa: E402, F401
