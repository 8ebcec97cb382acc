"""Help: the first options and all of them, panels, verbs that load on use, and the list of rules."""

import json
import re
import subprocess
import sys

import pytest
from cli.terminal import environment

from lbopt.cli import BEFORE, VERBS
from lbopt.cli.from_config import Command, asked, settled
from lbopt.cli.lazy import load
from lbopt.cli.study import VERBS as STUDY_VERBS
from lbopt.policies import POLICIES
from lbopt.policies.table import ABOUT, describe_policies
from lbopt.studies.configuration import from_words
from lbopt.studies.gap import GapConfig
from lbopt.studies.registry import STUDIES, find_study


def options_in(shown):
    """The spellings that a help shows, each once."""
    return set(re.findall(r"^│ (--[a-z-]+)", shown, re.MULTILINE))


def test_gap_shows_twelve_options_first(type_in):
    code, shown, _ = type_in("gap", "--help")
    assert code == 0
    assert len(options_in(shown)) == 12
    assert {"--help", "--help-all", "--policy", "--out"} < options_in(shown)
    assert "settings, by --set NAME=VALUE: " in shown


def test_help_all_lists_every_setting_with_default_and_meaning(type_in):
    code, shown, _ = type_in("gap", "--help-all")
    assert code == 0
    listed = shown[shown.index("Settings: --set NAME=VALUE (default)") :]
    rows = {line.split()[0]: line for line in listed.splitlines() if line.strip()}
    missing = [one.key for one in asked(GapConfig) if not one.own and one.key not in rows]
    assert not missing
    assert "detail" in rows and "kv_capacity" in rows and "paper" in rows["event_order"]
    assert len(options_in(type_in("gap", "--help")[1])) == 12  # short again


@pytest.mark.parametrize("verb", ["simulate", "prefill", "cost", "study misprediction"])
def test_verbs_of_many_options_show_at_most_fourteen(type_in, verb):
    code, shown, _ = type_in(*verb.split(), "--help")
    assert code == 0
    assert 5 <= len(options_in(shown)) <= 14
    assert "settings, by --set NAME=VALUE: " in shown


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--set", "kv_capcity=9"), "unknown setting 'kv_capcity': did you mean kv_capacity"),
        (("--set", "kv_capacity"), "setting kv_capacity has no value; expected --set kv_capacity=VALUE"),
        (("--set", "kv_capacity=much"), "--set kv_capacity is 'much'; expected a number"),
        (("--set", "skip_malformed=perhaps"), "--set skip_malformed is 'perhaps'; expected yes or no"),
        (("--set", "arrivals=never"), "unknown arrivals 'never'"),
        (("--kv-capcity", "9"), "--set kv_capacity="),
    ],
)
def test_a_wrong_setting_is_one_sentence(type_in, words, message):
    code, shown, heard = type_in("simulate", *words)
    assert (code, shown) == (2, "")
    assert message in " ".join(heard.split())


def test_a_setting_may_be_spelled_as_an_option():
    """Every spelling of a field arrives at the same value; lists take entries one by one, numbers with commas."""
    config = find_study("misprediction").config
    settings = tuple(asked(config))
    command = type("Command", (Command,), {"settings": settings})("misprediction")
    typed = ["--kv-capacity", "9000", "--noise=0.1", "--noise", "0.2", "--skip-malformed", "x.csv"]
    plain = [word.removeprefix("--set=") for word in command._plain(typed)]
    assert plain[-1] == "x.csv"
    values = settled([config], plain[:-1])
    assert values == {"kv_capacity": 9000, "noise": [0.1, 0.2], "skip_malformed": True}
    gap = type("Command", (Command,), {"settings": tuple(asked(GapConfig))})("gap")
    assert list(gap._plain(["--no-long-runs", "--solver", "auto"])) == ["--set=long_runs=no", "--set=solver=auto"]
    assert settled([config], ["noise=0.1,0.2", "kv-capacity=none"]) == {"noise": [0.1, 0.2], "kv_capacity": None}


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("show policies --workers 3", "--workers does not concern policies"),
        ("show policy", "unknown kind of thing 'policy': did you mean policies"),
        ("show claims lemma-1", "lbopt check lemma-1 says of a claim whether it holds"),
        ("show tables", "a routing table is a file"),
        ("show traces --fetch", "no trace is named"),
        ("show problems tiny-makespan --open", "--open does not concern one problem"),
        ("solve p.json --open", "--open does not concern a file"),
        ("verify store.sqlite --strict", "--strict does not concern a store"),
        ("verify p.json", "of a problem name the result, too"),
        ("export s.sqlite --gate", "--gate does not concern a store"),
        ("export task", "a capture needs a file, .npz; name it with --out"),
        ("fit rows.csv --pairs 3", "--pairs does not concern laws of step time"),
        ("fit capture.npz -G 3", "a routing table needs --workers, whose number it is for, and --out, its file"),
    ],
)
def test_what_does_not_concern_the_kind_that_is_asked_for_is_refused(type_in, here, words, message):
    code, shown, heard = type_in(*words.split())
    assert (code, shown) == (2, "")
    assert message in " ".join(heard.split())
    assert list(here.iterdir()) == []


