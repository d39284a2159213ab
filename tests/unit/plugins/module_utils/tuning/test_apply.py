# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Carrying out on a made-up host: order, journal, read-back, faults in the middle, undo to an equal tree."""

from __future__ import annotations

import errno
import os

import pytest

from ansible_collections.colocation.testbed.plugins.module_utils import commands, files, own_changes, undo
from ansible_collections.colocation.testbed.plugins.module_utils.tuning import apply, plan, report, settings
from ansible_collections.colocation.testbed.plugins.module_utils.tuning.settings import TuningError

CPU = "devices/system/cpu"
BATCH = (
    {"kind": "governor", "value": "performance"},
    {"kind": "energy_preference", "value": "performance"},
    {"kind": "idle_states", "value": 2},
    {"kind": "thp", "name": "enabled", "value": "madvise"},
    {"kind": "irq_affinity", "name": "*", "value": "0"},
    {"kind": "rps", "name": "eth0", "value": "1"},
    {"kind": "sysctl", "name": "net.ipv4.tcp_rmem", "value": "4096 87380 100000"},
    {"kind": "sysctl", "name": "vm.dirty_bytes", "value": 1048576},
)


def tune(tools, *raw, persist=False, on_missing="fail"):
    """Plan and carry out; returns the plan and what devices refused."""
    given, problems = settings.parse(list(raw), persist, on_missing)
    wanted = plan.plan(given, problems, tools.roots, own_changes.written(tools.book))
    return wanted, apply.apply(wanted, tools) if wanted.changed else {}


def take_back(tools, run=commands.run):
    handlers = undo.Undo(proc_root=tools.roots.proc, netns_root=tools.roots.netns, run=run).handlers()
    return own_changes.undo(tools.book, apply.BY, handlers)


@pytest.fixture
def kernel(monkeypatch):
    """Let chosen files refuse writes: {end of the path: errno}."""
    refusals: dict[str, int] = {}
    real = files.write_kernel

    def write(path, text):
        for end, number in refusals.items():
            if path.endswith(end):
                cause = OSError(number, os.strerror(number), path)
                raise files.FilesError(f"{path}: the kernel refused {text!r}") from cause
        real(path, text)

    monkeypatch.setattr(files, "write_kernel", write)
    return refusals


def test_a_batch_once_and_no_second_time_and_back(host, tools):
    before = host.everything()
    wanted, refused = tune(tools, *BATCH)
    assert refused == {}
    assert host.sys(f"{CPU}/cpufreq/policy1/scaling_governor") == "performance"
    assert host.sys(f"{CPU}/cpu1/cpuidle/state3/disable") == "1"
    assert host.sys("class/net/eth0/queues/rx-1/rps_cpus") == "2"
    live = apply.verify(wanted, tools)
    rows = [report.row(row, live, {}) for row in wanted.rows]
    assert {row["result"] for row in rows} == {"changed", "same"}
    assert all(row["live"]["after"] == row["live"]["wanted"] for row in rows)
    assert report.predicted(wanted) == live
    assert not tune(tools, *BATCH)[0].changed
    take_back(tools)
    # A plain file keeps what was written where the kernel shows all choices again.
    assert host.sys("kernel/mm/transparent_hugepage/enabled") == "always"
    host.put(f"{host.roots.sys}/kernel/mm/transparent_hugepage/enabled", "[always] madvise never\n")
    # The kernel zeroes one of a pair when the other is set; here that is not done, so only the pair's first is equal.
    assert host.proc("sys/vm/dirty_ratio") == "20"
    host.put(f"{host.roots.proc}/sys/vm/dirty_bytes", "0\n")
    assert {key: text.strip() for key, text in host.everything().items()} == {
        key: text.strip() for key, text in before.items()
    }
    assert [entry.by for entry in tools.book.entries()] == ["journal"]


def test_undo_goes_in_the_order_of_setting(tools):
    tune(tools, *BATCH[:2])
    order = [os.path.basename(item.entry.target) for item in take_back(tools)]
    assert order == ["scaling_governor"] * 2 + ["energy_performance_preference"] * 2


