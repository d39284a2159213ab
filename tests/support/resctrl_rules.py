"""The rules of the kernel's resctrl file system as a state machine: what the stand-in answers, without FUSE.

Behaviour, errors and the texts of info/last_cmd_status follow Linux' fs/resctrl/rdtgroup.c and ctrlmondata.c. What it
does not do: no cache is partitioned, children don't inherit their parent's group, pseudo-locking is refused.
"""

from __future__ import annotations

import errno
from dataclasses import dataclass, field

from tests.support.resctrl_machine import (
    MASK,
    UNLIMITED_MBPS,
    Machine,
    Resource,
    bit_usage,
    format_list,
    format_mask,
    integer,
    parse_list,
    parse_mask,
)

MAX_CLOSIDS = 32
BASE_FILES = ("cpus", "cpus_list", "tasks")
GROUP_FILES = (*BASE_FILES, "mode", "schemata", "size")
EVENTS = ("llc_occupancy", "mbm_local_bytes", "mbm_total_bytes")


@dataclass
class Monitor:
    """A monitoring group."""

    name: str
    cpus: frozenset[int] = frozenset()


@dataclass
class Group:
    """A control group: values by resource and cache id."""

    name: str
    closid: int
    values: dict[str, dict[int, int]]
    cpus: frozenset[int] = frozenset()
    mode: str = "shareable"
    monitors: dict[str, Monitor] = field(default_factory=dict)


class RefusedError(OSError):
    """What the kernel answers: a number, and for some a line in last_cmd_status."""

    def __init__(self, number: int) -> None:
        """Name the error number."""
        super().__init__(number, errno.errorcode[number])


