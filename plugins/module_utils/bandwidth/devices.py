# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Devices: what is attached to them now, what must be, and the lines for tc(8) that lead there and back."""

from __future__ import annotations

import fnmatch
import itertools
import json
import os
import re
import socket
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ansible_collections.colocation.testbed.plugins.module_utils import commands
from ansible_collections.colocation.testbed.plugins.module_utils.bandwidth import tree
from ansible_collections.colocation.testbed.plugins.module_utils.bandwidth.tables import HTB_DEFAULT, HTB_MAJOR
from ansible_collections.colocation.testbed.plugins.module_utils.bandwidth.values import BandwidthError
from ansible_collections.colocation.testbed.plugins.module_utils.kernel import htb_classes

Run = Callable[..., commands.Result]
Classes = Callable[[int], Sequence[htb_classes.HtbClass]]
# Far from what other tools take by themselves (tc counts down from 49152); an entry of another program there is kept.
PREFERENCE = 45056
HANDLE = "0x1"
FQ_HANDLE = "b000:"
HTB_HANDLE = f"{HTB_MAJOR}:"
# What the kernel gives a device by itself, recognisable by handle 0.
_DEFAULT_HANDLE = "0:"
# Deep enough that the programs are what drops, not the queue behind them.
_FQ_OPTIONS = "limit 100000 flow_limit 10000"


@dataclass(frozen=True)
class Hook:
    """A place for a program on a device: direction for tc(8), program, preference."""

    direction: str
    program: str
    preference: int

    @property
    def key(self) -> str:
        """Return what names the entry to tc(8)."""
        return f"{self.direction} protocol all pref {self.preference} handle {HANDLE}"


HOOKS = {
    "egress": Hook("egress", "shape", PREFERENCE),
    "ingress": Hook("ingress", "police", PREFERENCE),
    # Before a policer on the same link.
    "pod": Hook("ingress", "stamp", PREFERENCE - 1),
    # Goes with hook ingress, where packets are diverted to a device of ours.
    "learn": Hook("egress", "learn", PREFERENCE - 1),
}
CHOICES = ("egress", "ingress", "pod")
DIVERT = "divert"
# The device that packets pass on their way in is called after the index of the one that they arrive at.
INTERMEDIATE = re.compile(r"ctb\d+\Z")
_LINK = "link "


@dataclass(frozen=True)
class Attached:
    """What a device has: index, kind; root qdisc and leaves; clsact or ingress; filters and HTB classes."""

    index: int
    root_kind: str
    root_handle: str
    leaves: tuple[tuple[str, str, str], ...]
    hooks: str
    filters: Mapping[str, tuple[Mapping[str, Any], ...]]
    classes: frozenset[tree.Shown]

    @property
    def has_default_root(self) -> bool:
        """Tell whether the kernel chose the root qdisc by itself."""
        return self.root_handle == _DEFAULT_HANDLE

    def paces(self) -> bool:
        """Tell whether all packets pass an fq, which keeps departure times."""
        if self.root_kind == "fq":
            return True
        return (
            self.root_kind == "mq" and bool(self.leaves) and all(kind == "fq" for kind, _handle, _parent in self.leaves)
        )


def _json_parts(text: str) -> list[Any]:
    """Return the JSON values in a text that holds one for each command of a batch."""
    decoder, place, found = json.JSONDecoder(), 0, []
    while place < len(text):
        if text[place].isspace():
            place += 1
            continue
        value, place = decoder.raw_decode(text, place)
        found.append(value)
    return found


def indexes() -> dict[str, int]:
    """Return the index of each device in this network namespace."""
    return {name: index for index, name in socket.if_nameindex()}


def expand(pattern: str, there: Collection[str]) -> list[str]:
    """Return the devices that a name or a shell pattern means. Raises BandwidthError for a pattern without any."""
    if pattern in there or not any(sign in pattern for sign in "*?["):
        return [pattern]
    found = sorted(name for name in there if fnmatch.fnmatchcase(name, pattern) and not INTERMEDIATE.match(name))
    if not found:
        raise BandwidthError(
            f"devices {pattern!r}: none is here (there are: {', '.join(sorted(there))}); correct the pattern"
        )
    return found


