"""The same suite in a guest with another kernel: 6.1, no JIT compiler, no type information, one CPU."""

from __future__ import annotations

import sys
from pathlib import Path

from tooling import ROOT, passed_tests

from tests.support import uml

SUITE = ("test_bpf_pace.py", "test_bpf_classify.py", "test_bpf_waterline.py", "test_bpf_planes.py")


def test_suite_passes_on_another_kernel(tmp_path: Path) -> None:
    files = " ".join(str(ROOT / "tests" / "kernel" / name) for name in SUITE)
    script = (
        f"cd {ROOT} && {sys.executable} -m pytest -q --color=no -p no:cacheprovider --basetemp={tmp_path}/inside {files}\n"
        "uname -r\n"
    )
    shown = uml.run(tmp_path, script, timeout_s=900)
    assert " failed" not in shown, shown[-6000:]
    assert " error" not in shown, shown[-6000:]
    assert passed_tests(shown) > 150, shown[-6000:]
