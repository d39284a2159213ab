"""An instance of the bandwidth programs on one end of a pair of namespaces, without Ansible."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ansible_collections.colocation.testbed.plugins.module_utils.bandwidth import (
    devices,
    instance,
    plan,
    readings,
    reconcile,
    values,
)
from ansible_collections.colocation.testbed.plugins.module_utils.journal import Journal
from ansible_collections.colocation.testbed.plugins.module_utils.kernel import bpf
from tools.bandwidth.namespaces import Pair


class NoInstanceError(Exception):
    """There is no instance to read from."""


def _device(entry: tuple[str, str, str]) -> tuple[str, values.Device]:
    """Return key and device of ``name`` or ``name/hook`` with its pool and plane."""
    name, _, hook = entry[0].partition("/")
    made = values.Device(name, entry[1], hook or "egress", entry[2])
    return f"{name}/{made.hook}", made


class Host:
    """A namespace pair, a BPF file system and a state directory of their own."""

    def __init__(self, pair: Pair, directory: Path) -> None:
        """Use an existing directory; nothing is changed in the namespaces yet."""
        self.pair = pair
        (directory / "bpf").mkdir()
        self.place = instance.Place("test", str(directory / "bpf"), str(directory / "state"))
        self.book = Journal(str(directory / "state" / "journal.json"))
        # This process is in another namespace, where its own netlink socket would see other devices.
        self.host = plan.Host(run=pair.run, indexes=pair.indexes, classes=None)

    def apply(
        self,
        pools: tuple[dict[str, Any], ...] | None = None,
        classes: tuple[dict[str, Any], ...] | None = None,
        shaped: tuple[tuple[str, str, str], ...] | None = None,
        check: bool = False,
    ) -> reconcile.Outcome:
        """Make these the only pools, classes or devices; what is None stays as it is."""

        def edit(wanted: plan.Wanted) -> plan.Wanted:
            return plan.Wanted(
                wanted.pools if pools is None else {raw["name"]: values.pool(raw) for raw in pools},
                wanted.classes if classes is None else {raw["name"]: values.traffic_class(raw) for raw in classes},
                wanted.devices if shaped is None else dict(map(_device, shaped)),
            )

        named = {raw["name"] for raw in classes or ()} | {_device(entry)[0] for entry in shaped or ()}
        # As the modules do: devices are looked at where it isn't about classes alone.
        look = classes is None or pools is not None or shaped is not None
        return reconcile.reconcile(self.place, edit, frozenset(named), self.book, "test", check, self.host, look)

    def place_of_pins(self) -> Path:
        """Return the BPF file system of the instance, mounted while there is one."""
        return Path(self.place.bpffs)

    def clear(self) -> None:
        """Take everything off again."""
        self.apply((), (), ())

    def tc(self, line: str) -> None:
        """Run a line of tc in the namespace. Raises CommandError."""
        self.pair.run(["tc", *line.split()])

    def picture(self) -> list[str]:
        """Return everything that an instance may change."""
        shown = [
            self.pair.run(["tc", "-j", "qdisc", "show"]).stdout,
            *(
                self.pair.run(["tc", "-j", "filter", "show", "dev", "left", hook]).stdout
                for hook in ("egress", "ingress")
            ),
            str(self.place.bpffs in Path("/proc/self/mountinfo").read_text(encoding="utf-8")),
        ]
        files = [str(path) for path in sorted(Path(self.place.state_dir).rglob("*")) if path.suffix != ".lock"]
        return shown + files

    def qdiscs(self) -> list[tuple[str, str]]:
        """Return kind and handle of the root of the device."""
        seen = devices.look(["left"], self.pair.indexes(), self.pair.run)["left"]
        return [(seen.root_kind, seen.root_handle)]

    @contextlib.contextmanager
    def opened(self) -> Iterator[instance.Instance]:
        """Open the instance for reading. Raises NoInstanceError."""
        found = reconcile.open_at(self.place)
        if found is None:
            raise NoInstanceError(f"{self.place.pins}: there is no instance; apply something first")
        with contextlib.closing(found):
            yield found

    def meta(self) -> dict[str, Any]:
        """Return what concerns all programs of the instance."""
        with self.opened() as opened:
            return opened.layout["meta"].unpack(bpf.lookup(opened.maps["meta"], bytes(4)) or b"")

    def figures(self) -> dict[str, Any]:
        """Return what the instance has counted. Raises NoInstanceError."""
        state = instance.read_state(self.place)
        with self.opened() as opened:
            return dict(readings.figures(opened, state or instance.State()))
