# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a host lacks for resctrl and why, and the counters of groups."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.colocation.testbed.plugins.module_utils.kernel import resctrl_facts
from tests.support.resctrl_dump import Dumped

CPUINFO = "processor\t: 0\nvendor_id\t: GenuineIntel\nflags\t\t: fpu {}\n\nprocessor\t: 1\nflags\t\t: none\n"


def host(
    tmp_path: Path, flags: str, offered: bool = True, cmdline: str = "quiet", config: str | None = None
) -> resctrl_facts.Host:
    proc = tmp_path / "proc"
    (proc / "sys/kernel").mkdir(parents=True, exist_ok=True)
    (proc / "cpuinfo").write_text(CPUINFO.format(flags))
    (proc / "filesystems").write_text("nodev\tproc\n\text4\n" + ("nodev\tresctrl\n" if offered else ""))
    (proc / "cmdline").write_text(f"{cmdline}\n")
    (proc / "sys/kernel/osrelease").write_text("6.1.0\n")
    if config is not None:
        (tmp_path / "config-6.1.0").write_text(config)
    return resctrl_facts.read_host(str(proc), str(tmp_path))


def whats(found: list[resctrl_facts.Missing]) -> list[str]:
    return [item.what for item in found]


def test_everything_is_there_but_the_mount(tmp_path: Path) -> None:
    made = host(tmp_path, "cat_l3 mba cdp_l3 sse", config="CONFIG_X86_CPU_RESCTRL=y\n", cmdline="rdt=l3cat,mba quiet")
    assert (made.vendor, made.flags, made.virtual) == ("GenuineIntel", ("cat_l3", "cdp_l3", "mba"), False)
    assert made.config is not None
    assert [name for name, on in made.config.items() if on] == ["CONFIG_X86_CPU_RESCTRL"]
    assert made.arguments == ("rdt=l3cat,mba",)
    assert whats(resctrl_facts.missing(made, None)) == ["mount"]


@pytest.mark.parametrize(
    ("more", "what", "words"),
    [
        ({"flags": "cat_l3"}, "CPU", "the CPU does not have the flags mba"),
        ({"flags": "hypervisor"}, "CPU", "this virtual machine's CPU does not have the flags cat_l3, mba"),
        ({"flags": "cat_l3 mba", "cmdline": "rdt=!mba"}, "kernel arguments", "rdt=!mba switches features off"),
        (
            {"flags": "cat_l3 mba", "offered": False, "config": "# CONFIG_X86_CPU_RESCTRL is not set\n"},
            "kernel",
            "CONFIG_X86_CPU_RESCTRL is not set",
        ),
        ({"flags": "cat_l3 mba", "offered": False}, "kernel", "the running kernel does not offer resctrl"),
    ],
)
def test_the_first_cause_comes_first(tmp_path: Path, more, what, words) -> None:
    found = resctrl_facts.missing(host(tmp_path, **more), None)
    assert found[0].what == what
    assert words in found[0].why
    assert found[0].advice
    lines = resctrl_facts.table(found)
    assert lines[0].split() == ["missing", "seen", "what", "to", "do"]
    assert len(lines) == len(found) + 1


def test_configuration_of_the_running_kernel(tmp_path: Path) -> None:
    proc = tmp_path / "proc"
    proc.mkdir()
    (proc / "config.gz").write_bytes(gzip.compress(b"CONFIG_X86_CPU_RESCTRL=y\n"))
    found = host(tmp_path, "mba").config
    assert found is not None
    assert [name for name, on in found.items() if on] == ["CONFIG_X86_CPU_RESCTRL"]
    (proc / "config.gz").write_bytes(b"damaged")
    assert host(tmp_path, "mba").config is None


def test_a_mounted_file_system_says_what_it_lacks(tmp_path: Path) -> None:
    made = host(tmp_path / "host", "")
    assert resctrl_facts.missing(made, Dumped(tmp_path / "a").state()) == []
    assert resctrl_facts.table([]) == []
    lacking = Dumped(tmp_path / "b", ways=0, bandwidth=False).state()
    assert whats(resctrl_facts.missing(made, lacking)) == ["L3", "MB"]
    lacking = Dumped(tmp_path / "c", monitoring=False, absolute_bandwidth=True).state()
    assert whats(resctrl_facts.missing(made, lacking)) == ["MB", "L3_MON"]


@given(st.text())
def test_any_cpuinfo_is_read_without_an_error(text: str) -> None:
    resctrl_facts.parse_cpuinfo(text)


def test_counters_that_the_kernel_does_not_have_now(tmp_path: Path) -> None:
    below = tmp_path / "mon_data/mon_L3_00"
    below.mkdir(parents=True)
    texts = {"llc_occupancy": "131072\n", "mbm_local_bytes": "Unavailable\n", "mbm_total_bytes": "Error\n"}
    for name, text in texts.items():
        (below / name).write_text(text)
    found = {"llc_occupancy": 131072, "mbm_local_bytes": None, "mbm_total_bytes": None}
    assert resctrl_facts.counters(str(tmp_path)) == {"mon_L3_00": found}
    assert resctrl_facts.counters(str(tmp_path / "none")) == {}
