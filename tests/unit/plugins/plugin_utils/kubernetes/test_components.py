"""Components as data become processes; the groups of programs that the collection has are sound."""

from __future__ import annotations

from pathlib import Path

import pytest

from ansible_collections.colocation.testbed.plugins.module_utils.kubernetes import go_groups
from ansible_collections.colocation.testbed.plugins.plugin_utils.kubernetes import components, go_pins

NAMES = ["etcd", "kubernetes", "containerd", "crictl", "helm", "koordinator"]


def test_flags() -> None:
    flags = {"a": True, "b": None, "c": ["x", "y"], "d": 5, "e": "", "f": {}, "g": {"y": "2", "x": "1"}}
    assert components.flag_words(flags) == ["--a=true", "--c=x,y", "--d=5", "--e=", "--g=x=1,y=2"]


def test_a_component_becomes_a_process() -> None:
    wanted = {
        "etcd": {"flags": {"name": "x"}, "cpus": "", "ready": {"tcp_port": 1}, "env": {"A": "b"}},
        "gone": None,
        "registry": {"program": "/usr/bin/docker-registry", "arguments": ["serve"]},
    }
    assert components.processes(wanted, "/bin", ["nsenter"], "sim-") == [  # type: ignore[arg-type]
        {
            "name": "sim-etcd",
            "argv": ["nsenter", "/bin/etcd", "--name=x"],
            "ready": {"tcp_port": 1},
            "env": {"A": "b"},
        },
        {"name": "sim-registry", "argv": ["nsenter", "/usr/bin/docker-registry", "serve"]},
    ]


def test_changes_are_laid_over_and_null_leaves_out() -> None:
    wanted = {"etcd": {"flags": {"name": "x", "v": 2}}, "kube-proxy": {"flags": {}}}
    changes = {"etcd": {"flags": {"v": None, "w": 1}}, "kube-proxy": None, "more": {"program": "/m"}}
    assert [item["argv"] for item in components.processes(wanted, "/bin", changes=changes)] == [
        ["/bin/etcd", "--name=x", "--w=1"],
        ["/m"],
    ]
    assert wanted["etcd"] == {"flags": {"name": "x", "v": 2}}


def test_the_last_component_is_stopped_first() -> None:
    stopped = components.processes({"etcd": {}, "kube-apiserver": {}}, "/bin", state="absent")
    assert [(item["name"], item["state"]) for item in stopped] == [("kube-apiserver", "absent"), ("etcd", "absent")]


def test_an_unknown_key_is_named() -> None:
    with pytest.raises(components.ComponentError, match="component etcd: flag is unknown; use one of arguments, "):
        components.processes({"etcd": {"flag": {}}}, "")


def test_every_group_is_complete_and_no_program_is_twice_there() -> None:
    groups = go_groups.parse(go_pins.load(NAMES))
    assert [group.name for group in groups] == NAMES
    for group in groups:
        assert all(
            f"\ntool {program.package}\n" in group.go_mod or program.package in group.go_mod
            for program in group.programs.values()
        )
        assert group.go_sum.count("h1:") > 20


def test_an_unknown_group_is_named(tmp_path: Path) -> None:
    with pytest.raises(go_pins.GoPinsError, match="groups of programs: kube unknown; choose of containerd, crictl"):
        go_pins.load(["kube"])
    with pytest.raises(go_pins.GoPinsError, match="restore the collection's files/kubernetes"):
        go_pins.load(["etcd"], tmp_path)
