"""Write docs/guards.md from the guards' own table: `python -m tools.guard_docs`. A test holds the two together."""

from __future__ import annotations

import sys
from collections.abc import Sequence
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

Where workloads run as pods, four more guards look at them: `pods_injected`, `pods_steady`, `pods_unthrottled` and, in
modes with batch work, `batch_resources`. Pods that Koordinator's webhook let pass unchanged leave nothing to judge: no
window is repeated then, and the verdict begins with `invalid: pods not injected`.

| guard | asks | limit | when it trips | why |
|---|---|---|---|---|
"""

LIMITS = """
Limits are changed in the inventory by the guard's name, and stay visible in the manifest and the report:

```yaml
matrix_limits: {steal: 0.5, foreign_cpu: 10}
```

## The bandwidth experiment

The same two kinds. What a guard that is not repeated finds makes the figures of that case and shaper no evidence. The
run is `invalid` where an objective rests on them; where none does, the report marks them. `bandwidth_matrix_limits`
changes limits.

| guard | asks | limit | when it trips | why |
|---|---|---|---|---|
"""

TAIL = """
This page is written by `python -m tools.guard_docs`.
"""


def page() -> str:
    """Return the page."""
    matrix = _rows(limits.GUARDS, "the run is invalid")
    return HEAD + matrix + LIMITS + _rows(limits.TRAFFIC, "the case is invalid") + TAIL


def _rows(guards: Sequence[limits.Guard], invalid: str) -> str:
    return "".join(
        f"| `{guard.name}` | {guard.title} | {guard.limit:g} {guard.unit} | {_consequence(guard, invalid)} |"
        f" {guard.why} |\n"
        for guard in guards
    )


def _consequence(guard: limits.Guard, invalid: str) -> str:
    if guard.scope == "run":
        return "the run can't pass: inconclusive" if guard.noise else invalid
    return "repeated" if guard.repeatable else f"not repeated, {invalid}"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
