"""The stand-in for resctrl follows the kernel's rules: answers, error numbers, texts of last_cmd_status."""

from __future__ import annotations

import errno

import pytest

from tests.support.resctrl_machine import Machine, Tasks, format_list, format_mask, parse_list, parse_mask
from tests.support.resctrl_rules import RefusedError, Resctrl
from tests.support.resctrl_tree import Tree

ALIVE = {100: 1, 101: 1, 200: 2}


def tree(**machine) -> Tree:
    alive = machine.pop("alive", ALIVE)
    tasks = Tasks(lambda: list(alive), alive.get)
    return Tree(Resctrl(Machine(tasks=tasks, cpus=frozenset(range(4)), **machine)))


def refused(number: int, call, *arguments) -> None:
    with pytest.raises(RefusedError) as caught:
        call(*arguments)
    assert errno.errorcode[caught.value.errno] == errno.errorcode[number]


def write(made: Tree, path: str, text: str) -> None:
    made.write(path, text.encode(), 100)


def read(made: Tree, path: str) -> str:
    return made.read(path).decode()


def test_a_fresh_mount() -> None:
    made = tree(l2_ways=8, cache_ids=(0, 2))
    assert read(made, "/schemata") == "L3:0=7ff;2=7ff\nL2:0=ff;2=ff\nMB:0=100;2=100\n"
    assert read(made, "/cpus") == "f\n"
    assert read(made, "/cpus_list") == "0-3\n"
    assert read(made, "/tasks") == "100\n101\n200\n"
    assert read(made, "/info/last_cmd_status") == "ok\n"
    assert read(made, "/info/L3/bit_usage") == "0=SSSSSSSSSSS;2=SSSSSSSSSSS\n"
    assert set(made.list("/info")) == {"last_cmd_status", "L3", "L2", "MB", "L3_MON"}
    assert made.list("/mon_data") == ["mon_L3_00", "mon_L3_02"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("L3:0=f", ""),
        ("L3\n", "Missing ':'"),
        ("L3:\n", "Missing 'L3' value"),
        ("L9:0=f\n", "Unknown or unsupported resource name 'L9'"),
        ("L3:0\n", "Missing '=' or non-numeric domain"),
        ("L3:x=f\n", "Missing '=' or non-numeric domain"),
        ("L3:7=f\n", ""),
        ("L3:0=g\n", "Non-hex character in the mask g"),
        ("L3:0=0\n", "Mask out of range"),
        ("L3:0=800\n", "Mask out of range"),
        ("L3:0=505\n", "The mask 505 has non-consecutive 1-bits"),
        ("L3:0=1\n", "Need at least 2 bits in the mask"),
        ("L3:0=3;0=3\n", "Duplicate domain 0"),
        ("MB:0=5\n", "MB value 5 out of range [10,100]"),
        ("MB:0=110\n", "MB value 110 out of range [10,100]"),
        ("MB:0=x\n", "Invalid MB value x"),
        ("L3:0=f\nMB:0=5\n", "MB value 5 out of range [10,100]"),
    ],
)
def test_refused_schemata_change_nothing(text: str, said: str) -> None:
    made = tree(min_cbm_bits=2)
    before = read(made, "/schemata")
    refused(errno.EINVAL, write, made, "/schemata", text)
    assert read(made, "/schemata") == before
    assert read(made, "/info/last_cmd_status") == (f"{said}\n" if said else "ok\n")


def test_bandwidth_is_rounded_up_to_the_steps() -> None:
    made = tree()
    write(made, "/schemata", "MB:0=11\n")
    assert read(made, "/schemata") == " L3:0=7ff\nMB:0=20\n".lstrip()
    made = tree(absolute_bandwidth=True)
    write(made, "/schemata", "MB:0=81\n")
    assert "MB:0=81\n" in read(made, "/schemata")
    made = tree(mba_mbps=True)
    assert "MB:0=4294967295\n" in read(made, "/schemata")
    write(made, "/schemata", "MB:0=7\n")
    assert "MB:0=7\n" in read(made, "/schemata")


