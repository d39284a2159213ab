"""A mode that divides the link beside one that does not: what is applied, who notices changes, and what is left."""

from __future__ import annotations

import json
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import bounds
import pytest

from ansible_collections.colocation.testbed.plugins.module_utils import snapshot
from ansible_collections.colocation.testbed.plugins.plugin_utils import rundir
from tests.end_to_end.bench_lab import NETNS_PREFIX, STATE_DIR, Lab, wait_for

pytestmark = pytest.mark.measures

LINK: dict[str, Any] = {
    "lab_link_rate": "200Mbit/s",
    "matrix_aggressors": ["iperf3_bulk"],
    "matrix_modes": ["baseline", "colocation", "slo_aware_network"],
    "matrix_policy_definitions": {
        "slo_aware_network": {
            "bandwidth": {"total": "200Mbit/s", "waterline": "1Mbit/s", "low": "40Mbit/s", "high": "80Mbit/s"}
        }
    },
    "matrix_blocks": 1,
}
INSTANCE = "matrix-e2e-tested"


def tc(*words: str) -> str:
    argv = ["tc", "-n", f"{NETNS_PREFIX}e2e-tested", *words]
    return subprocess.run(argv, check=True, capture_output=True, text=True, timeout=30).stdout


def left() -> list[Path]:
    """Return what an instance of the programs has on the machine."""
    places = (
        Path("/sys/fs/bpf/colocation-testbed", INSTANCE),
        Path(STATE_DIR, f"hosts/e2e-tested/bandwidth-{INSTANCE}.json"),
    )
    return [place for place in places if place.exists()]


@pytest.fixture(scope="module")
def before(lab: Lab) -> dict[str, dict[str, str]]:
    """Return what the machine looked like before, once its packages are there."""
    lab.good("playbooks/provision.yml", matrix_aggressors=["iperf3_bulk"])
    lab.good("playbooks/reset.yml")
    return lab.picture()


@pytest.fixture(scope="module")
def run(lab: Lab, before: Any) -> Iterator[rundir.RunDirectory]:
    """Return a run with one window of each mode."""
    lab.good("site.yml", **LINK)
    yield rundir.RunDirectory.open(lab.runs()[-1])
    lab.good("playbooks/reset.yml")


def test_each_mode_has_the_link_that_it_wants(run: rundir.RunDirectory) -> None:
    for record in run.measurements():
        policy = run.policy(record)
        if record.mode != "slo_aware_network":
            assert not [key for key in policy["applied"] if key.startswith("link/")]
            continue
        assert policy["applied"]["link/pools/link/low"] == str(40_000_000 // 8)
        assert policy["applied"]["link/classes/batch/role"] == "offline"
        assert policy["applied"]["link/devices/cte0/egress/pool"] == "link"
        assert policy["after"] == {key: v for key, v in policy["applied"].items() if key.startswith("link/")}
    guards = [guard for record in run.measurements() for guard in run.validity(record)]
    assert [guard.text for guard in guards if guard.guard == "policy_in_effect" and not guard.ok] == []
    assert run.validate() > 0


def sent_mbit_s(run: rundir.RunDirectory, mode: str) -> float:
    """Return what the tested node sent while the load lasted: before and after, batch work may have more."""
    (record,) = (item for item in run.measurements() if item.mode == mode)
    load = run.load(record)
    inside = [
        line
        for line in run.samples(record)["e2e-tested"]
        if load["start_mono_s"] <= line["mono_s"] <= load["end_mono_s"]
    ]
    first, last = inside[0], inside[-1]
    bytes_sent = last["net"]["tx_bytes"] - first["net"]["tx_bytes"]
    return 8e-6 * bytes_sent / (last["mono_s"] - first["mono_s"])


def test_batch_fills_the_link_by_default_and_keeps_to_the_policy_with_one(run: rundir.RunDirectory) -> None:
    assert bounds.kept(sent_mbit_s(run, "colocation"), 200, above=1.025)
    # What the service sends comes on top of the 40 Mbit/s; it is the same in the baseline.
    assert sent_mbit_s(run, "slo_aware_network") - sent_mbit_s(run, "baseline") < 48


def test_nothing_is_left_on_the_link_after_the_run(run: rundir.RunDirectory) -> None:
    assert left() == []
    kinds = {item["kind"] for item in json.loads(tc("-j", "qdisc", "show", "dev", "cte0"))}
    assert kinds == {"noqueue"}


def test_a_filter_that_goes_during_the_window_trips_the_guard(lab: Lab, run: rundir.RunDirectory) -> None:
    seen: list[str] = []

    def take_it_away() -> None:
        sampling = Path(STATE_DIR, "hosts/e2e-load/processes/load.pid")
        wait_for(lambda: sampling.exists() and "bpf" in tc("filter", "show", "dev", "cte0", "egress"), 240)
        seen.append(tc("filter", "show", "dev", "cte0", "egress"))
        tc("filter", "delete", "dev", "cte0", "egress")

    somebody = threading.Thread(target=take_it_away)
    somebody.start()
    modes = ["baseline", "slo_aware_network"]
    lab.good("site.yml", **{**LINK, "matrix_modes": modes, "matrix_seed": 7, "matrix_window_s": 6})
    somebody.join()
    assert seen
    found = rundir.RunDirectory.open(lab.runs()[-1])
    (record,) = (item for item in found.measurements() if item.mode == "slo_aware_network")
    guard = {item.guard: item for item in found.validity(record)}["policy_in_effect"]
    assert not guard.ok
    assert "after the window link/kernel was 'filter replace dev cte0 egress" in guard.text


def test_a_reset_after_a_kill_leaves_nothing(lab: Lab, before: Any, run: rundir.RunDirectory) -> None:
    lab.kill_when(lambda: bool(left()), "site.yml", **{**LINK, "matrix_seed": 8})
    assert left()
    lab.good("playbooks/reset.yml")
    assert left() == []
    assert snapshot.differences(before, lab.picture()) == []
