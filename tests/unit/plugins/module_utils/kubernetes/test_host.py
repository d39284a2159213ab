"""A host's /proc as files, and programs as prepared answers."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.colocation.testbed.plugins.module_utils import commands, journal
from ansible_collections.colocation.testbed.plugins.module_utils.kubernetes import host, leftovers

CONTROLLERS = ("cpu", "cpuset", "memory", "pids")


class Programs:
    """Answers of ip by the words that were asked; a route that is added is there afterwards."""

    def __init__(self, default_route: bool = False) -> None:
        self.default_route = default_route
        self.routes: set[str] = set()
        self.calls: list[list[str]] = []

    def __call__(self, argv: Sequence[str], **_options: Any) -> commands.Result:
        self.calls.append(list(argv))
        text = ""
        if "default" in argv:
            text = json.dumps([{}] if self.default_route else [])
        elif "exact" in argv:
            text = json.dumps([{}] if argv[-1] in self.routes else [])
        elif "addr" in argv:
            text = json.dumps([{}, {"ifname": "ct0"}] if argv[-1] == "198.18.0.1" else [])
        elif "add" in argv:
            self.routes.add(argv[3])
        return commands.Result(tuple(argv), 0, text, "")


@pytest.fixture
def made(tmp_path: Path) -> host.Host:
    """A host with four controllers of version 1, a sysctl, and a root without CAP_SYS_RESOURCE."""
    proc, groups = tmp_path / "proc", tmp_path / "cgroup"
    lines = ["1 0 8:1 / / rw shared:1 - ext4 /dev/vda rw"]
    for number, name in enumerate(CONTROLLERS, 2):
        (groups / name).mkdir(parents=True)
        lines.append(f"{number} 1 0:{number} / {groups}/{name} rw - cgroup cgroup rw,{name}")
    (proc / "self/net").mkdir(parents=True)
    (proc / "self/mountinfo").write_text("\n".join(lines) + "\n")
    (proc / "self/status").write_text("CapEff:\t000001fffeffffff\n")
    (proc / "self/net/tcp").write_text("")
    (proc / "swaps").write_text("Filename\n")
    (proc / "sys/vm").mkdir(parents=True)
    (proc / "sys/vm/overcommit_memory").write_text("0\n")
    return host.Host(str(proc), Programs(), lambda name: f"/bin/{name}" if name == "runc" else None)


WANTED = host.Wanted(
    sysctls={"vm.overcommit_memory": "1"},
    nft_tables=("ip kube-proxy",),
    service_subnet="10.96.0.0/16",
    node_address="198.18.0.1",
    programs=("runc",),
)


def test_facts(made: host.Host) -> None:
    facts = made.facts()
    assert (facts["cap_sys_resource"], facts["root_is_shared"], facts["cgroup"], facts["swap"]) == (
        False,
        True,
        "v1",
        False,
    )


def test_everything_is_written_down_then_done_and_then_nothing(made: host.Host, tmp_path: Path) -> None:
    book = journal.Journal(str(tmp_path / "journal.json"))
    assert host.problems(WANTED, made, set()) == []
    todo = host.plan(WANTED, made, set())
    assert len(todo.changes) == len(CONTROLLERS) + 1
    assert (dict(todo.sysctls), todo.routes) == ({"vm.overcommit_memory": "1"}, (host.Route("10.96.0.0/16"),))
    host.apply(todo, WANTED, made, book)
    assert Path(made.sysctl_path("vm.overcommit_memory")).read_text() == "1"
    values = [entry for entry in book.entries() if entry.kind == "value"]
    assert [(entry.previous, entry.note) for entry in values] == [("0", "1")]
    ours = {(entry.kind, entry.target) for entry in book.entries()}
    assert host.plan(WANTED, made, ours).empty


def test_a_default_route_is_enough(made: host.Host) -> None:
    assert host.missing_routes(WANTED, host.Host(made.proc_root, Programs(default_route=True))) == []


def test_groups_above_and_routes_to_others_are_made(made: host.Host, tmp_path: Path) -> None:
    for name in ("cpuset.cpus", "cpuset.mems"):
        (tmp_path / "cgroup/cpuset" / name).write_text("0-1\n")
    wanted = host.Wanted(cgroup_root="node/kubepods", routes=(host.Route("10.88.1.0/24", "198.18.0.2"),))
    todo = host.plan(wanted, made, set())
    assert todo.groups == tuple(f"{tmp_path}/cgroup/{name}/node" for name in CONTROLLERS)
    book = journal.Journal(str(tmp_path / "journal.json"))
    host.apply(todo, wanted, made, book)
    assert all(Path(path).is_dir() for path in todo.groups)
    assert ["ip", "route", "add", "10.88.1.0/24", "via", "198.18.0.2"] in made.run.calls  # type: ignore[attr-defined]
    # Undone last, when the pods' own groups are gone.
    assert [entry.kind for entry in book.entries()][: len(CONTROLLERS)] == ["cgroup"] * len(CONTROLLERS)
    ours = {(entry.kind, entry.target) for entry in book.entries()}
    assert host.plan(wanted, made, ours).empty


def test_all_that_is_wrong_is_named_at_once(made: host.Host) -> None:
    Path(made.proc_root, "self/mountinfo").write_text(
        "\n".join(Path(made.proc_root, "self/mountinfo").read_text().splitlines()[:-1])
    )
    wanted = host.Wanted(programs=("nft", "/no/kubelet"), sysctls={"vm.none": "1"})
    found = host.problems(wanted, made, set())
    assert found == [
        "nft: is not there; install it, or let kubernetes_install do it",
        "/no/kubelet: is not there; install it, or let kubernetes_install do it",
        "cgroup controller pids: no hierarchy has it; mount it, or enable it on the kernel's command line",
        "sysctl vm.none: this kernel lacks it",
    ]


def test_another_kubelet_is_refused_and_our_own_is_not(made: host.Host) -> None:
    (path, *_rest) = made.group_dirs("kubepods")
    Path(path).mkdir()
    assert "another kubelet" in host.problems(WANTED, made, set())[0]
    assert host.problems(WANTED, made, {(leftovers.CGROUP_TREE, path)}) == []


def test_a_port_that_is_taken(made: host.Host) -> None:
    Path(made.proc_root, "self/net/tcp").write_text("head\n 0: 0100007F:2B66 00000000:0000 0A 0 0 0 0 0 77 1 0\n")
    found = host.problems(host.Wanted(ports=(11110,)), made, set())
    assert found == ["port 11110: is taken by process ? (?); end that one"]


def test_an_address_that_no_interface_has(made: host.Host) -> None:
    with pytest.raises(host.HostError, match=r"node address 10\.0\.0\.9: no interface of this host has it"):
        host.device_of("10.0.0.9", made)
    assert host.device_of("198.18.0.1", made) == "ct0"


def test_entries_of_networks_are_undone_only_where_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    programs = Programs()
    programs.routes.add("10.96.0.0/16")
    entry = journal.Entry(1, "", "kubernetes_host", leftovers.ROUTE, "10.96.0.0/16", None, "")
    undo = leftovers.handlers(programs)[leftovers.ROUTE]
    assert undo(entry, True).text == "10.96.0.0/16: removed"
    assert not any("delete" in call for call in programs.calls)
    assert undo(entry, False).result == "undone"
    assert ["ip", "route", "delete", "10.96.0.0/16"] in programs.calls
    gone = {"text": "", "netns": {"inode": 1, "boot_id": "another", "name": "x"}}
    entry = journal.Entry(1, "", "kubernetes_host", leftovers.ROUTE, "x/10.96.0.0/16", gone, "")
    assert undo(entry, False).text == "x/10.96.0.0/16: is gone with its network namespace"


def test_a_program_that_fails_while_undoing_is_an_outcome() -> None:
    def run(_argv: Sequence[str], **_options: Any) -> commands.Result:
        raise commands.CommandError("nft: not there")

    entry = journal.Entry(1, "", "kubernetes_host", leftovers.NFT_TABLE, "ip kube-proxy", None, "")
    outcome = leftovers.handlers(run)[leftovers.NFT_TABLE](entry, False)
    assert outcome.result == "failed"
    assert "nft: not there" in outcome.text