@pytest.mark.parametrize("old", BEFORE)
def test_an_earlier_name_of_a_verb_is_understood_and_named(type_in, old):
    code, _, heard = type_in(*old.split(), "--no-such-option")
    assert code == 2
    assert f"note: lbopt {old} is lbopt {BEFORE[old]} now" in heard


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
    defaults = {one.key: one.parameter().default for one in asked(GapConfig)}
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
    given = {"audit": {"log": "a.csv", "columns": ("worker=pod",)}, "ranks": {"log": "server.log", "more": ("b.log",)}}
    config = study.config(**given.get(name, {}))
    assert study.config.from_dict(json.loads(json.dumps(config.to_dict()))) == config


def test_policies_lists_every_rule_with_its_options(type_in):
    code, shown, _ = type_in("show", "policies")
    assert code == 0
    assert all(name in shown for name in POLICIES)
    code, shown, _ = type_in("show", "policies", "--json")
    rules = {one["name"]: one for one in json.loads(shown)}
    assert list(rules) == list(POLICIES)
    assert rules["br-h"]["options"]["horizon"] == "80"
    assert "forecast" in rules["br-h"]["needs"]
    assert rules["jsq"]["admission"] == "immediate"
    assert all(one["source"] and one["does"] for one in rules.values())


def test_policies_shows_one_rule_with_its_defaults(type_in):
    code, shown, _ = type_in("show", "policies", "br-0")
    assert code == 0
    assert "age_bound" in shown and "2605.06113" in shown
    code, shown, heard = type_in("show", "policies", "br-9")
    assert (code, shown) == (2, "")
    assert "unknown policy 'br-9'" in heard


def test_every_rule_is_described_once():
    assert list(ABOUT) == list(POLICIES)
    assert [rule.name for rule in describe_policies()] == list(POLICIES)


def test_completion_is_offered(type_in):
    assert "--install-completion" in type_in("--help")[1]


@pytest.mark.some(1)
@pytest.mark.parametrize(
    ("words", "expected"),
    [("lbopt sh", "show"), ("lbopt gap --ho", "--horizon"), ("lbopt gap --set kv", "kv_capacity=")],
)
def test_a_shell_completes_verbs_options_and_settings(words, expected):
    asked = environment(_LBOPT_COMPLETE="complete_bash", COMP_WORDS=words, COMP_CWORD=str(words.count(" ")))
    code = "import sys\nsys.argv = ['lbopt']\nfrom lbopt.cli import main\nmain()"
    done = subprocess.run([sys.executable, "-c", code], env=asked, capture_output=True, text=True, check=False)
    assert expected in done.stdout.split(), done.stderr


def test_no_help_shows_an_object_of_python(type_in):
    """Neither an address, a class nor a marker of a missing default, in short help and in full, of every verb."""
    verbs = [*((verb,) for verb in VERBS), *(("study", verb) for verb in STUDY_VERBS)]
    for verb in verbs:
        shown = "".join(type_in(*verb, option)[1] for option in ("--help", "--help-all"))
        assert "Usage" in shown, verb
        assert not re.search(r"object at|<class|<function|dataclasses|MISSING|PosixPath|array\(|\(\)\]", shown), verb
