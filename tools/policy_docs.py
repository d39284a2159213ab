"""Write docs/policies.md from the policy library's tables: `python -m tools.policy_docs`. A test compares the two."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "collections"))

from ansible_collections.colocation.testbed.plugins.module_utils.kernel import cgroup_devices, cgroup_keys
from ansible_collections.colocation.testbed.plugins.module_utils.policy import (
    effects,
    vocabulary,
    vocabulary_qos,
    vocabulary_types,
)
from ansible_collections.colocation.testbed.plugins.module_utils.policy.effects import Effect
from ansible_collections.colocation.testbed.plugins.module_utils.policy.vocabulary_types import Leaf, ListOf, Node

PAGE = ROOT / "docs" / "policies.md"
TEXT = ROOT / "tools" / "policies.md"
MARK = "<!-- tables -->\n"
HEAD = "| key | takes (default) | value | cgroup v1 | cgroup v2 | needs |\n|---|---|---|---|---|---|"
DEVICE = "8:0"
RESCTRL_NEEDS = {
    "L3": "resctrl, CPU flag `cat_l3` (Linux 4.10)",
    "MB": "resctrl, CPU flag `mba` (Linux 4.12; AMD 5.0)",
}


def page() -> str:
    """Return the page: the text, with the tables in place of the mark."""
    before, after = TEXT.read_text(encoding="utf-8").split(MARK)
    return f"{before}{chr(10).join(_tables())}\n{after}"


def _tables() -> Iterator[str]:
    yield from (
        "### What workloads ask for\n",
        "| asked for | value | cgroup v1 | cgroup v2 | needs |\n|---|---|---|---|---|",
    )
    for asked, effect in effects.REQUESTS.items():
        yield _row(f"`{asked}`", effect.text, *_places(effect, ""))
    for name in vocabulary.SECTIONS:
        yield from (f"\n### `{name}`\n", HEAD)
        for names in _distinct(name):
            yield _key(name, names)
    yield from (
        "\n### What modes of the matrix take\n",
        "Engine `static` of the matrix acts on these, and refuses others:\n",
    )
    for name, section in vocabulary.SECTIONS.items():
        yield from (f"- `{name}`: {keys}" for keys in [_static(name, section.strategy)] if keys)


def _static(section: str, strategy: Mapping[str, Node]) -> str:
    found = []
    for names in effects.keys(section):
        leaf = _leaf(strategy, names)
        if isinstance(leaf, Leaf) and vocabulary_types.STATIC in leaf.engines:
            only = f" ({', '.join(leaf.static_choices)})" if leaf.static_choices else ""
            found.append(f"`{'.'.join(names)}`{only}")
    return ", ".join(found)


def _distinct(section: str) -> list[tuple[str, ...]]:
    """Return the keys of a section, those that all classes have only once."""
    keys = effects.keys(section)
    return [names for names in keys if names[0] not in vocabulary_qos.CLASSES[1:]]


def _key(section: str, names: tuple[str, ...]) -> str:
    effect = effects.find(section, names)
    shown = ".".join(effects.ANY if name in vocabulary_qos.CLASSES else name for name in names)
    leaf = _leaf(vocabulary.SECTIONS[section].strategy, names)
    value = "switch" if effect.kind == effects.SWITCH else "" if effect.kind == effects.NOTHING else effect.text
    return _row(f"`{shown}`", _takes(leaf, section, names), value, *_places(effect, names[-1]))


def _leaf(node: Node, names: tuple[str, ...]) -> Node:
    for name in names:
        inner = node.item if isinstance(node, ListOf) else node
        node = inner[name] if isinstance(inner, Mapping) else inner
    return node


def _takes(node: Node, section: str, names: tuple[str, ...]) -> str:
    if not isinstance(node, Leaf):
        return "list" if isinstance(node, ListOf) else "mapping"
    kinds = {
        "bool": "true, false",
        "int": _range(node),
        "number": f"above {node.low}",
        "choice": ", ".join(node.choices),
        "share": "0 to 100 percent, or a quantity of bits/s in quotes",
        "rate": "rate with a unit, such as `100Mbit/s`",
    }
    leaves: list[Node] = [node]
    if names[0] in vocabulary_qos.CLASSES:
        leaves = [_leaf(vocabulary.SECTIONS[section].strategy, (item, *names[1:])) for item in vocabulary_qos.CLASSES]
    defaults = [_default(leaf.default) for leaf in leaves if isinstance(leaf, Leaf)]
    told = " / ".join(defaults if len(set(defaults)) > 1 else defaults[:1])
    return f"{kinds.get(node.kind, node.kind)}{f' ({told})' if told else ''}"


def _range(leaf: Leaf) -> str:
    if leaf.low is None:
        return "whole number"
    return f"from {leaf.low} on" if leaf.high is None else f"{leaf.low} to {leaf.high}"


def _default(value: object) -> str:
    return "" if value is None else str(value).lower() if isinstance(value, bool) else str(value)


def _places(effect: Effect, key: str) -> tuple[str, str, str]:
    """Return file on v1, file on v2, and what is needed."""
    if effect.kind == effects.NOTHING:
        return "", "", effect.text.split(";")[0]
    if effect.kind == effects.RESCTRL:
        file = f"`schemata`, line `{effect.names[0]}`"
        return file, file, RESCTRL_NEEDS[effect.names[0]]
    if effect.kind == effects.BANDWIDTH:
        module, option = effect.names[0].split(".")
        place = f"module `{module}`: `{option}`"
        return place, place, "cgroup2, clsact; plane `edt`, `htb` or `police`"
    if effect.kind == effects.HOST:
        name = effect.names[0]
        file = f"`{name if name.startswith('/') else '/proc/sys/' + name.replace('.', '/')}`"
        return file, file, "" if name.startswith("vm.") else "a kernel of Alibaba Cloud Linux or Anolis"
    rows = [_cgroup(name, key) for name in effect.names]
    first, second, needs = (" and ".join(dict.fromkeys(row[place] for row in rows)) for place in range(3))
    return first, second, needs


def _cgroup(name: str, key: str) -> tuple[str, str, str]:
    if name in cgroup_devices.FIELDS:
        row = cgroup_devices.key(name, DEVICE, effects.THROTTLES[key])
    else:
        row = cgroup_keys.BY_NAME[name]
    files = (" or ".join(f"`{file.name}`" for file in row.files(version)) or "not there" for version in (1, 2))
    first, second = files
    return first, second, row.needs


def _row(*cells: str) -> str:
    return f"| {' | '.join(cells)} |"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