def default_route(run: Run) -> list[str]:
    """Return the devices of the default routes of IPv4 and IPv6, all of those that share the traffic.

    Raises BandwidthError when there is none.
    """
    found: list[str] = []
    for family in ("-4", "-6"):
        shown = run(["ip", "-j", family, "route", "show", "default"], check=False)
        found += _route_devices(shown.stdout) if shown.status == 0 else []
    if not found:
        raise BandwidthError("device of the default route: there is no default route; name the device")
    return list(dict.fromkeys(found))


def _route_devices(text: str) -> list[str]:
    """Return the devices of the routes that ``ip -j`` printed; routes such as unreachable lead nowhere."""
    try:
        routes = [item for item in json.loads(text or "[]") if item.get("type", "unicast") == "unicast"]
        hops = [hop for item in routes for hop in (item, *item.get("nexthops", ()))]
        return [str(hop["dev"]) for hop in hops if "dev" in hop]
    except (ValueError, TypeError, AttributeError) as exc:
        raise BandwidthError(
            f"ip -j route show: unexpected output ({exc!r}); update iproute2, or name the device"
        ) from exc


def look(
    names: Collection[str], there: Mapping[str, int], run: Run, classes: Classes | None = None
) -> dict[str, Attached]:
    """Return what devices have now; those without an index are left out.

    ``classes`` tells of the classes of a device by its index; without it tc(8) is asked. Raises CommandError,
    BandwidthError.
    """
    there = {name: index for name, index in sorted(there.items()) if name in names}
    batch = "".join(
        f"qdisc show dev {name}\nfilter show dev {name} egress\nfilter show dev {name} ingress\n" for name in there
    )
    shown = run(["tc", "-j", "-batch", "-"], input_text=batch).stdout if batch else ""
    try:
        parts = _json_parts(shown)
    except ValueError as exc:
        raise BandwidthError(f"tc: printed no JSON ({exc}); iproute2 of Debian 12 or later is needed") from exc
    if len(parts) != 3 * len(there):
        raise BandwidthError(f"tc: answered {len(parts)} of {3 * len(there)} questions; update iproute2")
    found = {}
    for number, (name, index) in enumerate(there.items()):
        qdiscs, out, into = parts[3 * number : 3 * number + 3]
        found[name] = _attached(name, index, qdiscs, {"egress": out, "ingress": into}, run, classes)
    return found


def look_now(
    names: Collection[str],
    there: Mapping[str, int],
    indexes: Callable[[], Mapping[str, int]],
    run: Run,
    classes: Classes | None = None,
) -> dict[str, Attached]:
    """Do what look() does, and leave out what goes away meanwhile. Raises as look()."""
    while True:
        try:
            return look(names, there, run, classes)
        except commands.CommandError:
            left = {name: index for name, index in indexes().items() if there.get(name) == index}
            if len(left) == len(there):
                raise
            there = left


def _classes(name: str, index: int, run: Run, classes: Classes | None) -> frozenset[tree.Shown]:
    if classes is not None:
        try:
            return frozenset(tree.shown_of(item) for item in classes(index))
        except htb_classes.HtbClassesError as exc:
            raise BandwidthError(f"device {name}: {exc}") from exc
    # JSON of classes lacks what HTB has (iproute2 6.1).
    return frozenset(tree.parse_classes(run(["tc", "-d", "class", "show", "dev", name]).stdout))


def _attached(
    name: str, index: int, qdiscs: list[Any], filters: dict[str, list[Any]], run: Run, classes: Classes | None
) -> Attached:
    root = next((item for item in qdiscs if item.get("root")), {"kind": "noqueue", "handle": _DEFAULT_HANDLE})
    hooks = [item["kind"] for item in qdiscs if item["kind"] in ("clsact", "ingress")]
    leaves = [
        (item["kind"], item["handle"], item["parent"])
        for item in qdiscs
        if "parent" in item and item["kind"] not in ("clsact", "ingress")
    ]
    return Attached(
        index=index,
        root_kind=root["kind"],
        root_handle=root["handle"],
        leaves=tuple(sorted(leaves)),
        hooks=hooks[0] if hooks else "",
        filters={hook: tuple(item for item in found if item.get("options")) for hook, found in filters.items()},
        classes=_classes(name, index, run, classes) if root["kind"] == "htb" else frozenset(),
    )


def our_filter(seen: Attached, hook: str) -> Mapping[str, Any] | None:
    """Return the entry at the preference of a hook, whoever made it."""
    place = HOOKS[hook]
    return next((item for item in seen.filters[place.direction] if item.get("pref") == place.preference), None)


