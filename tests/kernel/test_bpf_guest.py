"""In a guest with another kernel (6.1, no JIT compiler, no type information): the suite, and pacing by sch_fq."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import bounds
import pytest
from tooling import ROOT, passed_tests

from tools.bandwidth import accuracy, boot, guest

SUITE = ("test_bpf_pace.py", "test_bpf_classify.py", "test_bpf_waterline.py", "test_bpf_planes.py")
TRAFFIC = ("test_bandwidth_traffic.py", "test_bandwidth_ingress.py")
BRIDGE_AND_VLAN = ("crc-ccitt", "ipv6", "llc", "stp", "bridge", "garp", "mrp", "8021q")

pytestmark = pytest.mark.skipif(not guest.is_there(), reason="needs linux.uml (Debian package user-mode-linux)")


def test_suite_passes_on_another_kernel(tmp_path: Path) -> None:
    files = " ".join(str(ROOT / "tests" / "kernel" / name) for name in SUITE)
    options = f"-q --color=no -p no:cacheprovider --basetemp={tmp_path}/inside"
    shown = guest.run(tmp_path, f"cd {ROOT} && {sys.executable} -m pytest {options} {files}\n", timeout_s=900)
    assert not re.search(r"\d+ (failed|error)", shown), shown[-6000:]
    assert passed_tests(shown) > 150, shown[-6000:]


def test_paths_of_real_packets_on_another_kernel(tmp_path: Path) -> None:
    """VLAN devices above all, which the machine's own kernel may lack; and departure times on what arrives."""
    chosen = "tagged or behind or one_host or waits or known_by_its_sockets"
    files = " ".join(str(ROOT / "tests" / "kernel" / name) for name in TRAFFIC)
    options = f"-q --color=no -p no:cacheprovider --basetemp={tmp_path}/inside -k '{chosen}'"
    script = f"cd {ROOT} && {sys.executable} -m pytest {options} {files}\n"
    shown = guest.run(tmp_path, script, (*boot.MODULES, *BRIDGE_AND_VLAN), timeout_s=900)
    assert not re.search(r"\d+ (failed|error|skipped)", shown), shown[-6000:]
    assert passed_tests(shown) == 9, shown[-6000:]


@pytest.mark.parametrize(
    ("what", "mbits", "flows", "hook"),
    [
        ("payload", [50, 200], 16, "egress"),
        ("wire", [50], 16, "egress"),
        ("payload", [50], 16, "ingress"),
        ("wire", [100], 1, "ingress"),
    ],
)
def test_departure_times_give_the_rate_that_was_asked(what: str, mbits: list[int], flows: int, hook: str) -> None:
    """How exact it is on a quiet machine is what the benchmark tells."""
    wanted = {"plane": "edt", "accounting": what, "mbits": mbits, "flows": flows, "hook": hook}
    rows = boot.take("one_class", {**wanted, "repeats": 1, "seconds": 3, "seed": 1}, timeout_s=300).rows
    assert len(rows) == len(mbits)
    for row in rows:
        assert bounds.kept(row["arrived_bit"], accuracy.ideal_bit(row["mbit"], what), above=1.04), row
