# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Host tuning against the real kernel: sysctls of a namespace of our own, and values that are put back at once."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from tooling import run

from ansible_collections.colocation.testbed.plugins.module_utils.tuning import persisted
from ansible_collections.colocation.testbed.plugins.module_utils.tuning.targets import SYSCTL, TMPFILES

ROOT = Path(__file__).resolve().parents[2]
RUNNER = ROOT / "tests/support/run_module.py"
THP = Path("/sys/kernel/mm/transparent_hugepage")
pytestmark = pytest.mark.kernel

NET = [
    {"kind": "sysctl", "name": "net.ipv4.ip_local_port_range", "value": "20000 30000"},
    {"kind": "sysctl", "name": "net.ipv4.tcp_keepalive_time", "value": 60},
    {"kind": "sysctl", "name": "net.ipv4.conf.default.rp_filter", "value": 1},
    {"kind": "sysctl", "name": "net/core/somaxconn", "value": "128"},
]


class Host:
    """A network namespace, or the machine itself, with a state directory."""

    def __init__(self, directory: Path, netns: str | None) -> None:
        self.state = directory / "state"
        self.prefix = ["nsenter", f"--net=/run/netns/{netns}"] if netns else []

    def start(
        self, name: str, options: dict[str, Any], *more: str, prefix: list[str]
    ) -> subprocess.CompletedProcess[str]:
        given = json.dumps({"state_dir": str(self.state), **options})
        argv = [*prefix, sys.executable, str(RUNNER), name, given, *more]
        environment = {**os.environ, "PYTHONPATH": str(ROOT / "collections")}
        return subprocess.run(argv, env=environment, capture_output=True, text=True, timeout=60, check=False)

    def module(self, name: str, prefix: list[str] | None = None, **options: Any) -> dict[str, Any]:
        done = self.start(name, options, prefix=self.prefix if prefix is None else prefix)
        if not done.stdout.strip():
            raise AssertionError(done.stderr)
        found: dict[str, Any] = json.loads(done.stdout)
        return found

    def tune(self, *settings: dict[str, Any], **options: Any) -> dict[str, Any]:
        return self.module("host_tuning", settings=list(settings), **options)

    def sysctls(self, *names: str) -> dict[str, str]:
        """Return the text of sysctls as this host sees them, byte for byte."""
        paths = [f"/proc/sys/{name.replace('.', '/')}" for name in names]
        argv = [*self.prefix, sys.executable, "-c", "import sys; [print(repr(open(p).read())) for p in sys.argv[1:]]"]
        done = subprocess.run([*argv, *paths], capture_output=True, text=True, timeout=60, check=True)
        return dict(zip(names, done.stdout.splitlines(), strict=True))


NAMES = [str(item["name"]) for item in NET]


@pytest.fixture
def machine(tmp_path: Path) -> Host:
    return Host(tmp_path, None)


@pytest.fixture
def host(tmp_path: Path) -> Iterator[Host]:
    if shutil.which("ip") is None:
        pytest.skip("needs iproute2")
    name = f"colocation-tuning-{os.getpid()}"
    subprocess.run(["ip", "netns", "add", name], check=True, timeout=30)
    yield Host(tmp_path, name)
    subprocess.run(["ip", "netns", "delete", name], check=True, timeout=30)


def test_once_predicted_and_back_within_the_namespace(host: Host, machine: Host) -> None:
    before, outside = host.sysctls(*NAMES), machine.sysctls(*NAMES)
    predicted = host.tune(*NET, _ansible_check_mode=True, _ansible_diff=True)
    assert host.sysctls(*NAMES) == before
    done = host.tune(*NET, _ansible_diff=True)
    assert (done["changed"], predicted["diff"], predicted["settings"]) == (True, done["diff"], done["settings"])
    assert host.tune(*NET)["changed"] is False
    assert host.sysctls("net.core.somaxconn")["net.core.somaxconn"] == "'128\\n'"
    assert host.tune(state="absent")["changed"] is True
    assert host.sysctls(*NAMES) == before
    assert machine.sysctls(*NAMES) == outside


