"""CPU lists: what this machine lacks, or cannot be read, is refused with a sentence that names whose list it is."""

from __future__ import annotations

import pytest

from ansible_collections.colocation.testbed.plugins.module_utils.kernel import cpu_list


@pytest.fixture
def sys_root(tmp_path):
    path = tmp_path / "devices/system/cpu/online"
    path.parent.mkdir(parents=True)
    path.write_text("0-1\n")
    return str(tmp_path)


@pytest.mark.parametrize(("text", "cpus"), [("", set()), ("0", {0}), ("0-1", {0, 1}), ("1,0", {0, 1})])
def test_cpus_that_are_there(sys_root, text, cpus):
    assert cpu_list.require_online(text, "node_cpus", sys_root) == cpus


def test_names_the_cpus_that_are_missing(sys_root):
    with pytest.raises(cpu_list.CpuListError) as caught:
        cpu_list.require_online("1-3", "node_cpus of host a", sys_root)
    assert str(caught.value) == (
        "node_cpus of host a: CPU 2-3 asked for, but this machine has 0-1 online; choose among these"
    )


@pytest.mark.parametrize("text", ["a", "0-", "3-1", "0,,1", "0x1"])
def test_refuses_what_is_no_list(sys_root, text):
    with pytest.raises(cpu_list.CpuListError, match=r"^node_cpus: .*write"):
        cpu_list.require_online(text, "node_cpus", sys_root)


def test_unreadable_sys_is_named(tmp_path):
    with pytest.raises(cpu_list.CpuListError, match="is /sys mounted"):
        cpu_list.online(str(tmp_path))
