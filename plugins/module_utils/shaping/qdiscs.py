# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Put HTB or TBF on a device and take it off again: what is there, lines for tc(8) and ip(8), journal, read-back.

What arrives cannot wait at its device, so it is sent through an intermediate one (ifb), where it leaves.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ansible_collections.colocation.testbed.plugins.module_utils import commands, journal
from ansible_collections.colocation.testbed.plugins.module_utils.bandwidth import devices, intermediate
from ansible_collections.colocation.testbed.plugins.module_utils.bandwidth.values import BandwidthError
from ansible_collections.colocation.testbed.plugins.module_utils.kernel import netns_value
from ansible_collections.colocation.testbed.plugins.module_utils.shaping import peers
from ansible_collections.colocation.testbed.plugins.module_utils.shaping.wanted import Wanted

JOURNAL_KIND = "qdisc"
IFB = "ctbwifb0"
PREFERENCE = 45100
_BY = "bandwidth_shaper"


@dataclass(frozen=True)
class There:
    """What there is of ours: handle of the root of the device and of the ifb, what is sent there; '' is none."""

    root: str = ""
    ifb: bool = False
    ifb_root: str = ""
    redirected: str = ""

    @property
    def nothing(self) -> bool:
        """Tell whether nothing of ours is there."""
        return not (self.root or self.ifb or self.redirected)


def target(device: str) -> tuple[str, dict[str, Any] | None]:
    """Return a device's name in the journal, and its namespace as it is written down there."""
    space = netns_value.current()
    if space is None:
        return device, None
    return f"{space.name or space.inode}/{device}", {
        "inode": space.inode, "boot_id": space.boot_id, "name": space.name
    }  # fmt: skip


def _indexes(run: devices.Run) -> dict[str, int]:
    return {item["ifname"]: int(item["ifindex"]) for item in json.loads(run(["ip", "-j", "link", "show"]).stdout)}


def look(device: str, run: devices.Run) -> tuple[There, devices.Attached]:
    """Return what there is of ours, and all that the device has. Raises BandwidthError, CommandError."""
    indexes = _indexes(run)
    if device not in indexes:
        raise BandwidthError(f"device {device}: does not exist here (there are: {', '.join(sorted(indexes))})")
    seen = devices.look({device, IFB}, indexes, run)
    ours = tuple(peers.HANDLES.values())
    found, ifb = seen[device], seen.get(IFB)
    there = There(
        root=found.root_handle if found.root_handle in ours else "",
        ifb=ifb is not None,
        ifb_root=ifb.root_handle if ifb is not None and ifb.root_handle in ours else "",
        redirected=next((item["protocol"] for item in found.filters["ingress"] if item.get("pref") == PREFERENCE), ""),
    )
    return there, found


def removal(device: str, there: There, seen: devices.Attached, made_hook: bool) -> tuple[list[str], list[str]]:
    """Return lines for tc(8), and arguments for ip(8) after them, that take everything of ours off."""
    lines = [f"qdisc delete dev {device} root"] if there.root else []
    if there.redirected:
        lines.append(f"filter delete dev {device} ingress protocol {there.redirected} pref {PREFERENCE}")
    others = sum(item.get("pref") != PREFERENCE for found in seen.filters.values() for item in found)
    if made_hook and seen.hooks == "clsact" and not others:
        lines.append(f"qdisc delete dev {device} clsact")
    return lines, [f"link delete dev {IFB}"] if there.ifb else []


def lines_for(wanted: Wanted, hooks: str) -> tuple[list[str], list[str]]:
    """Return arguments for ip(8) and lines for tc(8) that bring a shaper about on a device that has none of ours."""
    links: list[str] = []
    lines: list[str] = []
    for direction in wanted.directions:
        place = wanted.device if direction == "egress" else IFB
        classes = wanted.of(direction)
        if wanted.kind == "tbf":
            lines += peers.tbf_lines(place, peers.limit_of(classes))
        else:
            lines += peers.htb_lines(place, wanted, classes)
        if direction == "ingress":
            links = [f"link add {IFB} type ifb", *intermediate.silent_lines(IFB), f"link set dev {IFB} up"]
            lines += [] if hooks else [f"qdisc add dev {wanted.device} clsact"]
            lines.append(
                f"filter add dev {wanted.device} ingress protocol {peers.MATCHED[wanted.family][0]} pref {PREFERENCE} "
                f"u32 match u32 0 0 action mirred egress redirect dev {IFB}"
            )
    return links, lines


