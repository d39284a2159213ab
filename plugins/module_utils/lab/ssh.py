# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How the machine that carries a lab reaches its guests by ssh: keys of the lab's own, and one configuration file.

The guests are in a network namespace. A connection is opened there by a short-lived program that hands it over to ssh
(ssh_config(5), ProxyUseFdpass), so that no process stays in the namespace and nothing is forwarded byte by byte.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass

from ansible_collections.colocation.testbed.plugins.module_utils import commands, files
from ansible_collections.colocation.testbed.plugins.module_utils.kernel import netns
from ansible_collections.colocation.testbed.plugins.module_utils.lab.guest import Guest, Keys

DIRECTORY = "ssh"
CONTROL = "control"
_KEYGEN_TIMEOUT_S = 60.0
_EXIT_TIMEOUT_S = 10.0


@dataclass(frozen=True)
class Access:
    """Keys, known hosts and configuration of one lab, in a directory that is removed as a whole."""

    directory: str

    @classmethod
    def of(cls, state_dir: str) -> Access:
        """Return the access to the lab of a state directory."""
        return cls(os.path.join(state_dir, DIRECTORY))

    @property
    def config(self) -> str:
        """The configuration file for ``ssh -F``."""
        return os.path.join(self.directory, "config")

    @property
    def identity(self) -> str:
        """The private key that all guests accept."""
        return os.path.join(self.directory, "id_ed25519")

    @property
    def known_hosts(self) -> str:
        """The guests' keys, so that connections are checked."""
        return os.path.join(self.directory, "known_hosts")

    @property
    def control(self) -> str:
        """Where shared connections have their sockets."""
        return os.path.join(self.directory, CONTROL)

    def host_key(self, name: str) -> str:
        """Return where the private key of a guest is."""
        return os.path.join(self.directory, f"host-{name}")

    def argv(self, name: str, *command: str, connect_timeout_s: int = 5) -> tuple[str, ...]:
        """Return the command line that runs a command on a guest."""
        options = ("-o", "BatchMode=yes", "-o", f"ConnectTimeout={connect_timeout_s}")
        return ("ssh", "-F", self.config, *options, name, *command)


def make_keys(access: Access, names: Iterable[str]) -> None:
    """Make those key pairs of the lab and its guests that are missing. Raises CommandError, FilesError."""
    os.makedirs(access.control, mode=0o700, exist_ok=True)
    for path in (access.identity, *(access.host_key(name) for name in names)):
        if not os.path.exists(f"{path}.pub"):
            files.restore(path, None)  # what a killed run left: ssh-keygen would ask before it replaces a file
            argv = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "colocation.testbed", "-f", path]
            commands.run(argv, timeout_s=_KEYGEN_TIMEOUT_S)


def keys(access: Access, name: str) -> Keys:
    """Return the keys that a guest gets. Raises FilesError where they are missing."""
    host_key = access.host_key(name)
    public = files.read_text(f"{access.identity}.pub")
    return Keys(public, files.read_text(host_key), files.read_text(f"{host_key}.pub"))


def known_hosts(access: Access, guests: Iterable[Guest]) -> str:
    """Return the lines of known_hosts: sshd(8)."""
    lines = []
    for guest in guests:
        kind, key = files.read_text(f"{access.host_key(guest.name)}.pub").split()[:2]
        lines.append(f"{guest.name},{guest.address} {kind} {key}\n")
    return "".join(lines)


def config(access: Access, guests: Iterable[Guest], namespace: str) -> str:
    """Return the configuration file: each guest by its name and by its address."""
    blocks = [
        f"Host {guest.name} {guest.address}\n  HostName {guest.address}\n  HostKeyAlias {guest.name}\n"
        for guest in guests
    ]
    common = (
        "Host *\n"
        "  User root\n"
        f"  IdentityFile {access.identity}\n"
        "  IdentitiesOnly yes\n"
        f"  UserKnownHostsFile {access.known_hosts}\n"
        "  GlobalKnownHostsFile /dev/null\n"
        "  StrictHostKeyChecking yes\n"
        f"  ProxyCommand nsenter --net={netns.path(namespace)} nc.openbsd -F %h %p\n"
        "  ProxyUseFdpass yes\n"
        # A guest that is killed says no goodbye.
        "  ServerAliveInterval 5\n"
        "  ServerAliveCountMax 3\n"
        "  LogLevel ERROR\n"
    )
    return "# Written by role lab; use it with ssh -F.\n" + "".join(blocks) + common


def write(access: Access, guests: Iterable[Guest], namespace: str) -> None:
    """Write known hosts and configuration. Raises FilesError."""
    listed = list(guests)
    files.write_atomic(access.known_hosts, known_hosts(access, listed), 0o600)
    files.write_atomic(access.config, config(access, listed, namespace), 0o600)


def is_written(access: Access, guests: Iterable[Guest], namespace: str) -> bool:
    """Tell whether known hosts and configuration are as write() would leave them."""
    listed = list(guests)
    if not all(os.path.exists(f"{path}.pub") for path in (access.identity, *(access.host_key(g.name) for g in listed))):
        return False
    wanted = {access.known_hosts: known_hosts(access, listed), access.config: config(access, listed, namespace)}
    return all(files.read_text_or_none(path) == text for path, text in wanted.items())


def close_shared(access: Access) -> None:
    """End the connections that Ansible keeps open, which would keep the namespace alive without a name."""
    names = sorted(os.listdir(access.control)) if os.path.isdir(access.control) else []
    for name in names:
        path = os.path.join(access.control, name)
        # A socket that nobody listens on any more is what a killed ssh left; there is nothing to end then.
        commands.run(
            ["ssh", "-F", "/dev/null", "-o", f"ControlPath={path}", "-O", "exit", "lab"],
            timeout_s=_EXIT_TIMEOUT_S,
            check=False,
        )
