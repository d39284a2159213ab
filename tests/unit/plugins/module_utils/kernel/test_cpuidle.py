# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Idle states in a made-up sysfs."""

from __future__ import annotations

from ansible_collections.colocation.testbed.plugins.module_utils.kernel import cpuidle


def _state(root, number, name, latency):
    place = root / "cpu0" / "cpuidle" / f"state{number}"
    place.mkdir(parents=True)
    for file, text in {"name": name, "latency": latency, "usage": "5", "time": "7"}.items():
        (place / file).write_text(f"{text}\n")


def test_states_are_in_order_of_depth_and_polling_is_not_deep(tmp_path):
    for number, name, latency in ((10, "C10", "890"), (0, "POLL", "0"), (2, "C1E", "10")):
        _state(tmp_path, number, name, latency)
    assert [state.name for state in cpuidle.states(0, str(tmp_path))] == ["POLL", "C1E", "C10"]
    deep = cpuidle.deep_states(0, str(tmp_path))
    assert [(state.name, state.latency_us) for state in deep] == [("C1E", 10), ("C10", 890)]
    assert deep[0].usage_path.endswith("state2/usage")


def test_a_kernel_without_cpuidle(tmp_path):
    assert cpuidle.states(0, str(tmp_path)) == []
    assert cpuidle.driver(str(tmp_path)) is None
    (tmp_path / "cpuidle").mkdir()
    (tmp_path / "cpuidle" / "current_driver").write_text("none\n")
    assert cpuidle.driver(str(tmp_path)) is None
    (tmp_path / "cpuidle" / "current_driver").write_text("haltpoll\n")
    assert cpuidle.driver(str(tmp_path)) == "haltpoll"
