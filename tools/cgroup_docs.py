"""Write the table of options in docs/cgroup.md from the code: `python -m tools.cgroup_docs`. A test compares them."""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "collections"))

from ansible_collections.colocation.testbed.plugins.module_utils.kernel import cgroup_devices, cgroup_keys
from ansible_collections.colocation.testbed.plugins.module_utils.kernel.cgroup_options import BOOLEANS

PAGE = ROOT / "docs" / "cgroup.md"
START, END = "<!-- options -->\n", "<!-- /options -->\n"
HEAD = "| option | v1 | v2 | values | needs |\n|---|---|---|---|---|\n"


def table() -> str:
    """Return one row for each option: its files on both versions, its values, and what it needs."""
    rows = []
    for key in cgroup_keys.KEYS:
        files = (" or ".join(f"`{file.name}`" for file in key.files(version)) or "no file" for version in (1, 2))
        rows.append((f"`{key.name}`", *files, values(key), key.needs))
    for name, fields in cgroup_devices.FIELDS.items():
        row = cgroup_devices.key(name, "8:0", fields[0])
        files = (
            ", ".join(f"`{file}`" for file in cgroup_devices.FILES[version].get(name, ())) or "no file"
            for version in (1, 2)
        )
        rows.append(
            (f"`{name}`: `device`, {', '.join(f'`{field}`' for field in fields)}", *files, values(row), row.needs)
        )
    return "".join(f"| {' | '.join(row)} |\n" for row in rows)


def values(key: cgroup_keys.Key) -> str:
    """Return which values an option takes."""
    if key.choices:
        return ", ".join(key.choices)
    if key.name in BOOLEANS:
        return "true, false"
    if key.low is None:
        return "list such as 0-3,8"
    limits = f"{key.low} to {key.high}" if key.high is not None and key.high < 2**31 else f"from {key.low}"
    return f"{limits}, -1: no limit" if key.unlimited else limits


def page(present: str) -> str:
    """Return the page with the table as the code gives it."""
    head, _start, rest = present.partition(START)
    _old, _end, tail = rest.partition(END)
    return f"{head}{START}\n{HEAD}{table()}\n{END}{tail}"


if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
