"""The page on policies says what the code does, and its examples work."""

from __future__ import annotations

import re

import yaml

from ansible_collections.colocation.testbed.plugins.module_utils.policy import (
    effects,
    kernel_values,
    validation,
    vocabulary,
    vocabulary_qos,
)
from ansible_collections.colocation.testbed.plugins.module_utils.policy.node import BE, POD, TIER, NodeFacts, Workload
from tools import policy_docs

PAGE = policy_docs.PAGE.read_text(encoding="utf-8")
BLOCKS = [yaml.safe_load(text) for text in re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)]


def test_the_page_is_what_the_tables_give():
    assert policy_docs.page() == PAGE, "run python -m tools.policy_docs"


def test_every_key_has_its_row():
    for section in vocabulary.SECTIONS:
        for names in effects.keys(section):
            shown = ".".join(effects.ANY if name in vocabulary_qos.CLASSES else name for name in names)
            assert f"| `{shown}` |" in PAGE


def test_the_policy_of_the_page_is_good_and_does_what_the_page_says():
    (policy,) = (block["policy"] for block in BLOCKS if isinstance(block, dict) and "policy" in block)
    assert validation.problems(policy, "policy", "koordinator") == []
    ((task,),) = (block for block in BLOCKS if isinstance(block, list))
    first = task["colocation.testbed.cgroup_policy"]["groups"][0]
    assert (first["qos"], first["level"]) == (BE, TIER)
    node = NodeFacts(10, 2**30, labels={"pool": "databases"})
    workloads = [Workload("tier", BE, TIER), Workload("pod", BE, POD)]
    tier, pod = (item["options"] for item in kernel_values.wanted(policy, node, workloads).cgroups)
    assert tier["cpu_quota_us"] == 400_000
    assert pod["cpu_idle"] is True
    elsewhere = kernel_values.wanted(policy, NodeFacts(10, 2**30), workloads).cgroups[0]["options"]
    assert elsewhere["cpu_quota_us"] == 600_000


def test_the_section_on_the_link_is_good_for_both_engines_of_this_collection():
    (section,) = (block for block in BLOCKS if isinstance(block, dict) and "bandwidth" in block)
    for engine in ("static", "agent"):
        assert validation.problems(section, "policy", engine) == []


def test_the_sentences_of_the_page_are_those_of_the_code():
    (told,) = re.findall(r"```text\n(.*?)```", PAGE, re.DOTALL)
    block = {"catRangeStartPercent": 0, "catRangeEndPercent": 130}
    policy = {
        "resource-qos-config": {"clusterStrategy": {"beClass": {"resctrlQOS": block}}},
        "colocation-config": {"nodeStrategies": []},
    }
    found = validation.problems(policy, "policy", "koordinator")
    for line, sentence in zip(told.splitlines(), found, strict=True):
        assert sentence.startswith(line)
