"""What starts an instance with the host, on hosts of each kind; written, found again, taken back to the same bytes."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.colocation.testbed.plugins.module_utils import commands
from ansible_collections.colocation.testbed.plugins.module_utils.journal import Journal
from ansible_collections.colocation.testbed.plugins.module_utils.node import bandwidth_boot
from ansible_collections.colocation.testbed.plugins.module_utils.node.bandwidth_boot import BootError, Places, Wanted

NAME = "colocation-testbed-bandwidth-main"


class Systemd:
    """systemctl(1) as far as it is asked: whether a unit's file was read, and whether it is enabled and active."""

    def __init__(self) -> None:
        self.enabled = self.active = self.loaded = False
        self.calls: list[tuple[str, ...]] = []

    def run(self, argv: Sequence[str], **_options: Any) -> commands.Result:
        assert argv[0] == "systemctl"
        self.calls.append(tuple(argv[1:]))
        out = ""
        if argv[1] == "show":
            state = "loaded" if self.loaded else "not-found"
            out = state if "--value" in argv else f"NeedDaemonReload=no\nLoadState={state}"
        elif argv[1] == "daemon-reload":
            self.loaded = True
        elif argv[1] in ("enable", "disable"):
            self.enabled = argv[1] == "enable"
        elif argv[1] in ("start", "stop"):
            self.active = argv[1] == "start"
        elif argv[1] == "is-enabled":
            out = "enabled" if self.enabled else "disabled"
        elif argv[1] == "is-active":
            out = "active" if self.active else "inactive"
        return commands.Result(tuple(argv), 0, out + "\n", "")


class Host:
    """A host's directories below one of this test's own."""

    def __init__(self, root: Path, *folders: str) -> None:
        for folder in ("etc", "run", "state", "proc/self/ns", "proc/1/ns", "netns", *folders):
            (root / folder).mkdir(parents=True)
        # One file with two names: the process's namespace is the machine's.
        (root / "proc/self/ns/net").write_text("")
        os.link(root / "proc/self/ns/net", root / "proc/1/ns/net")
        (root / "state" / "node.pyz").write_text("")
        self.root, self.systemd = root, Systemd()
        self.places = Places(
            str(root / "etc"), str(root / "run"), str(root / "proc"), str(root / "netns"), self.systemd.run
        )
        self.wanted = Wanted("main", "/sys/fs/bpf", str(root / "state"), "/usr/bin/python3")
        self.book = Journal(str(root / "state" / "journal.json"))

    def persist(self, check: bool = False) -> bandwidth_boot.Outcome:
        return bandwidth_boot.persist(self.wanted, self.places, self.book, check)

    def remove(self, check: bool = False) -> bandwidth_boot.Outcome:
        return bandwidth_boot.remove(self.wanted, self.places, self.book, check)

    def files(self) -> dict[str, str]:
        found = sorted(path for path in self.root.rglob("*") if path.is_file() and "journal" not in path.name)
        return {str(path.relative_to(self.root)): path.read_text() for path in found}


KINDS = {
    "systemd": (("run/systemd/system", "etc/systemd/system"), [f"etc/systemd/system/{NAME}.service"]),
    "openrc": (("etc/local.d",), [f"etc/local.d/{NAME}.start"]),
    "sysv": (
        ("etc/init.d", *(f"etc/rc{level}.d" for level in (2, 3, 4, 5))),
        [f"etc/init.d/{NAME}", *(f"etc/rc{level}.d/S99{NAME}" for level in (2, 3, 4, 5))],
    ),
    "none": ((), [f"state/{NAME}.start"]),
}