def test_undo_from_outside_reaches_the_namespace_and_leaves_the_machine(host: Host, machine: Host) -> None:
    before, outside = host.sysctls(*NAMES), machine.sysctls(*NAMES)
    host.tune(*NET)
    undone = machine.module("journal_undo")
    assert any("in network namespace colocation-tuning-" in text for text in undone["undone"])
    assert host.sysctls(*NAMES) == before
    assert machine.sysctls(*NAMES) == outside
    assert not host.state.exists()


def test_undo_of_a_namespace_that_is_gone(host: Host, machine: Host, tmp_path: Path) -> None:
    name = f"colocation-tuning-gone-{os.getpid()}"
    outside = machine.sysctls(*NAMES)
    subprocess.run(["ip", "netns", "add", name], check=True, timeout=30)
    Host(tmp_path, name).tune(*NET)
    subprocess.run(["ip", "netns", "delete", name], check=True, timeout=30)
    undone = machine.module("journal_undo")["undone"]
    gone = [text for text in undone if f"is gone with its network namespace {name}" in text]
    assert {f"/proc/sys/{item.replace('.', '/')}" for item in NAMES} <= {text.partition(":")[0] for text in gone}
    assert machine.sysctls(*NAMES) == outside


def test_in_a_namespace_nothing_is_kept_for_the_next_boot(host: Host) -> None:
    (row,) = host.tune({**NET[1], "persist": True})["settings"]
    assert (row["result"], row["persisted"]["supported"]) == ("changed", False)
    assert "network namespace" in row["persisted"]["reason"]


def test_a_value_that_the_kernel_refuses_takes_the_batch_back(host: Host) -> None:
    before = host.sysctls(*NAMES)
    result = host.tune(*NET, {"kind": "sysctl", "name": "net.ipv4.ip_unprivileged_port_start", "value": 99999})
    assert "ip_unprivileged_port_start: writing '99999' failed: Invalid argument" in result["msg"]
    assert result["msg"].endswith("what came before it was taken back")
    assert host.sysctls(*NAMES) == before
    assert host.module("journal_undo")["undone"] == [f"{host.state}: directory removed"]


FORWARDING = [
    {"kind": "sysctl", "name": "net.ipv4.ip_forward", "value": 1},
    {"kind": "sysctl", "name": "net.ipv6.conf.all.disable_ipv6", "value": 1},
    {"kind": "sysctl", "name": "net.ipv4.conf.default.rp_filter", "value": 2},
]


@pytest.mark.parametrize("refused", [False, True])
def test_what_the_kernel_changes_along_with_a_value_comes_back(host: Host, refused: bool) -> None:
    link = ["ip", "link", "add", "tuned0", "type", "veth", "peer", "name", "tuned1"]
    subprocess.run([*host.prefix, *link], check=True, timeout=30)
    set_up = ["sysctl", "-q", "-w", "net.ipv4.conf.tuned0.forwarding=1", "net.ipv6.conf.tuned1.disable_ipv6=1"]
    subprocess.run([*host.prefix, *set_up], check=True, timeout=30)
    read = [
        "grep",
        "-r",
        "-s",
        ".",
        "/proc/sys/net/ipv4/conf",
        "/proc/sys/net/ipv6/conf",
        "/proc/sys/net/ipv4/ip_forward",
    ]
    before = subprocess.run([*host.prefix, *read], capture_output=True, check=False, timeout=30).stdout
    more = [{"kind": "sysctl", "name": "net.ipv4.ip_local_port_range", "value": "5 1"}] if refused else []
    result = host.tune(*FORWARDING, *more)
    assert result.get("failed", False) is refused
    if not refused:
        assert host.sysctls("net.ipv4.conf.tuned1.forwarding") == {"net.ipv4.conf.tuned1.forwarding": "'1\\n'"}
        host.tune(state="absent")
    assert before.count(b"\n") > 200
    assert subprocess.run([*host.prefix, *read], capture_output=True, check=False, timeout=30).stdout == before


def test_a_read_only_mount(host: Host) -> None:
    script = 'mount --bind /proc/sys /proc/sys && mount -o remount,bind,ro /proc/sys && exec "$@"'
    prefix = ["unshare", "--mount", *host.prefix, "sh", "-c", script, "sh"]
    result = host.module("host_tuning", prefix=prefix, settings=NET)
    assert "Read-only file system (it is mounted read-only, as in a container" in result["msg"]


