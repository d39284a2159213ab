"""Write docs/guards.md from the guards' own table: `python -m tools.guard_docs`. A test holds the two together."""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "collections"))

from ansible_collections.colocation.testbed.plugins.module_utils.measure import limits

PAGE = ROOT / "docs" / "guards.md"

HEAD = """\
# Guards: when a measurement does not count

Every measurement is looked at by every guard that applies to it. A guard has a figure and a limit; a guard without
data is tripped, because an empty sample proves nothing. What each found is in the measurement's `validity.json`, and
in the report with the worst window named.

Two kinds of guards follow two kinds of trouble:

- **repeated**: the window was spoiled, by noise (steal, foreign work) or by an accident (a process died). The
  measurement is kept on disk, marked as failed, and the cell is measured again within its block, at most
  `matrix_repeat_cap` times. A cell that is never had leaves the verdict `inconclusive` where noise was to blame, and
  makes the run `invalid` otherwise.
- **not repeated**: the cause lies in the configuration or in the mode itself. Every repeat would meet it again, and
  choosing the windows that look better would bend the result. The measurement counts, and the run is `invalid`.

| guard | asks | limit | when it trips | why |
|---|---|---|---|---|
"""

TAIL = """
Limits are changed in the inventory by the guard's name, and stay visible in the manifest and the report:

```yaml
matrix_limits: {steal: 0.5, foreign_cpu: 10}
```

This page is written by `python -m tools.guard_docs`.
"""


def page() -> str:
    """Return the page."""
    rows = [
        f"| `{guard.name}` | {guard.title} | {guard.limit:g} {guard.unit} | {_consequence(guard)} | {guard.why} |"
        for guard in limits.GUARDS
    ]
    return HEAD + "\n".join(rows) + "\n" + TAIL


def _consequence(guard: limits.Guard) -> str:
    if guard.scope == "run":
        return "the run can't pass: inconclusive" if guard.noise else "the run is invalid"
    return "repeated" if guard.repeatable else "not repeated, the run is invalid"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
