"""What `vllm` alone means: today's rule, and that of then in a folder of then."""

import pytest

from lbopt.exceptions import InputError
from lbopt.kernels.routing import codes
from lbopt.policies import make_policy
from lbopt.policies.editions import edition, edition_of, spelled_out
from lbopt.studies.scaling import ScalingConfig


def test_a_name_alone_means_the_rule_of_its_edition():
    now, then = make_policy("vllm"), make_policy("vllm:version=2025")
    assert (now.name, now.code) == ("vllm", codes.VLLM_2026)
    assert (then.name, then.code) == ("vllm:version=2025", codes.VLLM)
    assert make_policy("vllm:version=2026") == now
    with edition(2025):
        assert make_policy("vllm").name == "vllm"
        assert make_policy("vllm").code == codes.VLLM
        assert make_policy("vllm:admission=pooled").name == "vllm:admission=pooled"
        assert make_policy("vllm:version=2026").name == "vllm:version=2026"
    assert make_policy("vllm") == now


def test_a_text_that_names_its_version_means_the_same_everywhere():
    assert spelled_out("vllm") == "vllm:version=2026"
    assert spelled_out("vllm:admission=pooled", 2025) == "vllm:version=2025,admission=pooled"
    assert spelled_out("vllm:admission=immediate,version=2025") == "vllm:admission=immediate,version=2025"
    assert [spelled_out(spec, 2025) for spec in ("jsq", "vllm-ascend", "replay:vllm")] == [
        "jsq",
        "vllm-ascend",
        "replay:vllm",
    ]


def test_run_json_says_which_edition_it_means():
    assert edition_of({"versions": {"lbopt": "0.1.0"}}) == 2025
    assert edition_of({"versions": {"rules": "2026"}}) == 2026
    assert edition_of({}) == 2025
    with pytest.raises(InputError, match="rules of '2031'; this lbopt knows those of 2025 to 2026"):
        edition_of({"versions": {"rules": "2031"}})


def test_tasks_of_other_processes_name_the_version():
    with edition(2025):
        config = ScalingConfig(policies=("vllm:admission=pooled", "fcfs"))
        named = [config.task(policy=policy, G=2, B=16).parameters["policy"] for policy in config.policies]
    assert named == ["vllm:version=2025,admission=pooled", "fcfs"]