@pytest.mark.parametrize(
    ("number", "words"),
    [
        (errno.EINVAL, "the kernel does not accept this value"),
        (errno.EROFS, "it is mounted read-only"),
        (errno.EACCES, "run as root"),
        (errno.EBUSY, "another setting or an offline CPU is in its way"),
        (errno.ENODEV, "the CPU or device is gone"),
        (errno.EIO, "the device refuses it"),
        (errno.EXDEV, "see the kernel log"),
    ],
)
def test_a_refusal_in_the_middle_takes_the_batch_back(host, tools, kernel, number, words):
    before = host.everything()
    kernel["rx-0/rps_cpus"] = number
    # The file that refused is written only when its text changed, so taking back does not meet the refusal again.
    with pytest.raises(TuningError) as caught:
        tune(tools, *BATCH, persist=True)
    assert words in str(caught.value)
    assert "rx-0/rps_cpus: writing '2' failed" in str(caught.value)
    assert str(caught.value).endswith("what came before it was taken back")
    host.put(f"{host.roots.sys}/kernel/mm/transparent_hugepage/enabled", "[always] madvise never\n")
    assert {key: text.strip() for key, text in host.everything().items()} == {
        key: text.strip() for key, text in before.items()
    }
    assert [entry.by for entry in tools.book.entries()] == ["journal"]


@pytest.mark.parametrize("number", [errno.EIO, errno.EPERM])
def test_an_interrupt_that_refuses_is_kept(host, tools, kernel, number):
    kernel["irq/25/smp_affinity_list"] = number
    wanted, refused = tune(tools, {"kind": "irq_affinity", "name": "*", "value": "0"})
    assert list(refused) == [f"{host.roots.proc}/irq/25/smp_affinity_list"]
    rows = {
        row["path"][-20:-18]: row for row in (report.row(r, apply.verify(wanted, tools), refused) for r in wanted.rows)
    }
    assert {key: row["result"] for key, row in rows.items()} == {"24": "changed", "25": "refused", "26": "changed"}
    assert "the kernel" in rows["25"]["reason"]
    assert rows["25"]["live"] == {"wanted": "0", "before": "0-1", "after": "0-1"}
    assert refused.keys().isdisjoint(entry.target for entry in tools.book.entries())
    assert host.proc("irq/24/smp_affinity_list") == "0"


def test_another_refusal_of_an_interrupt_is_a_failure(tools, kernel):
    kernel["irq/25/smp_affinity_list"] = errno.EINVAL
    with pytest.raises(TuningError, match="irq/25/smp_affinity_list: writing '0' failed"):
        tune(tools, {"kind": "irq_affinity", "name": "*", "value": "0"})


def test_a_cpu_that_goes_offline_between_plan_and_write(host, tools):
    given, problems = settings.parse([{"kind": "governor", "value": "performance"}], False, "fail")
    wanted = plan.plan(given, problems, host.roots, {})
    os.rename(f"{host.roots.sys}/{CPU}/cpufreq/policy1", f"{host.roots.sys}/{CPU}/offline")
    with pytest.raises(TuningError, match="its CPU or device was taken away meanwhile; run again"):
        apply.apply(wanted, tools)
    assert host.sys(f"{CPU}/cpufreq/policy0/scaling_governor") == "powersave"


def test_undo_of_a_cpu_that_is_gone(host, tools):
    tune(tools, {"kind": "governor", "value": "performance"})
    os.rename(f"{host.roots.sys}/{CPU}/cpufreq/policy1", f"{host.roots.sys}/{CPU}/offline")
    assert any("is gone, with its value" in item.outcome.text for item in take_back(tools))
    assert host.sys(f"{CPU}/cpufreq/policy0/scaling_governor") == "powersave"


def test_a_value_that_the_kernel_rounds_is_not_taken_for_set(host, tools, monkeypatch):
    real = files.write_kernel
    monkeypatch.setattr(files, "write_kernel", lambda path, text: real(path, "67584" if text == "70000" else text))
    with pytest.raises(TuningError, match="wrote '70000', read '67584'; the kernel did not take the value"):
        tune(tools, {"kind": "sysctl", "name": "vm.min_free_kbytes", "value": 70000})


def test_a_later_value_that_spoils_an_earlier_one(host, tools, monkeypatch):
    real = files.write_kernel

    def write(path, text):
        real(path, text)
        if path.endswith("min_free_kbytes"):
            real(path.replace("min_free_kbytes", "swappiness"), "61")

    monkeypatch.setattr(files, "write_kernel", write)
    spoiled = [{"kind": "sysctl", "name": f"vm.{name}", "value": 5} for name in ("swappiness", "min_free_kbytes")]
    with pytest.raises(TuningError, match="vm/swappiness: wrote '5', read '61' when all values were written"):
        tune(tools, *spoiled)


