"""A session's time is told by folder, and by file or scenario where it is worth a line."""

from __future__ import annotations

from spent import Spent


def test_dear_folders_first_and_dear_parts_below() -> None:
    spent = Spent()
    for phase in (1.0, 30.0, 2.0):
        spent.add("tests/molecule/test_scenarios.py::test_scenario[node]", phase)
    spent.add("tests/unit/plugins/test_a.py::test_b[a::b]", 90.0)
    spent.add("tests/unit/plugins/test_c.py::test_d", 2.0)
    assert list(spent.lines()) == [
        "  1.5 min  unit",
        "             1.5  test_a.py",
        "  0.6 min  molecule",
        "             0.6  node",
    ]
