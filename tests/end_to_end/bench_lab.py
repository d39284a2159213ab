"""A lab for the tests under names of its own, so that one that is in use on this machine is not disturbed."""

from __future__ import annotations

import json
import os
import re
import secrets
import signal
import subprocess
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import tooling
import yaml

from ansible_collections.colocation.testbed.plugins.module_utils import snapshot

STATE_DIR = "/var/lib/colocation-testbed-e2e"
CGROUP_ROOT = "colocation-testbed-e2e"
NETNS_PREFIX = "cte2e-"

#: Short windows on a machine that other tests heat up: noise must not decide whether the plumbing is right.
QUICK: Mapping[str, Any] = {
    "matrix_window_s": 3,
    "matrix_warmup_s": 1,
    "matrix_peak_window_s": 1,
    "matrix_repeat_cap": 0,
    "matrix_limits": {
        "steal": 100,
        "foreign_cpu": 100,
        "foreign_burst": 100,
        "lateness": 100,
        "baseline_spread": 10_000,
        "too_good": 100,
    },
    "bandwidth_matrix_window_s": 2,
    "bandwidth_matrix_repeat_cap": 0,
    "bandwidth_matrix_limits": {
        "steal": 100,
        "foreign_cpu": 100,
        "receiver_cpu": 100,
        "probe_complete": 100,
        "intervals_complete": 50,
    },
}


def inventory() -> dict[str, Any]:
    """Return the inventory: inventories/local under other names."""
    host = {
        "ansible_connection": "colocation.testbed.netns",
        "ansible_netns_cpus": "1",
        "ansible_netns_optional": "{{ ansible_check_mode }}",
        "ansible_python_interpreter": "{{ ansible_playbook_python }}",
        "node_housekeeping_cpus": "1",
        "node_state_dir": STATE_DIR + "/hosts/{{ inventory_hostname }}",
        "node_cgroup_root": CGROUP_ROOT + "/{{ inventory_hostname }}",
    }
    hosts = {
        name: {"ansible_netns": f"{NETNS_PREFIX}{name}", "ansible_host": address, "node_cpus": cpus}
        for name, address, cpus in (("e2e-tested", "198.18.67.1", "0"), ("e2e-load", "198.18.67.2", "1"))
    }
    local = {"ansible_connection": "local", "ansible_python_interpreter": "{{ ansible_playbook_python }}"}
    variables = {
        "lab_subnet": "198.18.67.0/24",
        "lab_namespace_prefix": NETNS_PREFIX,
        "lab_link_prefix": "cte",
        "lab_cgroup_root": CGROUP_ROOT,
        "lab_state_dir": STATE_DIR,
        "batch_workload_clip_seconds": 1,
        **QUICK,
    }
    return {
        "all": {
            "hosts": {"localhost": local},
            "vars": variables,
            "children": {
                "tested": {"hosts": {"e2e-tested": {}}},
                "load": {"hosts": {"e2e-load": {}}},
                "lab": {"hosts": hosts, "vars": host},
            },
        }
    }


@dataclass
class Played:
    """How a playbook ended."""

    status: int
    output: str

    def recap(self, key: str) -> int:
        """Return the sum over all hosts of one figure of the recap."""
        counts = re.findall(rf"\b{key}=(\d+)", self.output)
        assert counts, f"no recap in:\n{self.output[-4000:]}"
        return sum(map(int, counts))


