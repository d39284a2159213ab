"""Take a part of the benchmark in a guest, whose kernel has sch_fq, and tell what CPU time the guest used."""

from __future__ import annotations

import contextlib
import json
import os
import sys
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ansible_collections.colocation.testbed.plugins.module_utils.kernel import cgroup
from ansible_collections.colocation.testbed.plugins.module_utils.kernel.group_counters import GroupReader
from tools.bandwidth import guest, inside

ROOT = Path(__file__).resolve().parents[2]
MODULES = ("veth", "sch_ingress", "cls_bpf", "sch_fq", "sch_htb", "sch_tbf", "ifb", "act_mirred")


@dataclass(frozen=True)
class Found:
    """What a part found, the guest's kernel, and the CPU seconds of the guest at each mark that it printed."""

    rows: Any
    kernel: str
    cpu_s: list[float]


@contextlib.contextmanager
def cpu_group() -> Iterator[tuple[cgroup.Layout, str]]:
    """Make a control group in which CPU time is counted, and remove it afterwards. Raises CgroupError."""
    layout, name = cgroup.detect(), f"colocation-testbed-bench-{os.getpid()}"
    directories = {layout.path(controller, name) for controller in ("cpu", "cpuacct") if layout.find(controller)}
    made = []
    try:
        for directory in directories:
            os.mkdir(directory)
            made.append(directory)
        yield layout, name
    finally:
        for directory in made:
            os.rmdir(directory)


def take(part: str, options: Mapping[str, Any], timeout_s: float) -> Found:
    """Take a part in a guest. Raises GuestError with what its console showed."""
    with tempfile.TemporaryDirectory(prefix="colocation-bench-") as name, cpu_group() as (layout, group):
        directory = Path(name)
        (directory / inside.ORDERS).write_text(json.dumps({"part": part, "options": options}), encoding="utf-8")
        reader, cpu_s = GroupReader(layout, group), list[float]()

        def watch(line: str) -> None:
            if line.startswith(f"{inside.MARK} "):
                cpu_s.append(float(reader.read()["cpu_s"] or 0.0))

        def join() -> None:
            for controller in ("cpu", "cpuacct"):
                if layout.find(controller):
                    Path(layout.path(controller, group), "cgroup.procs").write_text(str(os.getpid()), encoding="ascii")

        paths = f"PYTHONPATH={ROOT / 'collections'}:{ROOT} PYTHONDONTWRITEBYTECODE=1"
        program = f"{paths} {sys.executable} -m tools.bandwidth.inside {directory}"
        script = f"uname -r > {directory}/kernel\ncd {ROOT} && {program}\n"
        shown = guest.run(directory, script, MODULES, timeout_s, watch, join)
        found = directory / inside.FOUND
        if not found.exists():
            raise guest.GuestError(f"part {part} failed in the guest: {shown[-4000:]}")
        kernel = (directory / "kernel").read_text(encoding="ascii").strip()
        return Found(json.loads(found.read_text(encoding="utf-8")), kernel, cpu_s)
