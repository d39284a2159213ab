"""The page on control groups says what the code does, and its example is one that the module takes."""

from __future__ import annotations

import re
from typing import Any

import yaml

from ansible_collections.colocation.testbed.plugins.module_utils.kernel import cgroup_options
from tools import cgroup_docs

PAGE = cgroup_docs.PAGE.read_text(encoding="utf-8")


def test_the_table_is_what_the_code_gives() -> None:
    assert cgroup_docs.page(PAGE) == PAGE, "run python -m tools.cgroup_docs"


def test_a_page_without_the_marks_would_be_noticed() -> None:
    assert cgroup_docs.page("nothing") != "nothing"


def test_every_option_with_a_value_is_in_the_table() -> None:
    names = set(cgroup_options.specification()) - {"name", "state", "pids", "units", "process_names"}
    assert set(re.findall(r"^\| `([a-z_]+)`", PAGE, re.MULTILINE)) == names


def test_the_example_uses_options_that_exist() -> None:
    (task,) = yaml.safe_load(re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)[0])
    groups: list[dict[str, Any]] = task["colocation.testbed.cgroup"]["groups"]
    assert groups
    for group in groups:
        assert set(group) <= set(cgroup_options.specification())
