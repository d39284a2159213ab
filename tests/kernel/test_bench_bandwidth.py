"""Parts of the bandwidth benchmark on this machine, as short as they can be: that they measure, and leave nothing."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import bounds
import pytest
from tooling import ROOT

from ansible_collections.colocation.testbed.plugins.module_utils import commands
from tools.bandwidth import cpu_cost, figures, inside, program_cost, single_packets

pytestmark = [pytest.mark.measures, pytest.mark.skipif(os.geteuid() != 0, reason="needs root")]
SMALL = {"name": "_512_b", "mbit": 20, "segment_bytes": 512, "flows": 2, "plane": "htb"}


def namespaces(pid: int) -> list[str]:
    shown = commands.run(["ip", "netns", "list"]).stdout.split("\n")
    return [line for line in shown if line.startswith(f"bench-{pid}-")]


@pytest.fixture(autouse=True)
def nothing_is_left() -> Iterator[None]:
    yield
    assert namespaces(os.getpid()) == []
    assert list(Path("/sys/fs/cgroup").glob(f"*/colocation-testbed-bench-{os.getpid()}")) == []


def test_many_classes_are_told_apart() -> None:
    options = {
        "plane": "htb",
        "accounting": "wire",
        "classes": 3,
        "mbit": 2,
        "repeats": 1,
        "seconds": 1.5,
        "settle_s": 0.5,
    }
    rows = inside.take("many_classes", options)
    assert [row["class"] for row in rows] == [0, 1, 2]
    for row in rows:
        assert bounds.kept(row["arrived_bit"], 2e6 * 1448 / 1514, above=1.25)


def test_bursts_are_seen_at_the_receiver_and_throttle_offline_traffic() -> None:
    rates = {"total": "400Mbit/s", "waterline": "50Mbit/s", "low": "40Mbit/s", "high": "200Mbit/s"}
    options = {"plane": "htb", "rates": rates, "online": "100Mbit/s", "count": 3, "seed": 1, "on_s": 0.2, "off_s": 0.3,
               "flows": 2}  # fmt: skip
    found = figures.switch(inside.take("bursts", options), options, "m", {})
    assert found["bursts"] == 3
    # How soon is what the benchmark tells; here only that it is before the next burst.
    assert found["detected"].value < 500
    assert found["settled"].value < 500


def test_cpu_time_is_read_for_every_variant() -> None:
    rows = inside.take("cpu", {"loads": [SMALL], "blocks": 2, "window_s": 0.3, "seed": 1})
    assert sorted(row["variant"] for row in rows) == sorted([*cpu_cost.VARIANTS, *cpu_cost.VARIANTS])
    for row in cpu_cost.with_cpu(rows, os.cpu_count() or 1):
        assert row["cpu_pct"] > 0
        assert row["piece_bytes"] < 700
        # In so short a window a receiver that had to wait for a processor still has some of what came before.
        assert row["arrived_bit"] < 2 * 20e6


def test_a_cpu_that_slept_before_a_window_does_not_add_to_it() -> None:
    allowed = os.sched_getaffinity(0)
    for _ in range(3):
        os.sched_setaffinity(0, {min(allowed)})
        time.sleep(0.3)  # long enough for the other CPUs to have slept
        os.sched_setaffinity(0, allowed)
        began, idle = time.monotonic(), cpu_cost.machine_meter()
        passed = cpu_cost.machine_meter() - idle
        assert -passed <= (time.monotonic() - began) * (os.cpu_count() or 1) + 0.001


def test_the_kernel_counts_only_while_it_is_asked() -> None:
    before = Path("/proc/sys/kernel/bpf_stats_enabled").read_text(encoding="ascii")
    rows = inside.take("per_packet", {"loads": [SMALL], "repeats": 2, "window_s": 0.3})
    assert all(row["packets"] > 100 and 10 < row["ns"] < 1e5 for row in rows)
    assert Path("/proc/sys/kernel/bpf_stats_enabled").read_text(encoding="ascii") == before


def test_nothing_runs_and_little_is_held() -> None:
    assert inside.take("resident", {"plane": "htb"}) == {"left": [], "attached": True}
    found = inside.take("memory", {"classes": 20, "plane": "htb"})
    assert 10_000 < sum(found["maps"].values()) < figures.MEMORY_GOAL_BYTES
    assert set(found["programs"]) == {"shape", "police", "stamp", "divert", "learn"}


def test_modules_are_timed_and_change_nothing_again() -> None:
    rows = inside.take("apply", {"classes": 20, "planes": ["police"], "rounds": 1})
    assert rows[0]["changed"] == [True, False]
    assert 1 < rows[0]["first_ms"] < 5000


@pytest.mark.skipif(len(single_packets.cpus_at_hand()) < 2, reason="needs two CPUs")
@pytest.mark.parametrize("variant", single_packets.VARIANTS)
def test_no_update_is_lost(variant: str) -> None:
    assert program_cost.lost_updates(variant)["time_lost_pct"] == 0


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_benchmark_takes_its_namespaces_away(number: signal.Signals) -> None:
    environment = {**os.environ, "PYTHONPATH": f"{ROOT / 'collections'}:{ROOT}"}
    # Whoever starts all tests in the background of a script has them ignore SIGINT.
    code = (
        "import signal; signal.signal(signal.SIGINT, signal.default_int_handler);"
        "from tools.bandwidth import inside, traffic; traffic.take_back_on_termination();"
        "inside.take('one_class', {'plane': 'htb', 'accounting': 'wire', 'mbits': [10], 'flows': 1, 'repeats': 1,"
        " 'seconds': 60, 'seed': 1})"
    )
    with subprocess.Popen([sys.executable, "-c", code], cwd=ROOT, env=environment, stderr=subprocess.PIPE) as started:
        deadline = time.monotonic() + 60
        while len(namespaces(started.pid)) < 2:
            assert time.monotonic() < deadline, "it never made its namespaces"
            time.sleep(0.05)
        started.send_signal(number)
        started.communicate(timeout=60)
    assert started.returncode != 0
    assert namespaces(started.pid) == []
