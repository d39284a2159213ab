"""Take a part of the benchmark in namespaces of its own, on the machine that this runs on: a real one or a guest.

In a guest: `python -m tools.bandwidth.inside DIRECTORY`, with `part` and `options` in DIRECTORY/orders.json; what was
found is written to DIRECTORY/found.json.
"""

from __future__ import annotations

import itertools
import json
import sys
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from tools.bandwidth import accuracy, applying, cpu_cost, program_cost, switching
from tools.bandwidth.host import Host
from tools.bandwidth.namespaces import Pair

ORDERS, FOUND, MARK = "orders.json", "found.json", "mark"
PARTS: Mapping[str, Callable[[Host, Mapping[str, Any]], Any]] = {
    "one_class": accuracy.one_class,
    "many_classes": accuracy.many_classes,
    "bursts": switching.bursts,
    "cpu": cpu_cost.blocks,
    "per_packet": program_cost.per_packet,
    "memory": program_cost.memory,
    "apply": applying.many_classes,
    "resident": applying.resident,
}


def take(part: str, options: Mapping[str, Any], **more: Any) -> Any:
    """Take a part on this machine and leave nothing behind. Raises what the libraries raise."""
    with tempfile.TemporaryDirectory(prefix="colocation-bench-") as directory, Pair("bench", ipv6=False) as pair:
        host = Host(pair, Path(directory))
        try:
            return PARTS[part](host, options, **more)
        finally:
            host.clear()


def marks() -> Callable[[], float]:
    """Return a meter for a guest: it prints a number, and whoever sees it reads the guest's CPU time from outside."""
    numbers = itertools.count()

    def mark() -> float:
        number = next(numbers)
        print(f"{MARK} {number}", flush=True)
        return float(number)

    return mark


def main() -> None:
    """Take the part that the directory orders."""
    directory = Path(sys.argv[1])
    orders = json.loads((directory / ORDERS).read_text(encoding="utf-8"))
    more = {"meter": marks()} if orders["part"] == "cpu" else {}
    found = take(orders["part"], orders["options"], **more)
    (directory / FOUND).write_text(json.dumps(found), encoding="utf-8")


if __name__ == "__main__":
    main()
