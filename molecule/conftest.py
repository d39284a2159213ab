"""Fixtures shared by the scenarios: one testinfra host for each tested and each load node of the inventory."""

from __future__ import annotations

import functools
import json
import os
import shlex
import subprocess
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest
import testinfra.host
from testinfra.backend.local import LocalBackend

GROUPS = ("tested", "load")


class NetnsBackend(LocalBackend):
    """Run each command in the network namespace of one host.

    testinfra would start the `ansible` command for every check over a connection that it doesn't know, which
    takes two seconds each.
    """

    NAME = "netns"

    def __init__(self, name: str, netns: str) -> None:
        """Remember the host's name in the inventory and the name of its namespace."""
        super().__init__()
        self.name = name
        self.netns = netns

    def get_command(self, command: str, *args: str) -> str:
        """Return the command line that runs a command in the namespace."""
        inner = super().get_command(command, *args)
        return f"nsenter --net=/run/netns/{shlex.quote(self.netns)} sh -c {shlex.quote(inner)}"

    def get_pytest_id(self) -> str:
        """Return how the host appears in test names."""
        return f"netns://{self.name}"


class GuestBackend(LocalBackend):
    """Run each command on a guest, by ssh as the lab has set it up, over one shared connection."""

    NAME = "guest"

    def __init__(self, name: str) -> None:
        """Remember the guest's name; its lab has the name of the scenario."""
        super().__init__()
        self.name = name
        self.access = f"/var/lib/colocation-testbed-{os.environ['MOLECULE_SCENARIO_NAME']}/ssh"

    def get_command(self, command: str, *args: str) -> str:
        """Return the command line that runs a command on the guest."""
        inner = super().get_command(command, *args)
        # Short, beside Ansible's own: the path of a socket has 107 characters at most.
        shared = f"-o ControlMaster=auto -o ControlPersist=60 -o ControlPath={self.access}/control/t-%h"
        return f"ssh -F {self.access}/config {shared} {shlex.quote(self.name)} {shlex.quote(inner)}"

    def get_pytest_id(self) -> str:
        """Return how the host appears in test names."""
        return f"guest://{self.name}"


@functools.cache
def inventory() -> dict[str, Any]:
    """Return the scenario's own inventory with what it shares with others, or the one that molecule made."""
    own = Path(os.environ["MOLECULE_SCENARIO_DIRECTORY"]) / "inventory"
    path = own if own.exists() else Path(os.environ["MOLECULE_INVENTORY_FILE"])
    shared = Path(os.environ["MOLECULE_PROJECT_DIRECTORY"]) / "molecule/shared/uml/inventory"
    before = ["-i", str(shared)] if _boots(os.environ["MOLECULE_SCENARIO_DIRECTORY"]) else []
    argv = ["ansible-inventory", *before, "-i", str(path), "--list"]
    listing = subprocess.run(argv, check=True, capture_output=True, text=True, timeout=60)
    parsed: dict[str, Any] = json.loads(listing.stdout)
    return parsed


def _boots(scenario_directory: str) -> bool:
    """Tell whether a scenario's hosts are guests."""
    return "shared/uml/inventory" in (Path(scenario_directory) / "molecule.yml").read_text(encoding="utf-8")


def variables(name: str) -> dict[str, Any]:
    """Return the inventory variables of a host."""
    found: dict[str, Any] = inventory()["_meta"]["hostvars"].get(name, {})
    return found


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run a test that asks for `node` once on each host."""
    if "node" in metafunc.fixturenames:
        names = sorted({name for group in GROUPS for name in inventory().get(group, {}).get("hosts", [])})
        metafunc.parametrize("node", names, indirect=True, scope="module")


@pytest.fixture(scope="module")
def node(request: pytest.FixtureRequest) -> testinfra.host.Host:
    """The testinfra host of one node."""
    name = request.param
    if variables(name).get("ansible_connection") == "ssh":
        return testinfra.host.Host(GuestBackend(name))
    return testinfra.host.Host(NetnsBackend(name, variables(name).get("ansible_netns", name)))


@pytest.fixture(scope="module")
def read(node: testinfra.host.Host) -> Callable[[Iterable[str]], dict[str, str]]:
    """Return a function that reads files of one line each with one command, since a guest takes a second for each."""

    def _read(paths: Iterable[str]) -> dict[str, str]:
        shown = node.check_output(shlex.join(["grep", "-H", "", *paths]))
        return dict(line.split(":", 1) for line in shown.splitlines())

    return _read


@pytest.fixture(scope="module")
def node_vars(node: testinfra.host.Host) -> dict[str, Any]:
    """The inventory variables of that node."""
    return variables(node.backend.name)