def test_code_and_data_apart_halve_the_groups() -> None:
    made = tree(cdp=True, num_closids=4)
    assert read(made, "/schemata") == "L3CODE:0=7ff\nL3DATA:0=7ff\n    MB:0=100\n"
    made.mkdir("/a")
    refused(errno.ENOSPC, made.mkdir, "/b")
    assert read(made, "/info/last_cmd_status") == "Out of CLOSIDs\n"


def test_sparse_masks_where_the_hardware_takes_them() -> None:
    made = tree(sparse_masks=True)
    write(made, "/schemata", "L3:0=505\n")
    assert "L3:0=505\n" in read(made, "/schemata")


def test_groups_are_limited_by_the_smallest_resource_and_by_counters() -> None:
    made = tree(num_closids=16, mb_closids=3)
    made.mkdir("/a")
    made.mkdir("/b")
    refused(errno.ENOSPC, made.mkdir, "/c")
    made.rmdir("/a")
    made.mkdir("/c")
    made = tree(num_rmids=2)
    made.mkdir("/a")
    refused(errno.ENOSPC, made.mkdir, "/a/mon_groups/m")
    assert read(made, "/info/last_cmd_status") == "Out of RMIDs\n"


@pytest.mark.parametrize(
    ("path", "number"),
    [
        ("/info", errno.EEXIST),
        ("/mon_groups", errno.EEXIST),
        ("/schemata", errno.EEXIST),
        ("/a\nb", errno.EINVAL),
        ("/a/b", errno.EPERM),
        ("/info/a", errno.ENODEV),
        ("/mon_groups/mon_groups", errno.EPERM),
        ("/none/a", errno.ENOENT),
    ],
)
def test_where_groups_cannot_be_made(path: str, number: int) -> None:
    made = tree()
    made.mkdir("/a")
    refused(number, made.mkdir, path)


@pytest.mark.parametrize("path", ["/", "/info", "/info/L3", "/mon_groups", "/a/mon_groups", "/a/mon_data"])
def test_what_cannot_be_removed(path: str) -> None:
    made = tree()
    made.mkdir("/a")
    refused(errno.EPERM, made.rmdir, path)


def test_threads_move_one_at_a_time_and_go_back_to_the_root_group() -> None:
    made = tree()
    made.mkdir("/a")
    made.mkdir("/a/mon_groups/m")
    write(made, "/a/tasks", "101\n")
    write(made, "/a/tasks", "0")
    assert read(made, "/a/tasks") == "100\n101\n"
    assert read(made, "/tasks") == "200\n"
    refused(errno.EINVAL, write, made, "/a/tasks", "100 101")
    refused(errno.EINVAL, write, made, "/a/tasks", "-1")
    refused(errno.ESRCH, write, made, "/a/tasks", "999")
    assert read(made, "/info/last_cmd_status") == "No task 999\n"
    refused(errno.EINVAL, write, made, "/a/mon_groups/m/tasks", "200")
    assert read(made, "/info/last_cmd_status") == "Can't move task to different control group\n"
    write(made, "/a/mon_groups/m/tasks", "100")
    assert read(made, "/a/mon_groups/m/tasks") == "100\n"
    assert read(made, "/a/tasks") == "100\n101\n"
    write(made, "/a/tasks", "100")
    assert read(made, "/a/mon_groups/m/tasks") == ""
    made.rmdir("/a")
    assert read(made, "/tasks") == "100\n101\n200\n"


def test_a_later_thread_of_the_same_number_is_in_the_root_group() -> None:
    alive = dict(ALIVE)
    made = tree(alive=alive)
    made.mkdir("/a")
    write(made, "/a/tasks", "200")
    alive[200] = 3
    assert read(made, "/a/tasks") == ""
    assert "200\n" in read(made, "/tasks")


