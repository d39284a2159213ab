# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The sampler's clock and its handling of what cannot be read; real samples are taken in tests/kernel."""

from __future__ import annotations

import json
import signal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.colocation.testbed.plugins.module_utils.node import sample

SECONDS = st.floats(0, 1e6)


@given(SECONDS, st.floats(0.01, 10), SECONDS)
def test_the_next_moment_lies_on_the_grid_and_ahead(start_s, interval_s, late_s):
    now_s = start_s + late_s
    due_s = sample.ticks(start_s, interval_s, now_s)
    assert now_s < due_s <= now_s + interval_s * 1.001
    steps = (due_s - start_s) / interval_s
    assert abs(steps - round(steps)) < 1e-3


def test_cpus_as_list_as_text_and_by_default():
    assert sample.parse_spec({"output": "x", "cpus": "0-1,3"}).cpus == {0, 1, 3}
    assert sample.parse_spec({"output": "x", "cpus": [2]}).cpus == {2}
    assert sample.parse_spec({"output": "x"}).cpus


@pytest.mark.parametrize(
    "raw",
    [None, {}, {"output": "x", "colour": 1}, {"output": "x", "cpus": "a"}, {"output": "x", "interval_s": 0}],
)
def test_wrong_specifications_are_refused(raw):
    with pytest.raises(sample.SampleError):
        sample.parse_spec(raw)


def test_a_host_that_lacks_everything_gives_null_and_no_key_is_left_out(tmp_path):
    mount = tmp_path / "cgroup"
    mount.mkdir()
    (mount / "cgroup.controllers").write_text("cpu memory\n")
    (tmp_path / "self").mkdir()
    (tmp_path / "self" / "mountinfo").write_text(f"1 1 0:1 / {mount} rw - cgroup2 cgroup2 rw\n")
    spec = sample.parse_spec(
        {
            "output": "x",
            "cpus": "0",
            "cgroup_root": "r",
            "groups": ["service"],
            "policy_files": {"service/cpu.idle": "/none"},
            "work": {"batch": {"kind": "ffmpeg_progress", "path": "/none"}},
            "processes": {"web": {"pid_file": "/none", "group": "service"}},
            "proc_root": str(tmp_path),
            "cpu_root": str(tmp_path),
            "pm_qos_device": "/none",
        }
    )
    found = sample.Sampler(spec).read()
    assert set(found.pop("groups")["service"].values()) == {None}
    assert found.pop("wall_s") > found.pop("mono_s") > 0
    nothing = {"some_us": None, "full_us": None}
    assert found == {
        "cpus": {"0": None},
        "psi": {"cpu": nothing, "memory": nothing, "io": nothing},
        "idle": {"0": {"deep_entries": None, "deep_s": None}},
        "pm_qos_us": None,
        "memory_available_bytes": None,
        "net": {"rx_bytes": None, "tx_bytes": None},
        "work": {"batch": {"unit": "frames", "done": None}},
        "processes": {"web": {"alive": False, "group": None}},
        "policy": {"service/cpu.idle": None},
    }


@pytest.fixture
def signals():
    """The signals that this process takes, as they were before: the sampler blocks those that it waits for."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, [])
    yield
    signal.pthread_sigmask(signal.SIG_SETMASK, before)


@pytest.mark.usefixtures("signals")
def test_run_says_what_is_wrong(tmp_path, capsys):
    path = tmp_path / "spec.json"
    path.write_text(json.dumps({"output": f"{tmp_path}/none/x"}))
    assert sample.run(str(path)) == 1
    assert "No such file or directory; check the path" in capsys.readouterr().err
    path.write_text("[]")
    assert sample.run(str(path)) == 1
    assert "not a specification" in capsys.readouterr().err