@pytest.mark.parametrize("kind", KINDS)
def test_written_found_again_and_taken_back(tmp_path: Path, kind: str) -> None:
    folders, expected = KINDS[kind]
    host = Host(tmp_path, *folders)
    before = host.files()
    predicted = host.persist(check=True)
    assert host.files() == before
    done = host.persist()
    assert (done.changed, done.starter) == (True, kind)
    assert done == predicted
    assert sorted(set(host.files()) - set(before)) == sorted([*expected, "state/bandwidth-main.boot.json"])
    assert not host.persist().changed
    assert bool(done.warnings) == (kind == "none")
    assert host.remove(check=True).changed
    assert host.remove().changed
    assert host.files() == before
    assert not host.remove().changed
    assert (host.systemd.enabled, host.systemd.active) == (False, False)


def test_the_unit_starts_and_reloads(tmp_path: Path) -> None:
    host = Host(tmp_path, *KINDS["systemd"][0])
    host.persist()
    text = host.files()[f"etc/systemd/system/{NAME}.service"]
    spec = str(tmp_path / "state" / "bandwidth-main.boot.json")
    call = f'"/usr/bin/python3" "-I" "-S" "{tmp_path}/state/node.pyz" "bandwidth-apply" "--spec" "{spec}"\n'
    assert f"ExecStart={call}" in text
    assert f"ExecReload={call}" in text
    assert json.loads(Path(spec).read_text()) == {
        "instance": "main", "bpffs": "/sys/fs/bpf", "state_dir": str(tmp_path / "state")
    }  # fmt: skip
    assert (host.systemd.enabled, host.systemd.active) == (True, True)
    assert ("daemon-reload",) in host.systemd.calls


def test_a_unit_that_somebody_disabled_is_enabled_again(tmp_path: Path) -> None:
    host = Host(tmp_path, *KINDS["systemd"][0])
    host.persist()
    host.systemd.enabled = False
    assert host.persist(check=True).changed
    assert host.persist().changed
    assert host.systemd.enabled


@pytest.mark.parametrize("kind", ["openrc", "sysv", "none"])
def test_a_script_calls_the_tool(tmp_path: Path, kind: str) -> None:
    """What the script starts is a program of this test's own, which says how it was called."""
    host = Host(tmp_path, *KINDS[kind][0])
    echo = tmp_path / "python with a blank"
    echo.write_text('#!/bin/sh\necho "$@"\n')
    echo.chmod(0o755)
    host.wanted = replace(host.wanted, python=str(echo))
    host.persist()
    for name in KINDS[kind][1]:
        for argument in ("start", "reload"):
            done = subprocess.run([tmp_path / name, argument], capture_output=True, text=True, check=True, timeout=30)
            assert done.stdout.split()[-3:] == ["bandwidth-apply", "--spec", host.wanted.spec_path]
        assert subprocess.run([tmp_path / name, "stop"], check=False, timeout=30).returncode == 0
        wrong = subprocess.run([tmp_path / name, "x"], capture_output=True, text=True, check=False, timeout=30)
        assert (wrong.returncode, "usage" in wrong.stderr) == (2, True)


def test_two_instances_are_taken_back_one_by_one(tmp_path: Path) -> None:
    host = Host(tmp_path, *KINDS["openrc"][0])
    host.persist()
    first = host.files()
    other = replace(host.wanted, instance="other")
    bandwidth_boot.persist(other, host.places, host.book, False)
    bandwidth_boot.remove(other, host.places, host.book, False)
    assert host.files() == first


def test_a_namespace_and_a_host_without_the_tool_are_refused(tmp_path: Path) -> None:
    host = Host(tmp_path)
    (tmp_path / "state" / "node.pyz").unlink()
    with pytest.raises(BootError, match="bandwidth main: the node tool is not on this host; apply role node first"):
        host.persist()
    os.unlink(tmp_path / "proc/self/ns/net")
    (tmp_path / "proc/self/ns/net").write_text("")
    (tmp_path / "proc/sys/kernel/random").mkdir(parents=True)
    (tmp_path / "proc/sys/kernel/random/boot_id").write_text("0\n")
    with pytest.raises(BootError, match="this host is a network namespace, and starts with nothing of its own"):
        host.persist()
