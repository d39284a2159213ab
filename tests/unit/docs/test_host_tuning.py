# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The examples in docs/host-tuning.md work as written, and its table of the profile is the profile."""

from __future__ import annotations

import re
from typing import Any

import yaml
from tooling import ROOT

from ansible_collections.colocation.testbed.plugins.module_utils import commands, journal, own_changes, undo
from ansible_collections.colocation.testbed.plugins.module_utils.tuning import apply, plan, settings
from ansible_collections.colocation.testbed.plugins.plugin_utils import tuning_profiles
from tests.support.fake_grub import Machine
from tests.support.fake_host import FakeHost

TEXT = (ROOT / "docs/host-tuning.md").read_text(encoding="utf-8")
BLOCKS: list[Any] = [yaml.safe_load(block) for block in re.findall(r"```yaml\n(.*?)```", TEXT, re.DOTALL)]
EVERY_KIND = next(block for block in BLOCKS if isinstance(block, list) and "kind" in block[0])
ARGUMENTS = next(block for block in BLOCKS if isinstance(block, dict))["host_tuning_kernel_arguments"]


def test_every_kind_has_an_example_that_applies_and_is_undone(tmp_path):
    assert {item["kind"] for item in EVERY_KIND} == set(settings.KINDS)
    host = FakeHost(tmp_path)
    calls = []

    def run(argv, **_options):
        calls.append(argv)
        host.put(f"{host.roots.proc}/swaps", "Filename Type Size Used Priority\n")
        return commands.Result(tuple(argv), 0, "", "")

    # Both areas vanish with the first call here, which the second would report.
    host.put(f"{host.roots.proc}/swaps", "Filename Type Size Used Priority\n/dev/vdb partition 1024 0 -2\n")
    tools = apply.Tools(host.roots, journal.Journal(str(tmp_path / "state/journal.json")), run)
    given, problems = settings.parse(EVERY_KIND, False, "fail")
    wanted = plan.plan(given, problems, host.roots, {})
    assert apply.apply(wanted, tools) == {}
    assert calls == [["swapoff", "/dev/vdb"]]
    assert host.proc("irq/26/smp_affinity_list") == "0"
    assert not plan.plan(given, problems, host.roots, own_changes.written(tools.book)).changed
    own_changes.undo(tools.book, apply.BY, undo.Undo(proc_root=host.roots.proc, run=run).handlers())
    assert host.proc("irq/26/smp_affinity_list") == "1"
    assert [entry.by for entry in tools.book.entries()] == ["journal"]


def test_the_kernel_arguments_of_the_example(tmp_path):
    machine = Machine(tmp_path)
    assert machine.apply(*ARGUMENTS).reboot is True
    machine.boot()
    assert machine.plan(*ARGUMENTS).reboot is False


def test_the_table_of_the_profile_has_its_rows():
    profile = tuning_profiles.load(ROOT, "latency")
    for item in (*profile.settings, *profile.interrupts):
        label = " ".join(filter(None, (item["kind"], item.get("name"))))
        assert re.search(rf"^\| `{re.escape(label)}`.*\| {re.escape(item['why'])} \|$", TEXT, re.MULTILINE), label


def test_every_kind_has_a_row():
    rows = "".join(re.findall(r"^\| (`[a-z_`, ]+) \|", TEXT, re.MULTILINE))
    assert {kind for kind in settings.KINDS if f"`{kind}`" not in rows} == set()