@dataclass
class Lab:
    """Runs playbooks on the lab's inventory."""

    folder: Path
    environment: dict[str, str] = field(default_factory=tooling.checkout_environment)
    playbooks: str = str(tooling.ROOT)
    results_name: str = "results"

    @property
    def results(self) -> Path:
        """Where runs are stored."""
        return self.folder / self.results_name

    def command(self, playbook: str, *options: str, **variables: Any) -> list[str]:
        """Return the command line of a playbook."""
        path = self.folder / "hosts.yml"
        path.write_text(yaml.safe_dump(inventory()))
        places = ("matrix_results_dir", "bandwidth_matrix_results_dir", "report_results_dir")
        given = {**dict.fromkeys(places, str(self.results)), **variables}
        return ["ansible-playbook", "-i", str(path), playbook, "-e", json.dumps(given), *options]

    def play(self, playbook: str, *options: str, **variables: Any) -> Played:
        """Run a playbook to its end, whatever that is."""
        done = subprocess.run(
            self.command(playbook, *options, **variables),
            cwd=tooling.ROOT,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=900,
            check=False,
        )
        return Played(done.returncode, done.stdout)

    def good(self, playbook: str, *options: str, **variables: Any) -> Played:
        """Run a playbook that must succeed."""
        done = self.play(playbook, *options, **variables)
        assert done.status == 0, done.output[-12_000:]
        return done

    def end_when(
        self, condition: Callable[[], bool], end: Callable[[str, int], None], playbook: str, **variables: Any
    ) -> None:
        """Start a playbook in a session of its own, and end it as soon as a condition holds.

        :param end: called with the token in the environment of all its processes, and the process group.
        """
        token = secrets.token_hex(8)
        log = self.folder / "ended.log"
        with (
            log.open("wb") as output,
            subprocess.Popen(
                self.command(playbook, **variables),
                cwd=tooling.ROOT,
                env={**self.environment, "COLOCATION_E2E": token},
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                # A shell that started these tests in the background has left Ctrl-C ignored.
                preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
            ) as started,
        ):
            wait_for(lambda: condition() or started.poll() is not None, 300)
            ended = started.poll()
            if ended is None:
                end(token, started.pid)
        assert ended is None, f"it ended with {ended} before it could be ended:\n{log.read_text()[-6000:]}"

    def kill_when(self, condition: Callable[[], bool], playbook: str, **variables: Any) -> None:
        """Start a playbook, and kill it with all its workers as soon as a condition holds."""
        self.end_when(condition, lambda token, _group: kill_controllers(token), playbook, **variables)

    def runs(self) -> list[Path]:
        """Return the run directories, the oldest first."""
        return sorted(path for path in self.results.iterdir() if (path / "manifest.json").is_file())

    def measurements(self) -> int:
        """Return how many measurements all runs have."""
        return len(list(self.results.glob("*/measurements/[0-9]*")))

    def picture(self) -> dict[str, dict[str, str]]:
        """Return what the machine looks like, but for what other labs make meanwhile."""
        found = snapshot.take(
            snapshot.Wanted(
                paths=(STATE_DIR, "/etc/nginx", "/etc/apt", "/etc/sysctl.d", "/usr/local", "/run/systemd/system"),
                cgroup_root=CGROUP_ROOT,
                state_dir=STATE_DIR,
                # Groups and connections of whatever else lives on this machine come and go meanwhile.
                ignore=(
                    "cgroups//sys/fs/cgroup/*/process_api*",
                    "cgroups//sys/fs/cgroup/*/kubepods*",
                    "mounts//tmp/pytest-of-*",
                    "sysctls/net.netfilter.*",
                    "sysctls/kernel.pty.*",
                ),
            )
        )
        return {
            section: {key: text for key, text in shown.items() if not of_another_lab(section, key)}
            for section, shown in found.items()
        }


def of_another_lab(section: str, key: str) -> bool:
    """Return whether something in a picture is a namespace or a control group that another lab or test has made."""
    if section == "cgroups":
        return "/colocation-testbed" in key and CGROUP_ROOT not in key
    return (section == "netns" or key.startswith("/run/netns/")) and NETNS_PREFIX not in key


def wait_for(condition: Callable[[], bool], timeout_s: float) -> None:
    """Poll a condition until it holds; fail at the deadline."""
    deadline_s = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < deadline_s, "the condition did not come to hold in time"
        time.sleep(0.1)


def kill_controllers(token: str) -> None:
    """Kill the processes of one ansible-playbook: each of its workers leads a session of its own."""
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            environment, words = entry.joinpath("environ").read_bytes(), entry.joinpath("cmdline").read_bytes()
            if f"COLOCATION_E2E={token}\0".encode() in environment and b"ansible-playbook" in words:
                os.kill(int(entry.name), signal.SIGKILL)
        except (ProcessLookupError, FileNotFoundError, PermissionError):
            continue