def test_cpus_are_in_one_group() -> None:
    made = tree()
    made.mkdir("/a")
    made.mkdir("/b")
    write(made, "/a/cpus_list", "1-2\n")
    write(made, "/b/cpus", "c\n")
    assert [read(made, f"{group}/cpus_list") for group in ("", "/a", "/b")] == ["0\n", "1\n", "2-3\n"]
    refused(errno.EINVAL, write, made, "/cpus_list", "1\n")
    assert read(made, "/info/last_cmd_status") == "Can't drop CPUs from default group\n"
    refused(errno.EINVAL, write, made, "/a/cpus_list", "9\n")
    assert read(made, "/info/last_cmd_status") == "Can only assign online CPUs\n"
    refused(errno.EINVAL, write, made, "/a/cpus_list", "x\n")
    assert read(made, "/info/last_cmd_status") == "Bad CPU list/mask\n"
    made.rmdir("/b")
    assert read(made, "/cpus_list") == "0,2-3\n"


def test_cpus_of_monitoring_groups_are_those_of_their_group() -> None:
    made = tree()
    made.mkdir("/a")
    made.mkdir("/a/mon_groups/m")
    refused(errno.EINVAL, write, made, "/a/mon_groups/m/cpus_list", "1\n")
    assert read(made, "/info/last_cmd_status") == "Can only add CPUs to mongroup that belong to parent\n"
    write(made, "/a/cpus_list", "1-2\n")
    write(made, "/a/mon_groups/m/cpus_list", "1\n")
    write(made, "/a/cpus_list", "1\n")
    assert read(made, "/a/mon_groups/m/cpus_list") == "\n"


def test_exclusive_groups() -> None:
    made = tree()
    made.mkdir("/a")
    refused(errno.EINVAL, write, made, "/a/mode", "exclusive\n")
    assert read(made, "/info/last_cmd_status") == "Schemata overlaps\n"
    write(made, "/schemata", "L3:0=7f0\n")
    write(made, "/a/schemata", "L3:0=f\n")
    write(made, "/a/mode", "exclusive\n")
    refused(errno.EINVAL, write, made, "/schemata", "L3:0=7f8\n")
    assert read(made, "/info/last_cmd_status") == "Overlaps with exclusive group\n"
    refused(errno.EINVAL, write, made, "/a/schemata", "L3:0=1f\n")
    assert read(made, "/info/last_cmd_status") == "Overlaps with other group\n"
    made.mkdir("/b")
    assert "L3:0=7f0\n" in read(made, "/b/schemata")
    assert read(made, "/info/L3/bit_usage") == "0=SSSSSSSEEEE\n"
    refused(errno.EINVAL, write, made, "/b/mode", "pseudo-locksetup\n")


def test_no_way_is_left_for_a_new_group() -> None:
    made = tree()
    write(made, "/schemata", "L3:0=1\n")
    made.mkdir("/a")
    write(made, "/a/schemata", "L3:0=7fe\n")
    write(made, "/a/mode", "exclusive\n")
    write(made, "/mode", "exclusive\n")
    refused(errno.ENOSPC, made.mkdir, "/b")
    assert read(made, "/info/last_cmd_status") == "No space on L3:0\n"


def test_shareable_bits_are_shown_and_forbid_exclusive_use() -> None:
    made = tree(shareable_bits=0x600)
    assert read(made, "/info/L3/bit_usage") == "0=XXSSSSSSSSS\n"
    write(made, "/schemata", "L3:0=1ff\n")
    assert read(made, "/info/L3/bit_usage") == "0=HHSSSSSSSSS\n"


def test_texts_of_cpus() -> None:
    assert format_mask(frozenset({0, 33}), 40) == "02,00000001"
    assert parse_mask("02,00000001\n") == {0, 33}
    assert format_list(parse_list("0-3,5\n")) == "0-3,5"
    assert parse_list("\n") == frozenset()