@pytest.mark.parametrize("after", [0, 1, 2, 3])
def test_killed_in_the_middle_and_undone(host: Host, machine: Host, after: int) -> None:
    before = host.sysctls(*NAMES)
    killed = host.start("host_tuning", {"settings": NET}, str(after), prefix=host.prefix)
    assert killed.returncode == -signal.SIGKILL
    changed = [name for name, text in host.sysctls(*NAMES).items() if text != before[name]]
    assert len(changed) == after
    machine.module("journal_undo")
    assert host.sysctls(*NAMES) == before


def test_killed_in_the_middle_and_run_again(host: Host) -> None:
    before = host.sysctls(*NAMES)
    assert host.start("host_tuning", {"settings": NET}, "2", prefix=host.prefix).returncode == -signal.SIGKILL
    assert host.tune(*NET)["changed"] is True
    host.tune(state="absent")
    assert host.sysctls(*NAMES) == before


def test_of_two_values_that_exclude_each_other_the_old_one_comes_back(machine: Host) -> None:
    pair = ("vm.dirty_background_ratio", "vm.dirty_background_bytes")
    before = machine.sysctls(*pair)
    if before[pair[1]] != "'0\\n'":
        pytest.skip("this machine has vm.dirty_background_bytes in effect")
    try:
        wanted = {"kind": "sysctl", "name": pair[1], "value": 2**30}
        assert machine.tune(wanted)["changed"] is True
        assert machine.sysctls(*pair)[pair[0]] == "'0\\n'"
        assert machine.tune(wanted)["changed"] is False
    finally:
        machine.module("journal_undo")
    assert machine.sysctls(*pair) == before


@pytest.mark.skipif(not os.access(THP / "defrag", os.W_OK), reason="needs transparent huge pages")
def test_a_choice_among_several(machine: Host) -> None:
    before = (THP / "defrag").read_text()
    other = "madvise" if "[defer+madvise]" in before else "defer+madvise"
    try:
        result = machine.tune({"kind": "thp", "name": "defrag", "value": other}, _ansible_diff=True)
        assert list(result["diff"][0]["after"].values()) == [other]
        assert machine.tune({"kind": "thp", "name": "defrag", "value": other})["changed"] is False
    finally:
        undone = machine.module("journal_undo")["undone"]
    assert (THP / "defrag").read_text() == before
    assert not [text for text in undone if "someone else" in text]


def test_bad_settings_change_nothing(machine: Host) -> None:
    result = machine.tune(
        {"kind": "thp", "name": "enabled", "value": True}, {"kind": "rps", "name": "nope", "value": "0"}
    )
    assert "settings[0] thp enabled: the value is the boolean true" in result["msg"]
    assert "settings[1] rps nope: no interface 'nope' has receive queues" in result["msg"]
    assert not machine.state.exists()


@pytest.fixture
def swap_file(tmp_path: Path) -> Iterator[Path]:
    """A file of our own that the kernel can swap to, not in use."""
    if shutil.which("mkswap") is None or not os.path.exists("/proc/swaps"):
        pytest.skip("needs swap and util-linux")
    path = tmp_path / "swap"
    path.write_bytes(bytes(2**22))
    path.chmod(0o600)
    subprocess.run(["mkswap", str(path)], check=True, capture_output=True, timeout=30)
    tried = subprocess.run(["swapon", str(path)], check=False, capture_output=True, timeout=30)
    if tried.returncode:
        pytest.skip(f"the file system of {tmp_path} cannot hold swap")
    subprocess.run(["swapoff", str(path)], check=True, timeout=30)
    yield path
    if str(path) in Path("/proc/swaps").read_text():
        subprocess.run(["swapoff", str(path)], check=True, timeout=30)


def _in_use(path: Path) -> str | None:
    """Return the priority of an area that is in use."""
    lines = [line.split() for line in Path("/proc/swaps").read_text().splitlines()]
    return next((fields[-1] for fields in lines if fields[0] == str(path)), None)


def test_swap_on_and_off_and_back(machine: Host, swap_file: Path) -> None:
    setting = {"kind": "swap", "name": str(swap_file)}
    assert machine.tune({**setting, "value": "enabled"})["settings"][0]["live"]["after"] == "enabled"
    assert _in_use(swap_file)
    machine.tune(state="absent")
    assert _in_use(swap_file) is None
    subprocess.run(["swapon", "-p", "7", str(swap_file)], check=True, timeout=30)
    assert machine.tune({**setting, "value": "disabled"}, _ansible_check_mode=True)["changed"] is True
    assert _in_use(swap_file) == "7"
    machine.tune({**setting, "value": "disabled"})
    assert _in_use(swap_file) is None
    assert machine.tune({**setting, "value": "disabled"})["changed"] is False
    machine.module("journal_undo")
    assert _in_use(swap_file) == "7"