def expected(wanted: Wanted) -> dict[str, str]:
    """Return what ``applied`` reads when a shaper is in place, by direction and key."""
    found = {}
    for direction in wanted.directions:
        classes = wanted.of(direction)
        tbf = wanted.kind == "tbf"
        texts = peers.tbf_wanted(peers.limit_of(classes)) if tbf else peers.htb_wanted(wanted, classes)
        found.update({f"{direction}/{key}": text for key, text in texts.items()})
        found[f"{direction}/root"] = peers.HANDLES[wanted.kind]
    return found


def applied(wanted: Wanted, there: There, run: devices.Run) -> dict[str, str]:
    """Return what the kernel says of a shaper, by direction and key. Raises CommandError."""
    found = {}
    for direction in wanted.directions:
        place, handle = (wanted.device, there.root) if direction == "egress" else (IFB, there.ifb_root)
        if not handle or (direction == "ingress" and there.redirected != peers.MATCHED[wanted.family][0]):
            continue
        found[f"{direction}/root"] = handle
        if handle == peers.HANDLES["tbf"]:
            texts = peers.read_tbf(json.loads(run(["tc", "-j", "qdisc", "show", "dev", place]).stdout))
        else:
            shown = run(["tc", "-d", "class", "show", "dev", place]).stdout
            filters = run(["tc", "filter", "show", "dev", place, "parent", handle]).stdout
            texts = peers.read_htb(shown, filters)
        found.update({f"{direction}/{key}": text for key, text in texts.items()})
    return found


def dropped(wanted: Wanted, there: There, run: devices.Run) -> int | None:
    """Return packets that the shaper's queues dropped since they were made, None where nothing shapes."""
    places = [place for place, handle in ((wanted.device, there.root), (IFB, there.ifb_root)) if handle]
    total = 0
    for place in places:
        shown = json.loads(run(["tc", "-s", "-j", "qdisc", "show", "dev", place]).stdout)
        # The root of a tree counts what its queues drop as well.
        total += sum(int(item.get("drops", 0)) for item in shown if item.get("root"))
    return total if places else None


def record(wanted: Wanted, hooks: str, book: journal.Journal) -> None:
    """Make what follows undoable."""
    name, space = target(wanted.device)
    ingress = "ingress" in wanted.directions
    previous = {"device": wanted.device, "netns": space, "made_hook": ingress and not hooks}
    book.record(JOURNAL_KIND, name, previous, _BY, note=wanted.kind)


def _made_hook(entries: Sequence[journal.Entry], device: str) -> bool:
    name, _space = target(device)
    found = [item.previous for item in entries if item.kind == JOURNAL_KIND and item.target == name]
    return any(isinstance(previous, Mapping) and bool(previous.get("made_hook")) for previous in found)


def carry_out(links: Sequence[str], lines: Sequence[str], run: devices.Run) -> None:
    """Carry out arguments of ip(8), then lines of tc(8), in one start of each. Raises CommandError."""
    if links:
        run(["ip", "-batch", "-"], input_text="\n".join(links) + "\n")
    devices.apply(lines, run)


def _take_off(device: str, made_hook: bool, run: devices.Run) -> bool:
    there, seen = look(device, run)
    lines, links = removal(device, there, seen, made_hook)
    devices.apply(lines, run)
    carry_out(links, (), run)
    return bool(lines or links)


def take_off(device: str, book: journal.Journal, run: devices.Run) -> bool:
    """Remove what is ours from a device and forget it; tells whether there was anything. Raises CommandError."""
    done = _take_off(device, _made_hook(book.entries(), device), run)
    book.forget(JOURNAL_KIND, target(device)[0])
    return done


def undo(entry: journal.Entry, check: bool, run: devices.Run = commands.run) -> journal.Outcome:
    """Take an entry of the journal back: in its network namespace, which may be gone with all that was in it."""
    raw = entry.previous if isinstance(entry.previous, Mapping) else {}
    device, space = str(raw.get("device", entry.target)), raw.get("netns")
    prefix: tuple[str, ...] | None = ()
    if isinstance(space, Mapping):
        prefix = netns_value.entering(netns_value.Space(space["inode"], space["boot_id"], space["name"]))
    if prefix is None:
        return journal.Outcome("undone", f"{entry.target}: is gone with its network namespace")
    inside = prefix

    def there(argv: Sequence[str], **options: Any) -> commands.Result:
        return run([*inside, *argv], **options)

    try:
        if device not in _indexes(there):
            return journal.Outcome("undone", f"{entry.target}: is gone")
        if not check:
            _take_off(device, bool(raw.get("made_hook")), there)
    except (BandwidthError, commands.CommandError) as exc:
        return journal.Outcome("failed", str(exc))
    return journal.Outcome("undone", f"{entry.target}: shaper taken off")
