from __future__ import annotations

import numpy as np
import pytest

from ansible_collections.colocation.testbed.plugins.module_utils.measure.scene import Host
from ansible_collections.colocation.testbed.plugins.module_utils.measure.series import Window, cut
from ansible_collections.colocation.testbed.plugins.plugin_utils.report.series import CLASSES, cpu_series

ZERO = dict.fromkeys(("user_s", "nice_s", "system_s", "idle_s", "iowait_s", "irq_s", "softirq_s", "steal_s"), 0.0)


def sample(second, service, batch, other, steal, wait=0.0):
    """Cumulative counters after so many seconds at these shares of one CPU."""
    busy = service + batch + other
    cpu = {**ZERO, "user_s": busy * second, "steal_s": steal * second, "idle_s": (1 - busy - steal) * second}
    groups = {
        "service": {"cpu_s": service * second, "wait_s": wait * second},
        "batch": {"cpu_s": batch * second, "wait_s": 0.0},
    }
    return {"wall_s": 100.0 + second, "mono_s": float(second), "cpus": {"3": cpu}, "groups": groups}


def host(samples, cpus=(3,)):
    return Host("tested1", True, cpus, cut(samples, Window(101.0, 105.0)))


def test_classes_are_shares_that_fill_the_cpu():
    found = cpu_series(host([sample(second, 0.4, 0.3, 0.05, 0.1, wait=0.25) for second in range(8)]))
    assert len(found) == 6
    assert found.edges_s == pytest.approx([-1, 0, 1, 2, 3, 4, 5])
    expected = {"service": 40, "batch": 30, "other": 5, "steal": 10, "idle": 15}
    for name in CLASSES:
        assert found.share_pct[name] == pytest.approx([expected[name]] * 6)
    assert found.wait_ms_per_s == pytest.approx([250] * 6)


def test_group_charged_more_than_the_ticks_is_cut_to_them():
    samples = [sample(second, 0.5, 0.49, 0.0, 0.0) for second in range(8)]
    for item in samples:
        item["groups"]["batch"]["cpu_s"] *= 1.05
    found = cpu_series(host(samples))
    assert np.all(sum(found.share_pct.values()) <= 100.0 + 1e-9)
    assert found.share_pct["other"] == pytest.approx([0.0] * 6)


def test_intervals_without_readings_are_left_out():
    samples = [sample(second, 0.4, 0.3, 0.0, 0.0) for second in range(8)]
    samples[3]["cpus"]["3"]["idle_s"] = None
    assert len(cpu_series(host(samples))) == 4


@pytest.mark.parametrize("found", [cpu_series(host([])), cpu_series(Host("tested1", True, (3,), None))])
def test_no_samples_is_an_empty_series(found):
    assert len(found) == 0
