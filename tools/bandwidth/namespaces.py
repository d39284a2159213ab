"""Network namespaces of one's own, joined by a veth pair, and programs that run in them."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Sequence
from typing import Any

from ansible_collections.colocation.testbed.plugins.module_utils import commands


class Pair:
    """Two namespaces: ``here`` with device ``left`` (10.99.0.1), ``there`` with device ``right`` (10.99.0.2)."""

    def __init__(self, name: str, ipv6: bool = True) -> None:
        """Choose names that no other process has; nothing is made yet."""
        self.ipv6 = ipv6
        self.here, self.there = f"{name}-{os.getpid()}-a", f"{name}-{os.getpid()}-b"

    def __enter__(self) -> Pair:
        """Make the namespaces and the link between them."""
        try:
            for space in (self.here, self.there):
                commands.run(["ip", "netns", "add", space])
            commands.run(
                ["ip", "-n", self.here, "link", "add", "left", "type", "veth", "peer", "right", "netns", self.there]
            )
            for space, device, number in ((self.here, "left", 1), (self.there, "right", 2)):
                commands.run(["ip", "-n", space, "link", "set", "lo", "up"])
                commands.run(["ip", "-n", space, "link", "set", device, "up"])
                commands.run(["ip", "-n", space, "addr", "add", f"10.99.0.{number}/24", "dev", device])
                if self.ipv6:
                    commands.run(["ip", "-n", space, "addr", "add", f"fd99::{number}/64", "dev", device, "nodad"])
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        """Delete the namespaces; the link goes with them."""
        for space in (self.here, self.there):
            commands.run(["ip", "netns", "delete", space], check=False)

    def between(self, here: str, there: str) -> Pair:
        """Return a pair of namespaces that are there already, for traffic from one to the other."""
        other = Pair.__new__(Pair)
        other.here, other.there, other.ipv6 = here, there, self.ipv6
        return other

    def reversed(self) -> Pair:
        """Return the same pair with the ends exchanged, for traffic the other way."""
        return self.between(self.there, self.here)

    def argv(self, argv: Sequence[str], space: str = "") -> list[str]:
        """Return the command line that runs another one in a namespace, ``here`` by default."""
        # Not ip netns exec: its /sys of its own would hide the BPF file system.
        return ["nsenter", f"--net=/run/netns/{space or self.here}", *argv]

    def run(self, argv: Sequence[str], **options: Any) -> commands.Result:
        """Run a program in ``here`` as the libraries run theirs. Raises CommandError."""
        return commands.run(self.argv(argv), **options)

    def run_there(self, argv: Sequence[str], **options: Any) -> commands.Result:
        """Run a program in ``there``. Raises CommandError."""
        return commands.run(self.argv(argv, self.there), **options)

    def indexes(self) -> dict[str, int]:
        """Return the index of each device in ``here``."""
        found = json.loads(self.run(["ip", "-j", "link", "show"]).stdout)
        return {item["ifname"]: int(item["ifindex"]) for item in found}

    def start(self, argv: Sequence[str], space: str = "", **options: Any) -> subprocess.Popen[str]:
        """Start a program in a namespace; what it prints, errors too, can be read."""
        return subprocess.Popen(
            self.argv(argv, space), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **options
        )
