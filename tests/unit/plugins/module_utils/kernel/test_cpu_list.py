"""CPU lists: what the kernel prints is read, what it would refuse is refused with a sentence."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.colocation.testbed.plugins.module_utils.kernel import cpu_list


@given(st.sets(st.integers(0, 4095)))
def test_what_is_rendered_is_read_back(cpus):
    assert cpu_list.parse(cpu_list.render(cpus)) == cpus


@pytest.mark.parametrize(
    ("text", "cpus"),
    [("", set()), ("\n", set()), ("0", {0}), ("0-3,8\n", {0, 1, 2, 3, 8}), (" 1 , 3-3 ", {1, 3}), ("0,0-1", {0, 1})],
)
def test_reads_lists(text, cpus):
    assert cpu_list.parse(text) == cpus


@pytest.mark.parametrize("text", ["a", "0-", "-1", "3-1", "0,,1", "0x1", "0 1", "1.5"])
def test_refuses_what_is_no_list(text):
    with pytest.raises(cpu_list.CpuListError, match="CPU list"):
        cpu_list.parse(text)


@given(st.text())
def test_any_text_is_read_or_refused(text):
    try:
        cpus = cpu_list.parse(text)
    except cpu_list.CpuListError:
        return
    assert all(cpu >= 0 for cpu in cpus)


def test_renders_shortest_form():
    assert cpu_list.render([3, 1, 0, 2, 8]) == "0-3,8"


@pytest.fixture
def sys_root(tmp_path):
    path = tmp_path / "devices/system/cpu/online"
    path.parent.mkdir(parents=True)
    path.write_text("0-1\n")
    return str(tmp_path)


def test_names_the_cpus_that_are_missing(sys_root):
    assert cpu_list.require_online("0-1", "node_cpus", sys_root) == {0, 1}
    with pytest.raises(cpu_list.CpuListError) as caught:
        cpu_list.require_online("1-3", "node_cpus of host a", sys_root)
    assert str(caught.value) == (
        "node_cpus of host a: CPU 2-3 asked for, but this machine has 0-1 online; choose among these"
    )


def test_unreadable_sys_is_named(tmp_path):
    with pytest.raises(cpu_list.CpuListError, match="is /sys mounted"):
        cpu_list.online(str(tmp_path))
