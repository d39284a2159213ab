"""How exactly classes get their rates: one class with many flows, and many classes at once, counted by receivers."""

from __future__ import annotations

import contextlib
import math
import os
import random
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from ansible_collections.colocation.testbed.plugins.module_utils.kernel import cgroup
from tools.bandwidth.host import Host
from tools.bandwidth.traffic import Transfer

SEGMENT_BYTES, FRAME_BYTES = 1448, 1514
SETTLE_S = 1.0
PORT = 5301
Row = dict[str, Any]


def ideal_bit(mbit: float, accounting: str) -> float:
    """Return bits a second of payload that a rate lets through in full frames of TCP with time stamps, MTU 1500."""
    return mbit * 1e6 * (1.0 if accounting == "payload" else SEGMENT_BYTES / FRAME_BYTES)


def accuracy_pct(arrived: float, ideal: float) -> float:
    """Return 100 less the error in percent, whichever way it is."""
    return 100.0 - abs(100.0 * (arrived / ideal - 1.0))


def reached_by(accuracies: Sequence[float], share: float = 0.95) -> float:
    """Return the accuracy that this share of the classes reaches at least (nearest rank)."""
    ordered = sorted(accuracies, reverse=True)
    return ordered[math.ceil(share * len(ordered)) - 1]


def one_class(host: Host, options: Mapping[str, Any]) -> list[Row]:
    """Limit one class to each rate in each repeat, in an order of its own; returns a row for each measurement.

    Options: `plane`, `accounting`, `mbits`, `flows`, `repeats`, `seconds`, `seed`; `hook`, egress unless given.
    """
    rows = []
    hook = options.get("hook", "egress")
    pair, to = (host.pair, "10.99.0.2") if hook == "egress" else (host.pair.reversed(), "10.99.0.1")
    source = random.Random(options["seed"])
    for repeat in range(options["repeats"]):
        for mbit in source.sample(options["mbits"], len(options["mbits"])):
            limited = {"name": "pod", "pool": "link", "limit": f"{mbit}Mbit/s", "prefixes": ["10.99.0.1/32"]}
            pool = {"name": "link", "accounting": options["accounting"], "direction": hook}
            host.apply((pool,), (limited,), ((f"left/{hook}", "link", options["plane"]),))
            length_s = SETTLE_S + options["seconds"] + 0.2
            with Transfer(pair, PORT, length_s, to=to, flows=options["flows"]) as transfer:
                received = transfer.wait()
            counted = host.figures()["classes"]["pod"]
            arrived = received.rate(SETTLE_S, SETTLE_S + options["seconds"])
            rows.append(
                {
                    "mbit": mbit,
                    "repeat": repeat,
                    "arrived_bit": arrived,
                    "accuracy_pct": accuracy_pct(arrived, ideal_bit(mbit, options["accounting"])),
                    "dropped": counted["dropped"],
                    "marked": counted["marked"],
                }
            )
    return rows


@contextlib.contextmanager
def groups(count: int) -> Iterator[list[Path]]:
    """Make control groups (version 2) of our own, and remove them afterwards. Raises CgroupError without cgroup2."""
    mounts = [item.mount for item in cgroup.detect().hierarchies if item.version == 2]
    if not mounts:
        raise cgroup.CgroupError("cgroup2 is not mounted: classes under test are control groups; mount it")
    top = Path(mounts[0], f"colocation-testbed-bench-{os.getpid()}")
    made = [top / f"c{number:03d}" for number in range(count)]
    try:
        for directory in (top, *made):
            directory.mkdir()
        yield made
    finally:
        for directory in (*made, top):
            with contextlib.suppress(FileNotFoundError):
                directory.rmdir()


def many_classes(host: Host, options: Mapping[str, Any]) -> list[Row]:
    """Limit many control groups at once, one flow in each; returns a row for each class and repeat.

    Options: `plane`, `accounting`, `classes`, `mbit`, `repeats`, `seconds`, `settle_s`.
    """
    rows: list[Row] = []
    settle_s, seconds = options["settle_s"], options["seconds"]
    ideal = ideal_bit(options["mbit"], options["accounting"])
    with groups(options["classes"]) as made:
        limits = [
            {"name": place.name, "pool": "link", "limit": f"{options['mbit']}Mbit/s", "cgroups": [str(place)]}
            for place in made
        ]
        pool = {"name": "link", "accounting": options["accounting"]}
        host.apply((pool,), tuple(limits), (("left", "link", options["plane"]),))
        members = [str(place / "cgroup.procs") for place in made]
        for repeat in range(options["repeats"]):
            before = host.figures()["classes"]
            with Transfer(host.pair, PORT, settle_s + seconds + 0.2, flows=len(made), groups=members) as transfer:
                found = transfer.wait().rates(settle_s, settle_s + seconds)
            after = host.figures()["classes"]
            for number, place in enumerate(made):
                arrived, dropped = found.get(number, 0.0), after[place.name]["dropped"] - before[place.name]["dropped"]
                accuracy = accuracy_pct(arrived, ideal)
                rows.append({"repeat": repeat, "class": number, "arrived_bit": arrived, "accuracy_pct": accuracy,
                             "dropped": dropped})  # fmt: skip
    return rows
