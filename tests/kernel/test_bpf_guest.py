"""In a guest with another kernel (6.1, no JIT compiler, no type information): the suite, and pacing by sch_fq."""

from __future__ import annotations

import json
import re
import shutil
import sys
from pathlib import Path

import pytest
from tooling import ROOT, passed_tests

from tests.support import uml

SUITE = ("test_bpf_pace.py", "test_bpf_classify.py", "test_bpf_waterline.py", "test_bpf_planes.py")
MODULES = ("veth", "sch_ingress", "cls_bpf", "sch_fq", "ifb", "act_mirred")
TRAFFIC = ("test_bandwidth_traffic.py", "test_bandwidth_ingress.py")
TRAFFIC_MODULES = (*MODULES, "sch_htb", "crc-ccitt", "ipv6", "llc", "stp", "bridge", "garp", "mrp", "8021q")
# Mbit/s, accounting, flows, seconds, hook. On a quiet machine it is more exact than what can be asserted anywhere.
CASES = (
    (50, "payload", 16, 5, "egress"),
    (200, "payload", 16, 5, "egress"),
    (50, "wire", 16, 5, "egress"),
    (50, "payload", 16, 5, "ingress"),
    (100, "wire", 1, 5, "ingress"),
)


def test_suite_passes_on_another_kernel(tmp_path: Path) -> None:
    files = " ".join(str(ROOT / "tests" / "kernel" / name) for name in SUITE)
    options = f"-q --color=no -p no:cacheprovider --basetemp={tmp_path}/inside"
    shown = uml.run(tmp_path, f"cd {ROOT} && {sys.executable} -m pytest {options} {files}\n", timeout_s=900)
    assert not re.search(r"\d+ (failed|error)", shown), shown[-6000:]
    assert passed_tests(shown) > 150, shown[-6000:]


def test_paths_of_real_packets_on_another_kernel(tmp_path: Path) -> None:
    """VLAN devices above all, which the machine's own kernel may lack; and departure times on what arrives."""
    chosen = "tagged or behind or one_host or waits or known_by_its_sockets"
    files = " ".join(str(ROOT / "tests" / "kernel" / name) for name in TRAFFIC)
    options = f"-q --color=no -p no:cacheprovider --basetemp={tmp_path}/inside -k '{chosen}'"
    script = f"cd {ROOT} && {sys.executable} -m pytest {options} {files}\n"
    shown = uml.run(tmp_path, script, TRAFFIC_MODULES, timeout_s=900)
    assert not re.search(r"\d+ (failed|error|skipped)", shown), shown[-6000:]
    assert passed_tests(shown) == 9, shown[-6000:]


def test_departure_times_give_the_rate_that_was_asked(tmp_path: Path) -> None:
    if shutil.which("iperf3") is None:
        pytest.skip("needs iperf3")
    paths = f"PYTHONPATH={ROOT}/collections:{ROOT}:{ROOT}/tests/lib"
    script = f"cd {ROOT} && {paths} {sys.executable} tests/support/edt_in_guest.py {tmp_path} '{json.dumps(CASES)}'\n"
    shown = uml.run(tmp_path, script, MODULES, timeout_s=300)
    found = [json.loads(line.split(" ", 1)[1]) for line in shown.splitlines() if line.startswith("measured ")]
    assert len(found) == len(CASES), shown[-4000:]
    for item in found:
        ideal = item["mbit"] * (1448 / 1514 if item["accounting"] == "wire" else 1)
        assert item["arrived_mbit"] == pytest.approx(ideal, rel=0.04), item
