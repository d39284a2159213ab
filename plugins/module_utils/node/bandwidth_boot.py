# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What makes a bandwidth instance again at each start of the host: a systemd unit, or a start script elsewhere.

Both run the node tool's command `bandwidth-apply`.
"""

from __future__ import annotations

import json
import os
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from ansible_collections.colocation.testbed.plugins.module_utils import commands, files, journal, own_changes, undo
from ansible_collections.colocation.testbed.plugins.module_utils.kernel import netns, netns_value, procfs
from ansible_collections.colocation.testbed.plugins.module_utils.node import control, unit

BY = "bandwidth_persist"
SYSTEMD, OPENRC, SYSV, NONE = "systemd", "openrc", "sysv", "none"
_RUNLEVELS = (2, 3, 4, 5)
_SCRIPT_MODE = 0o755
_TIMEOUT_S = 120.0


class BootError(Exception):
    """The host cannot be made to apply an instance at its start; the text says why and what to do."""


@dataclass(frozen=True)
class Places:
    """Where the files of a host are, and how programs are run on it."""

    etc: str = "/etc"
    run_root: str = "/run"
    proc_root: str = procfs.PROC_ROOT
    netns_root: str = netns.RUN_ROOT
    run: Callable[..., commands.Result] = commands.run


@dataclass(frozen=True)
class Wanted:
    """An instance that is to be applied at each start, and the interpreter of the node tool."""

    instance: str
    bpffs: str
    state_dir: str
    python: str = "/usr/bin/python3"

    @property
    def name(self) -> str:
        """Return what unit and scripts are called."""
        return f"colocation-testbed-bandwidth-{self.instance}"

    @property
    def spec_path(self) -> str:
        """Return the file that tells the node tool what to apply."""
        return os.path.join(self.state_dir, f"bandwidth-{self.instance}.boot.json")

    @property
    def argv(self) -> tuple[str, ...]:
        """Return what is run at the start."""
        return control.Manager("supervised", self.state_dir, self.python).tool_argv("bandwidth-apply", self.spec_path)


@dataclass(frozen=True)
class Outcome:
    """What starts programs on the host, which files differed, and what should be known."""

    changed: bool
    starter: str
    files: tuple[str, ...]
    warnings: tuple[str, ...] = ()


def starter(places: Places) -> str:
    """Return what starts programs at the start of this host."""
    if os.path.isdir(os.path.join(places.run_root, "systemd/system")):
        return SYSTEMD
    if os.path.isdir(os.path.join(places.etc, "local.d")):
        return OPENRC
    levels = [os.path.join(places.etc, f"rc{level}.d") for level in _RUNLEVELS]
    return SYSV if all(map(os.path.isdir, [os.path.join(places.etc, "init.d"), *levels])) else NONE


def _unit(wanted: Wanted) -> str:
    command = " ".join(unit.quote(word) for word in wanted.argv)
    return f"""[Unit]
Description=colocation.testbed: bandwidth of instance {wanted.instance}
Wants=network-online.target
After=network-online.target

[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart={command}
ExecReload={command}

[Install]
WantedBy=multi-user.target
"""


def _script(wanted: Wanted) -> str:
    return f"""#!/bin/sh
### BEGIN INIT INFO
# Provides:          {wanted.name}
# Required-Start:    $local_fs $network
# Required-Stop:
# Default-Start:     {" ".join(map(str, _RUNLEVELS))}
# Default-Stop:
# Short-Description: colocation.testbed: bandwidth of instance {wanted.instance}
### END INIT INFO
case "${{1:-start}}" in
start | restart | reload | force-reload) exec {shlex.join(wanted.argv)} ;;
stop) ;;
*)
    echo "usage: $0 start|reload" >&2
    exit 2
    ;;
