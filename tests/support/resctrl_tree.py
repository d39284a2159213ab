"""The stand-in's directory tree: which paths there are, and what reading and writing them does."""

from __future__ import annotations

import errno
from collections.abc import Callable
from dataclasses import dataclass

from tests.support.resctrl_machine import MASK
from tests.support.resctrl_rules import EVENTS, GROUP_FILES, Group, Monitor, RefusedError, Resctrl

Read = Callable[[], str]
Write = Callable[[str, int], None]
READ_ONLY, WRITABLE = 0o444, 0o644


@dataclass(frozen=True)
class File:
    """A file: how it is read, and how it is written if it can be (text, number of the writing process)."""

    read: Read
    write: Write | None = None

    @property
    def mode(self) -> int:
        """Return the permission bits."""
        return WRITABLE if self.write else READ_ONLY


Directory = dict[str, "File | Directory"]


class Tree:
    """Paths of the mounted file system. Errors are OSError with the kernel's number."""

    def __init__(self, state: Resctrl) -> None:
        """Show the state."""
        self.state = state

    def find(self, path: str) -> File | Directory:
        """Return what is at a path. Raises OSError ENOENT."""
        place: File | Directory = self._root()
        for part in filter(None, path.split("/")):
            if not isinstance(place, dict) or part not in place:
                raise RefusedError(errno.ENOENT)
            place = place[part]
        return place

    def list(self, path: str) -> list[str]:
        """Return the names in a directory."""
        place = self.find(path)
        if not isinstance(place, dict):
            raise RefusedError(errno.ENOTDIR)
        return list(place)

    def read(self, path: str) -> bytes:
        """Return the content of a file."""
        place = self.find(path)
        if isinstance(place, dict):
            raise RefusedError(errno.EISDIR)
        return place.read().encode()

    def write(self, path: str, data: bytes, caller: int) -> None:
        """Write to a file what one write() carries."""
        place = self.find(path)
        if isinstance(place, dict):
            raise RefusedError(errno.EISDIR)
        if place.write is None:
            raise RefusedError(errno.EACCES)
        place.write(data.decode("utf-8", "surrogateescape"), caller)

    def mkdir(self, path: str) -> None:
        """Make a group."""
        parent, _slash, name = path.rpartition("/")
        where = self.find(parent)
        if not isinstance(where, dict):
            raise RefusedError(errno.ENOTDIR)
        if name in where:
            raise RefusedError(errno.EEXIST)
        parts = [part for part in parent.split("/") if part]
        if not parts and self.state.resources:
            self.state.make(name)
        elif parts[:1] == ["info"]:
            raise RefusedError(errno.ENODEV)
        elif parts[-1:] == ["mon_groups"] and self.state.machine.monitoring:
            self.state.make_monitor(self.state.groups[parts[0] if len(parts) == 2 else ""], name)
        else:
            raise RefusedError(errno.EPERM)

    def rmdir(self, path: str) -> None:
        """Remove a group with all that is in it."""
        self.find(path)
        parts = [part for part in path.split("/") if part]
        if len(parts) == 1 and parts[0] in self.state.groups:
            self.state.remove(self.state.groups[parts[0]])
        elif len(parts) >= 2 and parts[-2] == "mon_groups":
            self.state.remove_monitor(self.state.groups[parts[0] if len(parts) == 3 else ""], parts[-1])
        else:
            raise RefusedError(errno.EPERM)

    def _root(self) -> Directory:
        found = self._group(self.state.groups[""])
        found["info"] = self._info()
        found.update({name: self._group(group) for name, group in self.state.groups.items() if name})
        return found

    def _group(self, group: Group) -> Directory:
        state = self.state
        found = self._members(group, None)
        if state.resources:
            found["schemata"] = File(
                lambda: state.show_schemata(group), lambda text, _pid: state.write_schemata(group, text)
            )
            found["mode"] = File(lambda: f"{group.mode}\n", lambda text, _pid: state.write_mode(group, text))
            found["size"] = File(lambda: state.size(group))
        if state.machine.mba_mbps:
            found["mba_MBps_event"] = File(lambda: "mbm_local_bytes\n")
        if state.machine.monitoring:
            found["mon_groups"] = {name: self._members(group, item) for name, item in group.monitors.items()}
        return found

    def _members(self, group: Group, monitor: Monitor | None) -> Directory:
        state, owner = self.state, monitor or group
        found: Directory = {
            "cpus": File(
                lambda: state.show_cpus(owner.cpus, as_list=False),
                lambda text, _pid: state.write_cpus(group, monitor, text, as_list=False),
            ),
            "cpus_list": File(
                lambda: state.show_cpus(owner.cpus, as_list=True),
                lambda text, _pid: state.write_cpus(group, monitor, text, as_list=True),
            ),
            "tasks": File(lambda: state.tasks(group, monitor), lambda text, pid: state.move(group, monitor, text, pid)),
        }
        if state.machine.monitoring:
            name = f"{group.name}/{monitor.name}" if monitor else group.name
            found["mon_data"] = {
                f"mon_L3_{cache:02d}": {event: self._counter(name, event) for event in EVENTS}
                for cache in state.machine.cache_ids
            }
        return found

    def _counter(self, group: str, event: str) -> File:
        return File(lambda: f"{self.state.machine.counters(group, event)}\n")

    def _info(self) -> Directory:
        state = self.state
        found: Directory = {"last_cmd_status": File(lambda: state.status or "ok\n")}
        for resource in state.resources.values():
            values = {"num_closids": f"{resource.num_closids}"}
            if resource.kind == MASK:
                values["cbm_mask"] = f"{resource.full:x}"
                values["min_cbm_bits"] = f"{resource.min_cbm_bits}"
                values["shareable_bits"] = f"{resource.shareable_bits:x}"
                values["sparse_masks"] = f"{int(resource.sparse_masks)}"
            else:
                values["min_bandwidth"] = f"{resource.min_bandwidth}"
                values["bandwidth_gran"] = f"{resource.bandwidth_gran}"
                values["delay_linear"] = f"{resource.delay_linear}"
            directory: Directory = {name: constant(text) for name, text in values.items()}
            if resource.kind == MASK:
                directory["bit_usage"] = File(lambda resource=resource: state.usage(resource))  # type: ignore[misc]
            found[resource.name] = directory
        if state.machine.monitoring:
            found["L3_MON"] = {
                "max_threshold_occupancy": constant("65536"),
                "mon_features": constant("\n".join(EVENTS)),
                "num_rmids": constant(f"{state.machine.num_rmids}"),
            }
        return found


def constant(text: str) -> File:
    """Return a file that always says the same."""
    return File(lambda: f"{text}\n")


__all__ = ["GROUP_FILES", "Directory", "File", "Tree"]