def test_a_file_that_is_no_swap_area(machine: Host, tmp_path: Path) -> None:
    (tmp_path / "plain").write_bytes(bytes(2**16))
    wanted = {"kind": "swap", "name": str(tmp_path / "plain"), "value": "enabled"}
    result = machine.tune(wanted)
    assert "read swap header failed" in result["msg"]
    assert result["msg"].endswith("what came before it was taken back")
    assert machine.module("journal_undo")["undone"] == [f"{machine.state}: directory removed"]


def test_an_interrupt_moves_and_comes_back(machine: Host) -> None:
    files = [place.parent / "smp_affinity_list" for place in Path("/proc/irq").glob("*/ACPI:*")]
    if not files or any("0" not in path.read_text() or path.read_text() == "0\n" for path in files):
        pytest.skip("needs an interrupt of ACPI that may be served by several CPUs")
    before = [path.read_text() for path in files]
    try:
        rows = machine.tune({"kind": "irq_affinity", "name": "ACPI:*", "value": "0"})["settings"]
        assert {row["result"] for row in rows} <= {"changed", "refused"}
        assert all((row["live"]["after"] == "0") == (row["result"] == "changed") for row in rows)
    finally:
        machine.module("journal_undo")
    assert [path.read_text() for path in files] == before


def test_the_playbook_of_the_documentation(host: Host, tmp_path: Path) -> None:
    blocks = re.findall(r"```yaml\n(.*?)```", (ROOT / "docs/host-tuning.md").read_text(encoding="utf-8"), re.DOTALL)
    (tmp_path / "play.yml").write_text(blocks[0])
    variables = {
        "ansible_connection": "colocation.testbed.netns",
        "ansible_netns": host.prefix[1].rpartition("/")[2],
        "ansible_python_interpreter": sys.executable,
        "host_tuning_state_dir": str(host.state),
    }
    inventory = {"tested": {"hosts": {"node": variables}}}
    (tmp_path / "hosts.yml").write_text(yaml.safe_dump(inventory))
    before = host.sysctls("net.core.somaxconn", "net.ipv4.tcp_rmem")
    run(["ansible-playbook", "-i", tmp_path / "hosts.yml", tmp_path / "play.yml"])
    assert host.sysctls("net.ipv4.tcp_rmem")["net.ipv4.tcp_rmem"] == "'4096\\t131072\\t16777216\\n'"
    off = ["-e", "host_tuning_state=absent"]
    assert "changed=0" not in run(["ansible-playbook", "-i", tmp_path / "hosts.yml", tmp_path / "play.yml", *off])
    assert host.sysctls("net.core.somaxconn", "net.ipv4.tcp_rmem") == before


def test_the_programs_that_read_our_files_at_boot_understand_them(host: Host, tmp_path: Path) -> None:
    if shutil.which("systemd-tmpfiles") is None or shutil.which("sysctl") is None:
        pytest.skip("needs systemd-tmpfiles and procps")
    value = "50% of a\\b c"
    (tmp_path / "file").write_text("before\n")
    tmpfiles = persisted.DropIn(TMPFILES, "x", None, {}).updated({str(tmp_path / "file"): value})
    (tmp_path / "tmpfiles.conf").write_text(str(tmpfiles))
    subprocess.run(["systemd-tmpfiles", "--create", str(tmp_path / "tmpfiles.conf")], check=True, timeout=30)
    assert (tmp_path / "file").read_text() == value
    wanted = {str(item["name"]): " ".join(str(item["value"]).split()) for item in NET}
    sysctls = persisted.DropIn(SYSCTL, "x", None, {}).updated(wanted)
    (tmp_path / "sysctl.conf").write_text(str(sysctls))
    subprocess.run([*host.prefix, "sysctl", "-q", "-p", str(tmp_path / "sysctl.conf")], check=True, timeout=30)
    assert host.tune(*NET)["changed"] is False
