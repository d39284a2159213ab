"""The connection netns: what is run, where, and the sentences when it cannot be."""

from __future__ import annotations

import pytest
import yaml
from ansible.errors import AnsibleConnectionFailure
from ansible.playbook.play_context import PlayContext
from ansible.plugins.connection.local import Connection as LocalConnection
from ansible.plugins.loader import get_shell_plugin

from ansible_collections.colocation.testbed.plugins.connection import netns as plugin


@pytest.fixture
def ran(monkeypatch):
    """Commands that would have been run, on a machine with CPUs 0 and 1, as root, with every namespace there."""
    commands = []

    def exec_command(self, cmd, in_data=None, sudoable=True):
        commands.append(cmd)
        return 0, b"", b""

    monkeypatch.setattr(LocalConnection, "exec_command", exec_command)
    monkeypatch.setattr("os.geteuid", lambda: 0)
    monkeypatch.setattr(plugin.netns, "exists", lambda name: True)
    monkeypatch.setattr(plugin.cpu_list, "online", lambda *_: frozenset({0, 1}))
    return commands


def connect(**variables):
    """Return the connection of a host with these inventory variables, which its documentation maps to options."""
    given = {"inventory_hostname": "tested-node", **variables}
    documented = yaml.safe_load(plugin.DOCUMENTATION)["options"]
    values = {
        name: next((given[var["name"]] for var in option["vars"] if var["name"] in given), option["default"])
        for name, option in documented.items()
    }
    connection = plugin.Connection(PlayContext(), shell=get_shell_plugin(shell_type="sh"))
    connection.get_option = values.__getitem__
    return connection


def test_enters_the_namespace_named_after_the_host(ran):
    assert connect().exec_command("/bin/sh -c 'echo hi'") == (0, b"", b"")
    assert ran == ["nsenter --net=/run/netns/colocation-tested-node /bin/sh -c 'echo hi'"]


def test_runs_on_the_cpus_that_are_given(ran):
    connect(ansible_netns="lab 1", ansible_netns_cpus="1").exec_command("true")
    assert ran == ["taskset --cpu-list 1 nsenter '--net=/run/netns/lab 1' true"]


def test_a_missing_namespace_is_said(ran, monkeypatch):
    monkeypatch.setattr(plugin.netns, "exists", lambda name: False)
    with pytest.raises(
        AnsibleConnectionFailure, match="Network namespace colocation-tested-node does not exist: run the"
    ):
        connect().exec_command("true")
    assert ran == []


def test_a_missing_namespace_may_be_optional(ran, monkeypatch):
    monkeypatch.setattr(plugin.netns, "exists", lambda name: False)
    connect(ansible_netns_optional=True, ansible_netns_cpus="1").exec_command("true")
    assert ran == ["taskset --cpu-list 1 true"]


def test_an_optional_namespace_is_entered_where_it_exists(ran):
    connect(ansible_netns_optional=True).exec_command("true")
    assert ran == ["nsenter --net=/run/netns/colocation-tested-node true"]


def test_without_root_it_says_so(ran, monkeypatch):
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    with pytest.raises(AnsibleConnectionFailure, match="needs root on the controller"):
        connect().exec_command("true")


@pytest.mark.parametrize(("cpus", "message"), [("7", "CPU 7 asked for, but this machine has 0-1"), ("a", "'a'")])
def test_cpus_that_cannot_be_are_refused(ran, cpus, message):
    with pytest.raises(AnsibleConnectionFailure, match=f"ansible_netns_cpus: .*{message}"):
        connect(ansible_netns_cpus=cpus).exec_command("true")
    assert ran == []


def test_pipelining_is_on():
    assert plugin.Connection.has_pipelining is True


def test_tasks_that_fetch_run_outside_the_namespace_on_all_cpus(ran):
    connect(ansible_netns_cpus="1", ansible_netns_outside=True).exec_command("true")
    assert ran == ["true"]