def test_what_cannot_be_taken_back_stays_in_the_journal(host, tools, kernel):
    given, problems = settings.parse([BATCH[7], {"kind": "numa_balancing", "value": 0}], False, "fail")
    wanted = plan.plan(given, problems, host.roots, {})
    kernel.update({"sys/kernel/numa_balancing": errno.EINVAL, "sys/vm/dirty_ratio": errno.EACCES})
    with pytest.raises(TuningError, match=r"could not be taken back: .*dirty_ratio.*; run reset"):
        apply.apply(wanted, tools)
    assert f"{host.roots.proc}/sys/vm/dirty_ratio" in {entry.target for entry in tools.book.entries()}


class Swapper:
    """swapon and swapoff on the made-up /proc/swaps."""

    def __init__(self, host, fail=""):
        self.host = host
        self.fail = fail
        self.calls = []

    def __call__(self, argv, **_options):
        self.calls.append(list(argv))
        if self.fail and self.fail in argv[-1] and argv[0] == "swapoff":
            raise commands.CommandError("swapoff: ended with status 255: Cannot allocate memory")
        path = argv[-1].replace(" ", "\\040")
        lines = self.host.proc("swaps").splitlines()
        left = [line for line in lines if not line.startswith(path)]
        if argv[0] == "swapon":
            priority = argv[argv.index("-p") + 1] if "-p" in argv else str(-len(left) - 1)
            left.append(f"{path} file 1024 0 {priority}")
        self.host.put(f"{self.host.roots.proc}/swaps", "\n".join(left) + "\n")
        return commands.Result(tuple(argv), 0, "", "")


def test_swap_off_and_on_again_in_the_old_order(host, tools, monkeypatch):
    swapper = Swapper(host)
    tools = apply.Tools(tools.roots, tools.book, swapper)
    wanted, _refused = tune(tools, {"kind": "swap", "name": "all", "value": "disabled"})
    assert apply.verify(wanted, tools) == {"/dev/vdb": "disabled", "/swap file": "disabled"}
    assert [entry.kind for entry in tools.book.entries() if entry.by == apply.BY] == ["swap", "swap"]
    monkeypatch.setattr(os.path, "exists", lambda path: True)
    take_back(tools, swapper)
    assert swapper.calls[2:] == [["swapon", "/dev/vdb"], ["swapon", "/swap file"]]
    assert [line.split()[-1] for line in host.proc("swaps").splitlines()[1:]] == ["-2", "-3"]


def test_swap_that_is_gone_needs_no_undo(host, tools):
    tools = apply.Tools(tools.roots, tools.book, Swapper(host))
    tune(tools, {"kind": "swap", "name": "/swap file", "value": "disabled"})
    assert [item.outcome.text for item in take_back(tools)] == ["swap /swap file: is gone"]


def test_swap_that_fails_in_the_middle(host, tools):
    swapper = Swapper(host, fail="/swap file")
    tools = apply.Tools(tools.roots, tools.book, swapper)
    with pytest.raises(TuningError, match="Cannot allocate memory; what came before it was taken back"):
        tune(tools, {"kind": "swap", "name": "all", "value": "disabled"}, {"kind": "numa_balancing", "value": 0})
    assert [call[0] for call in swapper.calls] == ["swapoff", "swapoff", "swapon"]
    assert host.proc("sys/kernel/numa_balancing") == "1"
    assert [entry.by for entry in tools.book.entries()] == ["journal"]


def test_a_value_that_others_changed_since_is_put_back_and_said(host, tools):
    tune(tools, {"kind": "thp", "name": "enabled", "value": "never"})
    host.put(f"{host.roots.sys}/kernel/mm/transparent_hugepage/enabled", "always [madvise] never\n")
    (item,) = take_back(tools)
    assert "although someone else had set it to always [madvise] never" in item.outcome.text


def test_a_batch_that_fails_leaves_the_notes_of_an_earlier_one(host, tools, kernel):
    tune(tools, {"kind": "sysctl", "name": "vm.swappiness", "value": 10}, persist=True)
    before = tools.book.entries()
    kernel["sys/kernel/numa_balancing"] = errno.EINVAL
    later = [{"kind": "sysctl", "name": "vm.swappiness", "value": 20}, {"kind": "numa_balancing", "value": 0}]
    with pytest.raises(TuningError):
        tune(tools, *later, persist=True)
    assert tools.book.entries() == before
    assert host.proc("sys/vm/swappiness") == "10"
    assert tune(tools, later[0], persist=True)[0].warnings == ()
