"""Help: the first options and all of them, panels, verbs that load on use, and the list of rules."""

import json
import re
import subprocess
import sys

import pytest
from cli.terminal import environment

from lbopt.cli import VERBS
from lbopt.cli.from_config import parameters
from lbopt.cli.lazy import load
from lbopt.cli.study import VERBS as STUDY_VERBS
from lbopt.policies import POLICIES
from lbopt.policies.table import ABOUT, describe_policies
from lbopt.studies.configuration import from_words
from lbopt.studies.gap import GapConfig
from lbopt.studies.registry import STUDIES, find_study

#: Panels of the decode study, in which every option of `lbopt gap` stands.
PANELS = ("Requests", "Fleet", "Policies", "Optimum", "Prefill side", "Study", "Output")


def options_in(shown):
    """The spellings that a help shows, each once."""
    return set(re.findall(r"^│ (--[a-z-]+)", shown, re.MULTILINE))


def test_gap_shows_twelve_options_first(type_in):
    code, shown, _ = type_in("gap", "--help")
    assert code == 0
    assert len(options_in(shown)) == 12
    assert {"--help", "--help-all", "--policy", "--out"} < options_in(shown)
    assert "29 more options: " in shown


def test_help_all_shows_every_option_in_a_named_panel(type_in):
    code, shown, _ = type_in("gap", "--help-all")
    assert code == 0
    command = load("gap", VERBS["gap"].where)
    assert {one.opts[0] for one in command.params if one.param_type_name == "option"} | {"--help"} == options_in(shown)
    assert all(f"─ {panel} ─" in shown for panel in PANELS)
    plain = shown[shown.index("─ Options ─") : shown.index("─ Study ─") if "─ Study ─" in shown else None]
    assert options_in(plain.partition("╰")[0]) == {"--help", "--help-all"}
    prefill = shown[shown.index("─ Prefill side ─") :].partition("╰")[0]
    assert options_in(prefill) == {"--instances", "--chunk"}


def test_help_is_short_again_after_help_all(type_in):
    type_in("gap", "--help-all")
    assert len(options_in(type_in("gap", "--help")[1])) == 12


@pytest.mark.parametrize("verb", ["simulate", "prefill", "cost", "study misprediction"])
def test_verbs_of_many_options_show_at_most_twelve(type_in, verb):
    code, shown, _ = type_in(*verb.split(), "--help")
    assert code == 0
    assert 5 <= len(options_in(shown)) <= 12
    assert "more options: " in shown
    assert len(options_in(type_in(*verb.split(), "--help-all")[1])) > 16


def test_verbs_load_on_use():
    """Importing the command line, and listing its verbs, loads neither NumPy nor a study."""
    code = (
        "import sys\nsys.argv = ['lbopt', '--help']\nfrom lbopt.cli import main\n"
        "try:\n    main()\nexcept SystemExit:\n    pass\n"
        "print(sum(m.startswith('lbopt') for m in sys.modules), 'numpy' in sys.modules, file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment(), capture_output=True, text=True, timeout=400, check=True
    )
    modules, numpy = done.stderr.split()
    assert int(modules) < 60
    assert numpy == "False"
    assert all(verb in done.stdout for verb in VERBS)


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_loads_and_has_a_line_of_help(verb):
    assert load(verb, VERBS[verb].where).name == verb
    assert VERBS[verb].help.endswith(".")


@pytest.mark.parametrize("verb", STUDY_VERBS)
def test_every_verb_of_study_has_an_example(verb):
    assert f"Example: `lbopt study {verb} " in load(verb, STUDY_VERBS[verb].where).help.replace("\n", " ")


def test_options_make_the_configuration_that_they_come_from():
    """Nothing given is the default configuration, and what is given arrives at its field, however deep."""
    defaults = {name: one.default for name, one in parameters(GapConfig).items()}
    assert from_words(GapConfig, defaults) == GapConfig()
    changed = from_words(GapConfig, defaults | {"workers": 3, "requests": 50, "policy": ["fcfs"], "baseline": "fcfs"})
    assert changed.scenario.num_workers == 3
    assert changed.scenario.requests.count == 50
    assert changed.policies == ("fcfs",)


@pytest.mark.parametrize("name", STUDIES)
def test_a_configuration_survives_its_folder(name):
    """What run.json holds of a configuration builds an equal one."""
    study = find_study(name)
    if name == "check":
        config = study.config.of(["lemma-1"], seed=3)
        assert study.config.from_dict(json.loads(json.dumps(config.to_dict()))).to_dict() == config.to_dict()
        return
    config = study.config(log="router.csv", columns=("worker=pod",)) if name == "audit" else study.config()
    assert study.config.from_dict(json.loads(json.dumps(config.to_dict()))) == config


def test_policies_lists_every_rule_with_its_options(type_in):
    code, shown, _ = type_in("policies")
    assert code == 0
    assert all(name in shown for name in POLICIES)
    code, shown, _ = type_in("policies", "--json")
    rules = {one["name"]: one for one in json.loads(shown)}
    assert list(rules) == list(POLICIES)
    assert rules["br-h"]["options"]["horizon"] == "80"
    assert "forecast" in rules["br-h"]["needs"]
    assert rules["jsq"]["admission"] == "immediate"
    assert all(one["source"] and one["does"] for one in rules.values())


def test_policies_shows_one_rule_with_its_defaults(type_in):
    code, shown, _ = type_in("policies", "br-0")
    assert code == 0
    assert "age_bound" in shown and "2605.06113" in shown
    code, shown, heard = type_in("policies", "br-9")
    assert (code, shown) == (2, "")
    assert "unknown policy 'br-9'" in heard


def test_every_rule_is_described_once():
    assert list(ABOUT) == list(POLICIES)
    assert [rule.name for rule in describe_policies()] == list(POLICIES)


def test_completion_is_offered(type_in):
    assert "--install-completion" in type_in("--help")[1]