def program_id(entry: Mapping[str, Any] | None) -> int:
    """Return the id of the program of an entry, 0 for none."""
    return int(entry["options"].get("prog", {}).get("id", 0)) if entry else 0


def root_lines(name: str, plane: str, seen: Attached, replace: bool) -> list[str]:
    """Return the lines that give a device the root qdisc of its plane. Raises BandwidthError for a foreign one."""
    if plane in ("police", "stamp") or (plane == "edt" and seen.paces()):
        return []
    if plane == "htb" and (seen.root_kind, seen.root_handle) == ("htb", HTB_HANDLE):
        return []
    if not seen.has_default_root or not replace:
        why = "which isn't the kernel's default" if not seen.has_default_root else "and replace_qdisc is false"
        raise BandwidthError(
            f"device {name}: has root qdisc {seen.root_kind} {seen.root_handle}, {why}; remove it, or use plane police"
        )
    if plane == "htb":
        return [f"qdisc add dev {name} root handle {HTB_HANDLE} htb default {HTB_DEFAULT:x}"]
    if seen.root_kind == "mq":
        lines = [f"qdisc add dev {name} root handle {FQ_HANDLE} mq"]
        # One leaf for each transmit queue, numbered from 1 in hexadecimal.
        queues = range(1, len(seen.leaves) + 1)
        return lines + [f"qdisc replace dev {name} parent {FQ_HANDLE}{queue:x} fq {_FQ_OPTIONS}" for queue in queues]
    return [f"qdisc add dev {name} root handle {FQ_HANDLE} fq {_FQ_OPTIONS}"]


def filter_lines(name: str, hook: str, pins: str, seen: Attached, target: str = "") -> list[str]:
    """Return the lines that attach the program of a hook, or that divert to a target. Raises BandwidthError."""
    place = HOOKS[hook]
    if seen.hooks == "ingress" and place.direction == "egress":
        raise BandwidthError(f"device {name}: has qdisc ingress, beside which clsact can't be; replace it by clsact")
    made = [] if seen.hooks else [f"qdisc add dev {name} clsact"]
    start = f"filter replace dev {name} {place.key} bpf"
    if target:
        program = os.path.join(pins, "programs", DIVERT)
        return [*made, f"{start} object-pinned {program} action mirred egress redirect dev {target}"]
    return [*made, f"{start} da object-pinned {os.path.join(pins, 'programs', place.program)}"]


def target_of(entry: Mapping[str, Any]) -> str:
    """Return the device to which an entry diverts packets, the empty text for none."""
    actions = entry["options"].get("actions", [])
    return next((str(item.get("to_dev", "")) for item in actions if item.get("kind") == "mirred"), "")


def fresh(index: int = 0) -> Attached:
    """Return what a device has that is yet to be made."""
    return Attached(index, "noqueue", _DEFAULT_HANDLE, (), "", {"egress": (), "ingress": ()}, frozenset())


def detach_lines(
    name: str, hooks: Mapping[str, Mapping[str, Any]], ids: frozenset[int], seen: Attached, keep_root: bool
) -> list[str]:
    """Return the lines that take our programs at some hooks, and what was made for them, off a device.

    ``hooks`` has the record of each; with ``keep_root`` a hook that needs the root qdisc remains. What is somebody
    else's stays.
    """
    there = [*hooks, *(["learn"] if "ingress" in hooks and "learn" not in hooks else [])]
    mine = [hook for hook in there if program_id(our_filter(seen, hook)) in ids - {0}]
    lines = [f"filter delete dev {name} {HOOKS[hook].key} bpf" for hook in mine]
    remaining = sum(len(found) for found in seen.filters.values()) - len(mine)
    if any(raw.get("made_clsact") for raw in hooks.values()) and seen.hooks == "clsact" and not remaining:
        lines.append(f"qdisc delete dev {name} clsact")
    made_root = any(raw.get("made_root") for raw in hooks.values())
    if made_root and not keep_root and seen.root_handle in (FQ_HANDLE, HTB_HANDLE):
        lines.append(f"qdisc delete dev {name} root")
    return lines


def apply(lines: Sequence[str], run: Run) -> None:
    """Carry out lines of tc(8), and of ip(8) about links, up to the first that is refused. Raises CommandError."""
    for about_links, part in itertools.groupby(lines, key=lambda line: line.startswith(_LINK)):
        run(["ip" if about_links else "tc", "-batch", "-"], input_text="\n".join(part) + "\n")