class Resctrl:
    """The mounted file system."""

    def __init__(self, machine: Machine) -> None:
        """Start as a fresh mount: one group that holds everything."""
        self.machine = machine
        self.resources = {item.name: item for item in machine.resources()}
        self.status = ""
        self.assigned: dict[int, tuple[object, str, str]] = {}
        self.groups = {"": Group("", 0, self._full(), machine.cpus)}
        self.closids = min([MAX_CLOSIDS, *(item.num_closids for item in self.resources.values())])

    def _full(self) -> dict[str, dict[int, int]]:
        unlimited = UNLIMITED_MBPS if self.machine.mba_mbps else None
        return {
            item.name: dict.fromkeys(item.ids, unlimited if unlimited and item.name == "MB" else item.full)
            for item in self.resources.values()
        }

    def say(self, text: str) -> None:
        """Add a line to last_cmd_status."""
        self.status += f"{text}\n"

    # Groups

    def make(self, name: str) -> None:
        """Make a control group, as mkdir in the root does."""
        if "\n" in name:
            raise RefusedError(errno.EINVAL)
        self.status = ""
        if not self.resources:
            raise RefusedError(errno.EPERM)
        used = {group.closid for group in self.groups.values()}
        free = [number for number in range(self.closids) if number not in used]
        if not free:
            self.say("Out of CLOSIDs")
            raise RefusedError(errno.ENOSPC)
        self._take_rmid()
        values = {item.name: self._initial(item) for item in self.resources.values()}
        self.groups[name] = Group(name, free[0], values)

    def make_monitor(self, group: Group, name: str) -> None:
        """Make a monitoring group, as mkdir in mon_groups does."""
        if "\n" in name:
            raise RefusedError(errno.EINVAL)
        self.status = ""
        if name == "mon_groups":
            raise RefusedError(errno.EPERM)
        self._take_rmid()
        group.monitors[name] = Monitor(name)

    def _take_rmid(self) -> None:
        if not self.machine.monitoring:
            return
        used = sum(1 + len(group.monitors) for group in self.groups.values())
        if used >= self.machine.num_rmids:
            self.say("Out of RMIDs")
            raise RefusedError(errno.ENOSPC)

    def _initial(self, resource: Resource) -> dict[int, int]:
        """Return a new group's values: all that is shareable or unused, cut to the first run of bits."""
        if resource.kind != MASK:
            return dict.fromkeys(resource.ids, UNLIMITED_MBPS if self.machine.mba_mbps else resource.full)
        values = {}
        for cache in resource.ids:
            used = wanted = resource.shareable_bits
            for group in self.groups.values():
                mine = group.values[resource.name][cache]
                peer = self._peer(resource)
                mine |= group.values[peer][cache] if peer else 0
                used |= mine
                wanted |= mine if group.mode == "shareable" else 0
            wanted |= resource.full & ~used
            low = wanted & -wanted
            run = wanted & ~(wanted + low) if wanted else 0
            if bin(run).count("1") < resource.min_cbm_bits:
                self.say(f"No space on {resource.name}:{cache}")
                raise RefusedError(errno.ENOSPC)
            values[cache] = run
        return values

    def _peer(self, resource: Resource) -> str | None:
        return {"L3CODE": "L3DATA", "L3DATA": "L3CODE"}.get(resource.name)

    def remove(self, group: Group) -> None:
        """Remove a control group: its tasks and CPUs go to the root group."""
        self.groups[""].cpus |= group.cpus
        self.assigned = {tid: place for tid, place in self.assigned.items() if place[1] != group.name}
        del self.groups[group.name]

    def remove_monitor(self, group: Group, name: str) -> None:
        """Remove a monitoring group: its tasks go to its control group."""
        for tid, (identity, owner, monitor) in list(self.assigned.items()):
            if (owner, monitor) == (group.name, name):
                self.assigned[tid] = (identity, owner, "")
        del group.monitors[name]

    # Tasks

    def place(self, tid: int) -> tuple[str, str]:
        """Return the control and the monitoring group of a task."""
        found = self.assigned.get(tid)
        if found is None or found[0] != self.machine.tasks.identity(tid):
            return "", ""
        return found[1], found[2]

    def tasks(self, group: Group, monitor: Monitor | None) -> str:
        """Return the content of tasks: a control group shows those of its monitoring groups too."""
        found = []
        for tid in sorted(self.machine.tasks.list()):
            owner, inside = self.place(tid)
            if owner == group.name and (monitor is None or inside == monitor.name):
                found.append(f"{tid}\n")
        return "".join(found)

    def move(self, group: Group, monitor: Monitor | None, text: str, caller: int) -> None:
        """Write to tasks: one number, 0 is the writer."""
        self.status = ""
        try:
            tid = integer(text.strip())
        except ValueError:
            raise RefusedError(errno.EINVAL) from None
        if tid < 0:
            raise RefusedError(errno.EINVAL)
        tid = tid or caller
        identity = self.machine.tasks.identity(tid)
        if identity is None:
            self.say(f"No task {tid}")
            raise RefusedError(errno.ESRCH)
        owner, inside = self.place(tid)
        if monitor is not None and owner != group.name:
            self.say("Can't move task to different control group")
            raise RefusedError(errno.EINVAL)
        if monitor is None and (owner, inside) == (group.name, ""):
            return
        self.assigned[tid] = (identity, group.name, monitor.name if monitor else "")

    # CPUs

    def show_cpus(self, cpus: frozenset[int], as_list: bool) -> str:
        """Return the content of cpus or cpus_list."""
        count = max(self.machine.cpus) + 1
        return f"{format_list(cpus) if as_list else format_mask(cpus, count)}\n"

    def write_cpus(self, group: Group, monitor: Monitor | None, text: str, as_list: bool) -> None:
        """Write to cpus or cpus_list."""
        self.status = ""
        try:
            wanted = (parse_list if as_list else parse_mask)(text)
        except ValueError:
            self.say("Bad CPU list/mask")
            raise RefusedError(errno.EINVAL) from None
        if wanted - self.machine.cpus:
            self.say("Can only assign online CPUs")
            raise RefusedError(errno.EINVAL)
        if monitor is not None:
            self._monitor_cpus(group, monitor, wanted)
        else:
            self._group_cpus(group, wanted)

    def _monitor_cpus(self, group: Group, monitor: Monitor, wanted: frozenset[int]) -> None:
        if wanted - group.cpus:
            self.say("Can only add CPUs to mongroup that belong to parent")
            raise RefusedError(errno.EINVAL)
        for other in group.monitors.values():
            other.cpus -= wanted
        monitor.cpus = wanted

    def _group_cpus(self, group: Group, wanted: frozenset[int]) -> None:
        dropped = group.cpus - wanted
        if dropped and not group.name:
            self.say("Can't drop CPUs from default group")
            raise RefusedError(errno.EINVAL)
        self.groups[""].cpus |= dropped
        for other in self.groups.values():
            if other is not group:
                other.cpus -= wanted - group.cpus
                for monitor in other.monitors.values():
                    monitor.cpus &= other.cpus
        group.cpus = wanted
        for monitor in group.monitors.values():
            monitor.cpus = frozenset()

    # Schemata and mode

    def show_schemata(self, group: Group) -> str:
        """Return the content of schemata; names are set flush right as the kernel does it."""
        width = max(len(name) for name in self.resources)
        lines = []
        for resource in self.resources.values():
            if group.closid < resource.num_closids:
                shown = "x" if resource.kind == MASK else "d"
                pairs = (f"{cache}={value:{shown}}" for cache, value in group.values[resource.name].items())
                lines.append(f"{resource.name:>{width}}:{';'.join(pairs)}\n")
        return "".join(lines)

    def write_schemata(self, group: Group, text: str) -> None:
        """Write to schemata: all lines or none."""
        if not text.endswith("\n"):
            raise RefusedError(errno.EINVAL)
        self.status = ""
        staged: dict[tuple[str, int], int] = {}
        for line in text[:-1].split("\n"):
            name, colon, rest = line.partition(":")
            name = name.strip()
            if not colon:
                self.say("Missing ':'")
                raise RefusedError(errno.EINVAL)
            if not rest:
                self.say(f"Missing '{name}' value")
                raise RefusedError(errno.EINVAL)
            resource = self.resources.get(name)
            if resource is None or group.closid >= resource.num_closids:
                self.say(f"Unknown or unsupported resource name '{name}'")
                raise RefusedError(errno.EINVAL)
            self._stage(group, resource, rest, staged)
        for (name, cache), value in staged.items():
            group.values[name][cache] = value

    def _stage(self, group: Group, resource: Resource, rest: str, staged: dict[tuple[str, int], int]) -> None:
        for part in rest.split(";"):
            if not part:
                return
            number, equals, value = part.partition("=")
            try:
                cache = integer(number, 10)
            except ValueError:
                equals = ""
            if not equals:
                self.say("Missing '=' or non-numeric domain")
                raise RefusedError(errno.EINVAL)
            if cache not in resource.ids:
                raise RefusedError(errno.EINVAL)
            if (resource.name, cache) in staged:
                self.say(f"Duplicate domain {cache}")
                raise RefusedError(errno.EINVAL)
            check = self._mask if resource.kind == MASK else self._bandwidth
            staged[resource.name, cache] = check(group, resource, cache, value.strip())

    def _bandwidth(self, _group: Group, resource: Resource, _cache: int, text: str) -> int:
        try:
            value = integer(text, 10)
        except ValueError:
            value = 2**32
        if value >= 2**32:
            self.say(f"Invalid MB value {text}")
            raise RefusedError(errno.EINVAL)
        if self.machine.mba_mbps:
            return value
        if not resource.min_bandwidth <= value <= resource.max_bandwidth:
            self.say(f"MB value {value} out of range [{resource.min_bandwidth},{resource.max_bandwidth}]")
            raise RefusedError(errno.EINVAL)
        return -(-value // resource.bandwidth_gran) * resource.bandwidth_gran

    def _mask(self, group: Group, resource: Resource, cache: int, text: str) -> int:
        try:
            value = integer(text, 16)
        except ValueError:
            self.say(f"Non-hex character in the mask {text}")
            raise RefusedError(errno.EINVAL) from None
        if (resource.min_cbm_bits > 0 and value == 0) or value > resource.full:
            self.say("Mask out of range")
            raise RefusedError(errno.EINVAL)
        run = value & ~(value + (value & -value))
        if not resource.sparse_masks and run != value:
            self.say(f"The mask {value:x} has non-consecutive 1-bits")
            raise RefusedError(errno.EINVAL)
        if bin(run).count("1") < resource.min_cbm_bits:
            self.say(f"Need at least {resource.min_cbm_bits} bits in the mask")
            raise RefusedError(errno.EINVAL)
        if self._overlaps(group, resource, cache, value, only_exclusive=True):
            self.say("Overlaps with exclusive group")
            raise RefusedError(errno.EINVAL)
        if group.mode == "exclusive" and self._overlaps(group, resource, cache, value, only_exclusive=False):
            self.say("Overlaps with other group")
            raise RefusedError(errno.EINVAL)
        return value

    def _overlaps(self, group: Group, resource: Resource, cache: int, value: int, only_exclusive: bool) -> bool:
        if not only_exclusive and value & resource.shareable_bits:
            return True
        names = [name for name in (resource.name, self._peer(resource)) if name]
        return any(
            value & other.values[name][cache]
            for other in self.groups.values()
            if other is not group and (other.mode == "exclusive" or not only_exclusive)
            for name in names
        )

    def write_mode(self, group: Group, text: str) -> None:
        """Write to mode."""
        if not text.endswith("\n"):
            raise RefusedError(errno.EINVAL)
        self.status = ""
        mode = text[:-1]
        if mode == group.mode:
            return
        if mode == "exclusive":
            self._require_exclusive(group)
        elif mode != "shareable":
            self.say("Unknown or unsupported mode")
            raise RefusedError(errno.EINVAL)
        group.mode = mode

    def _require_exclusive(self, group: Group) -> None:
        caches = [item for item in self.resources.values() if item.kind == MASK]
        if not caches:
            self.say("Cannot be exclusive without CAT/CDP")
            raise RefusedError(errno.EINVAL)
        for resource in caches:
            for cache, value in group.values[resource.name].items():
                if self._overlaps(group, resource, cache, value, only_exclusive=False):
                    self.say("Schemata overlaps")
                    raise RefusedError(errno.EINVAL)

    def size(self, group: Group) -> str:
        """Return the content of size: bytes for a cache, the value for bandwidth."""
        width = max(len(name) for name in self.resources)
        lines = []
        for resource in self.resources.values():
            pairs = []
            for cache, value in group.values[resource.name].items():
                share = bin(value).count("1") * resource.cache_bytes // resource.ways if resource.ways else value
                pairs.append(f"{cache}={share}")
            lines.append(f"{resource.name:>{width}}:{';'.join(pairs)}\n")
        return "".join(lines)

    def usage(self, resource: Resource) -> str:
        """Return info/<cache>/bit_usage."""
        sums: dict[str, dict[int, int]] = {mode: dict.fromkeys(resource.ids, 0) for mode in ("shareable", "exclusive")}
        for group in self.groups.values():
            for cache, value in group.values[resource.name].items():
                sums[group.mode][cache] |= value
        return f"{bit_usage(resource, sums['shareable'], sums['exclusive'])}\n"
