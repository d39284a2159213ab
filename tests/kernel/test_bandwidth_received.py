"""Several received classes at once: told apart by the groups of the sockets, by our programs and by HTB's ports."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import bounds
import pytest
from tooling import ROOT

from ansible_collections.colocation.testbed.plugins.module_utils import commands
from ansible_collections.colocation.testbed.plugins.module_utils.kernel import cgroup
from ansible_collections.colocation.testbed.plugins.module_utils.recorded_process import wait
from tools.bandwidth.namespaces import Pair

pytestmark = pytest.mark.measures

DEADLINE_S = 20.0
LIMITS_BPS = {"fast": 24_000_000, "slow": 8_000_000}
PORTS = {"fast": 5301, "slow": 5302}
#: Payload in a frame, at worst: TCP over IPv6 with time stamps.
SHARE = 1428 / 1514


class Tools:
    """Commands of the node tool in both namespaces, and the shaper's module in the first."""

    def __init__(self, pair: Pair, folder: Path) -> None:
        self.pair, self.folder = pair, folder
        self.group = f"colocation-testbed-received-{os.getpid()}"
        self.running: list[subprocess.Popen[str]] = []
        self.environment = {**os.environ, "PYTHONPATH": f"{ROOT}:{ROOT / 'collections'}"}

    def start(self, space: str, command: str, **spec: Any) -> Path:
        output, path = self.folder / f"{command}.json", self.folder / f"{command}.spec.json"
        path.write_text(json.dumps({**spec, "output": str(output)}))
        argv = [sys.executable, str(ROOT / "files/node"), command, "--spec", str(path)]
        started = self.pair.start(argv, space, env=self.environment)
        self.running.append(started)
        wait(lambda: output.exists() or started.poll() is not None, DEADLINE_S)
        assert output.exists(), started.communicate()[0]
        return output

    def stop(self) -> None:
        for process in self.running[::-1]:
            if process.poll() is None:
                process.send_signal(signal.SIGTERM)
            process.communicate(timeout=DEADLINE_S)
        self.running = []

    def shape(self, **options: Any) -> dict[str, Any]:
        given = json.dumps({"state_dir": str(self.folder), "instance": "received", **options})
        argv = [sys.executable, str(ROOT / "tests/support/run_module.py"), "bandwidth_shaper", given]
        environment = {"PYTHONPATH": self.environment["PYTHONPATH"]}
        found: dict[str, Any] = json.loads(
            commands.run(self.pair.argv(argv), environment=environment, check=False).stdout
        )
        return found


@pytest.fixture
def tools(tmp_path: Path) -> Iterator[Tools]:
    if not any(item.version == 2 for item in cgroup.detect().hierarchies):
        pytest.skip("needs cgroup2 mounted")
    with Pair("received", ipv6=Path("/proc/net/if_inet6").exists()) as pair:
        made = Tools(pair, tmp_path)
        yield made
        made.stop()
        made.shape(state="absent", to="10.99.0.2")


def classes(group: str) -> list[dict[str, Any]]:
    return [
        {
            "name": name, "direction": "ingress", "role": "offline", "limit": f"{limit}bit/s",
            "group": f"{group}/{name}", "ports": [PORTS[name]],
        }
        for name, limit in LIMITS_BPS.items()
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("kind", "protocol", "family"),
    [("ebpf", "tcp", "ipv4"), ("ebpf", "udp", "ipv6"), ("ebpf", "udp", "ipv4"), ("ebpf", "tcp", "ipv6"),
     ("htb", "tcp", "ipv6"), ("htb", "udp", "ipv4")],
)  # fmt: skip
def test_each_received_class_has_its_own_limit(tools: Tools, kind: str, protocol: str, family: str) -> None:
    if family == "ipv6" and not tools.pair.ipv6:
        pytest.skip("this kernel has no IPv6")
    here, there = ("10.99.0.1", "10.99.0.2") if family == "ipv4" else ("fd99::1", "fd99::2")
    done = tools.shape(kind=kind, to=there, pool={"total": "1Gbit/s"}, classes=classes(tools.group))
    assert done.get("applied") == done.get("wanted"), done
    ports, names = list(PORTS.values()), list(PORTS)
    tally = str(tools.folder / "tally.bin")
    groups = {str(PORTS[name]): f"{tools.group}/{name}" for name in names}
    kinds = {"ports": [], "datagram_ports": ports} if protocol == "udp" else {"ports": ports}
    tools.start(tools.pair.here, "receive", address=here, groups=groups, tally=tally, **kinds)
    counting = {name: [PORTS[name]] for name in names}
    counted = tools.start(
        tools.pair.here, "count-received", interval_s=0.1, max_duration_s=30, family=family, tally=tally,
        tally_ports=ports if protocol == "udp" else [], ports={} if protocol == "udp" else counting,
        datagram_ports=counting if protocol == "udp" else {},
    )  # fmt: skip
    flows = [
        {"name": name, "address": here, "port": PORTS[name], "protocol": protocol, "rate_bps": 40_000_000,
         "message_bytes": 1428, "connections": 2}
        for name in names
    ]  # fmt: skip
    tools.start(tools.pair.there, "send", flows=flows, max_duration_s=30)
    time.sleep(3.5)  # the length of what is measured
    tools.stop()
    found = json.loads(counted.read_text())
    moments = found["mono_s"]
    begin = next(place for place, value in enumerate(found["bytes"]["slow"]) if value)
    inside = [place for place, moment in enumerate(moments) if 1.0 <= moment - moments[begin] <= 2.8]
    for name, limit in LIMITS_BPS.items():
        values = found["bytes"][name]
        rate = 8 * (values[inside[-1]] - values[inside[0]]) / (moments[inside[-1]] - moments[inside[0]])
        assert bounds.kept(rate, limit, above=1.05), (name, rate)
        assert max(count for _place, count in found["flows"][name]) == 2


def test_a_family_is_part_of_what_is_in_effect(tools: Tools) -> None:
    if not tools.pair.ipv6:
        pytest.skip("this kernel has no IPv6")
    options = {"kind": "htb", "pool": {"total": "1Gbit/s"}, "classes": classes(tools.group)}
    assert tools.shape(to="10.99.0.2", **options)["changed"]
    assert not tools.shape(to="10.99.0.2", **options)["changed"]
    assert tools.shape(to="fd99::2", **options)["changed"]
    assert not tools.shape(to="fd99::2", **options)["changed"]
    assert tools.shape(state="absent", to="fd99::2")["changed"]
    assert "clsact" not in tools.pair.run(["tc", "qdisc", "show"]).stdout


def test_devices_of_ours_send_nothing_by_themselves(tools: Tools) -> None:
    for kind in ("ebpf", "htb"):
        tools.shape(kind=kind, to="10.99.0.2", pool={"total": "1Gbit/s"}, classes=classes(tools.group))
        shown = json.loads(tools.pair.run(["ip", "-j", "addr", "show", "type", "ifb"]).stdout)
        made = [item for item in shown if item]
        assert len(made) == 1, kind
        assert made[0]["addr_info"] == [], kind