esac
"""


def wanted_files(wanted: Wanted, kind: str, places: Places) -> dict[str, tuple[str, int]]:
    """Return the files by path with text and mode. Pure."""
    spec = {"instance": wanted.instance, "bpffs": wanted.bpffs, "state_dir": wanted.state_dir}
    found = {wanted.spec_path: (json.dumps(spec, sort_keys=True) + "\n", 0o600)}
    script = (_script(wanted), _SCRIPT_MODE)
    if kind == SYSTEMD:
        found[os.path.join(places.etc, "systemd/system", f"{wanted.name}.service")] = (_unit(wanted), 0o644)
    elif kind == OPENRC:
        found[os.path.join(places.etc, "local.d", f"{wanted.name}.start")] = script
    elif kind == SYSV:
        place = os.path.join(places.etc, "init.d", wanted.name)
        found[place] = script
        # Not links: the journal puts back files.
        entry = (f'#!/bin/sh\nexec {shlex.quote(place)} "$@"\n', _SCRIPT_MODE)
        found.update({os.path.join(places.etc, f"rc{level}.d", f"S99{wanted.name}"): entry for level in _RUNLEVELS})
    else:
        found[os.path.join(wanted.state_dir, f"{wanted.name}.start")] = script
    return found


def _differs(path: str, text: str, mode: int) -> bool:
    return files.read_text_or_none(path) != text or os.stat(path).st_mode & 0o7777 != mode


def _systemctl(places: Places, *words: str, check: bool = True) -> commands.Result:
    return places.run(["systemctl", *words], timeout_s=_TIMEOUT_S, check=check)


def _is(places: Places, question: str, name: str, answer: str) -> bool:
    return _systemctl(places, question, name, check=False).stdout.strip() == answer


def persist(wanted: Wanted, places: Places, book: journal.Journal, check: bool) -> Outcome:
    """Let the host apply an instance at each start. Raises BootError and what files, journal, commands raise."""
    if netns_value.current(places.proc_root, places.netns_root) is not None:
        raise BootError(
            f"bandwidth {wanted.instance}: this host is a network namespace, and starts with nothing of its own; "
            "set bandwidth_persist to false"
        )
    if not check and not os.path.exists(control.Manager("supervised", wanted.state_dir, wanted.python).tool):
        raise BootError(f"bandwidth {wanted.instance}: the node tool is not on this host; apply role node first")
    kind = starter(places)
    found = wanted_files(wanted, kind, places)
    differing = {path: item for path, item in found.items() if _differs(path, *item)}
    service = f"{wanted.name}.service" if kind == SYSTEMD else ""
    started = not service or _started(service, places)
    if not check and (differing or not started):
        unit_before = [journal.Change("unit", service, {"enabled": False, "active": False})] if service else []
        book.record_many([*_changes(differing), *unit_before], BY)
        for path, (text, mode) in differing.items():
            files.write_atomic(path, text, mode)
        if service:
            _start(service, places)
    warnings = () if kind != NONE else (f"nothing known starts programs at boot here; let it call {[*found][-1]}",)
    return Outcome(bool(differing) or not started, kind, tuple(sorted(differing)), warnings)


def _changes(differing: Mapping[str, tuple[str, int]]) -> list[journal.Change]:
    return [
        journal.Change("file", path, files.capture(path), own_changes.fingerprint(text))
        for path, (text, _mode) in differing.items()
    ]


def _started(service: str, places: Places) -> bool:
    return _is(places, "is-enabled", service, "enabled") and _is(places, "is-active", service, "active")


def _start(service: str, places: Places) -> None:
    # Reloading makes systemd write the values of all its slices anew, so only where it must.
    shown = _systemctl(places, "show", "--property=NeedDaemonReload,LoadState", service, check=False).stdout
    if "NeedDaemonReload=yes" in shown or "LoadState=loaded" not in shown:
        _systemctl(places, "daemon-reload")
    _systemctl(places, "enable", "--no-reload", service)
    _systemctl(places, "start", service)


def remove(wanted: Wanted, places: Places, book: journal.Journal, check: bool) -> Outcome:
    """Let the host start without an instance again. Raises BootError, JournalError."""
    names = {f"{wanted.name}.service"}
    for kind in (SYSTEMD, OPENRC, SYSV, NONE):
        names |= set(wanted_files(wanted, kind, places))
    mine = [entry for entry in book.entries() if entry.by == BY and entry.target in names]
    handlers = undo.Undo(proc_root=places.proc_root, netns_root=places.netns_root, run=places.run).handlers()
    done = [journal.Undone(entry, handlers[entry.kind](entry, check)) for entry in reversed(mine)]
    failed: Sequence[str] = [item.outcome.text for item in done if item.outcome.result == "failed"]
    if not check:
        book.forget_many((item.entry.kind, item.entry.target) for item in done if item.outcome.result == "undone")
    if failed:
        raise BootError(f"bandwidth {wanted.instance}: {'; '.join(failed)}")
    return Outcome(bool(mine), starter(places), tuple(sorted(item.entry.target for item in done)))
