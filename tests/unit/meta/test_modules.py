"""Each module's documentation: examples that work as written, and groups for module_defaults."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Any

import pytest
import yaml
from tooling import COLLECTION, ROOT, files_below

MODULES = sorted(path for path in (ROOT / "plugins" / "modules").glob("*.py") if path.stem != "__init__")
DOCUMENTED = files_below("plugins", suffix=".py")
EACH_MODULE = pytest.mark.parametrize("module", MODULES, ids=lambda path: path.stem)
# Ansible reads these in a result, whatever a module means by them: one that is not empty makes a task that changed a
# host count as skipped or failed, or is taken away.
READ_BY_ANSIBLE = {
    *("ansible_facts", "deprecations", "exception", "failed", "failed_when_result", "finished", "invocation"),
    *("item", "results", "skipped", "skipped_reason", "started", "unreachable", "warnings"),
}
TASK_KEYWORDS = {
    *(
        "become",
        "changed_when",
        "check_mode",
        "delay",
        "delegate_to",
        "environment",
        "failed_when",
        "loop",
        "loop_control",
        "name",
    ),
    *("no_log", "notify", "register", "retries", "run_once", "tags", "until", "vars", "when"),
}


def block(path: Path, name: str) -> Any:
    """Return one of a plugin's documentation blocks, parsed; None where it has none."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Assign) and any(isinstance(t, ast.Name) and t.id == name for t in node.targets):
            return yaml.safe_load(ast.literal_eval(node.value))
    return None


def options(path: Path) -> dict[str, Any]:
    """Return a module's own options and those of the collection's fragments that it names."""
    own = block(path, "DOCUMENTATION")
    names = [name.removeprefix(f"{COLLECTION}.") for name in own.get("extends_documentation_fragment", [])]
    places = [ROOT / "plugins" / "doc_fragments" / f"{name}.py" for name in names]
    shared = [block(place, "DOCUMENTATION").get("options") or {} for place in places if place.is_file()]
    return {key: value for options in [*shared, own.get("options") or {}] for key, value in options.items()}


def tasks(examples: list[Any]) -> list[dict[str, Any]]:
    """Return the tasks of an EXAMPLES block, whether they stand alone or in plays."""
    found = []
    for entry in examples:
        found += entry.get("tasks", [entry])
    return found


def unknown_options(path: Path, task: dict[str, Any]) -> set[str]:
    arguments = task.get(f"{COLLECTION}.{path.stem}")
    return set(arguments or {}) - set(options(path))


def test_there_are_modules() -> None:
    assert MODULES


@EACH_MODULE
def test_examples_use_the_module_with_options_that_exist(module: Path) -> None:
    examples = tasks(block(module, "EXAMPLES"))
    assert any(f"{COLLECTION}.{module.stem}" in task for task in examples)
    for task in examples:
        assert task.get("name"), f"an example has no name: {task}"
        assert unknown_options(module, task) == set(), task["name"]
        actions = set(task) - TASK_KEYWORDS
        assert len(actions) == 1, f"{task['name']}: {sorted(actions)}"


def test_a_misspelled_option_would_be_found(tmp_path: Path) -> None:
    path = tmp_path / "thing.py"
    path.write_text('DOCUMENTATION = """\noptions: {state: {}}\n"""\n', encoding="utf-8")
    assert unknown_options(path, {f"{COLLECTION}.thing": {"staet": "present"}}) == {"staet"}


@EACH_MODULE
def test_documentation_says_how_far_check_and_diff_mode_go(module: Path) -> None:
    attributes = block(module, "DOCUMENTATION")["attributes"]
    assert {"check_mode", "diff_mode"} <= set(attributes)


@EACH_MODULE
def test_results_are_documented(module: Path) -> None:
    assert block(module, "RETURN")


@EACH_MODULE
def test_results_have_no_name_that_ansible_reads(module: Path) -> None:
    assert set(block(module, "RETURN")) & READ_BY_ANSIBLE == set()


def test_action_group_lists_every_module() -> None:
    runtime = yaml.safe_load((ROOT / "meta" / "runtime.yml").read_text(encoding="utf-8"))
    (group,) = (runtime.get("action_groups") or {"": []}).values()
    assert group == [path.stem for path in MODULES]
