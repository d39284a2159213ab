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

from ansible_collections.colocation.testbed.plugins.module_utils.kernel import cgroup
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


@pytest.fixture(params=[1, 2], ids=["v1", "v2"])
def host(request, tmp_path):
    """A host with a group of our own and the group of a pod's container, in either version of control groups."""
    (tmp_path / "self").mkdir()
    if request.param == 1:
        places = {name: tmp_path / name for name in ("cpu", "cpuacct")}
        mounts = "".join(f"1 1 0:1 / {place} rw - cgroup cgroup rw,{name}\n" for name, place in places.items())
    else:
        places = dict.fromkeys(("cpu", "cpuacct"), tmp_path / "cgroup")
        mounts = f"1 1 0:1 / {tmp_path / 'cgroup'} rw - cgroup2 cgroup2 rw\n"
    (tmp_path / "self" / "mountinfo").write_text(mounts)
    for place in dict.fromkeys(places.values()):
        place.mkdir()
    if request.param == 2:
        (tmp_path / "cgroup" / "cgroup.controllers").write_text("cpu memory\n")

    def fill(group, cpu_s, tasks):
        for place in dict.fromkeys(places.values()):
            (place / group).mkdir(parents=True, exist_ok=True)
        (places["cpu"] / group / ("tasks" if request.param == 1 else "cgroup.threads")).write_text(tasks)
        if request.param == 1:
            (places["cpuacct"] / group / "cpuacct.usage").write_text(f"{int(cpu_s * 1e9)}\n")
        else:
            (places["cpu"] / group / "cpu.stat").write_text(f"usage_usec {int(cpu_s * 1e6)}\n")

    fill("r/load", 1.5, "1\n")
    fill("kubepods/podx/c1", 2.5, "12\n13\n")
    fill("kubepods/besteffort/pody/c2", 4.5, "")
    return tmp_path, fill


def sampled(root, **spec):
    """One sample of a host whose files are below a directory."""
    fixed = {"output": "x", "cpus": "0", "proc_root": str(root), "cpu_root": str(root), "pm_qos_device": "/none"}
    return sample.Sampler(sample.parse_spec({**fixed, "cgroup_root": "r", **spec}))


def test_a_group_with_a_path_is_read_there_and_any_other_below_the_root(host):
    root, _fill = host
    paths = {"service": "kubepods/podx/c1", "cluster": "none"}
    groups = sampled(root, groups=["service", "load"], group_paths=paths).read()["groups"]
    assert list(groups) == ["service", "load", "cluster"]
    assert (groups["service"]["cpu_s"], groups["service"]["tasks"]) == (2.5, 2)
    assert (groups["load"]["cpu_s"], groups["load"]["tasks"]) == (1.5, 1)
    assert set(groups["cluster"].values()) == {None}


def test_a_pods_processes_live_as_long_as_its_group_has_a_task(host):
    root, fill = host
    pods = {
        "nginx": {"group_path": "kubepods/podx/c1", "group": "service"},
        "ffmpeg": {"group_path": "kubepods/besteffort/pody/c2", "group": "batch"},
        "gone": {"group_path": "kubepods/podz/c3", "group": "batch"},
    }
    sampler = sampled(root, processes=pods)
    dead = {"alive": False, "group": None}
    assert sampler.read()["processes"] == {"nginx": {"alive": True, "group": "service"}, "ffmpeg": dead, "gone": dead}
    fill("kubepods/podx/c1", 2.5, "")
    fill("kubepods/besteffort/pody/c2", 4.5, "14\n")
    fill("kubepods/podz/c3", 0, "15\n")
    alive = {"alive": True, "group": "batch"}
    assert sampler.read()["processes"] == {"nginx": dead, "ffmpeg": alive, "gone": alive}


def test_work_of_a_group_with_a_path(host):
    root, _fill = host
    work = {"batch": {"kind": "cpu_time", "group": "batch"}, "ours": {"kind": "cpu_time", "group": "load"}}
    found = sampled(root, group_paths={"batch": "kubepods/besteffort/pody/c2"}, work=work).read()["work"]
    assert found["batch"] == {"unit": "cpu_s", "done": 4.5}
    assert found["ours"]["done"] == 1.5


def test_a_process_without_a_place_and_a_path_that_leads_elsewhere_are_refused(host):
    root, _fill = host
    with pytest.raises(sample.SampleError, match="process web: has neither pid_file nor group_path"):
        sampled(root, processes={"web": {"group": "service"}})
    with pytest.raises(cgroup.CgroupError, match="not allowed"):
        sampled(root, group_paths={"service": "../x"})
    with pytest.raises(sample.SampleError, match="group_paths"):
        sampled(root, group_paths=["kubepods"])


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
