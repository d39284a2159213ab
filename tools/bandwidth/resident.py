"""Set up pool, class and device by the modules, as the first process of a namespace, and print who is left in it then.

`python -m tools.bandwidth.resident PLANE INSTANCE BPFFS STATE_DIR`. A process that a module leaves behind, detached or
not, stays in the namespace of its parent.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

from ansible_collections.colocation.testbed.plugins.module_utils import commands
from ansible_collections.colocation.testbed.plugins.module_utils.bandwidth.instance import Place
from tools.bandwidth import applying
from tools.bandwidth.program_cost import many_prefixes


def others() -> list[str]:
    """Return the names of all other processes in this namespace."""
    numbers = [int(path.name) for path in Path("/proc").iterdir() if path.name.isdigit()]
    return [
        Path(f"/proc/{number}/comm").read_text(encoding="utf-8").strip() for number in numbers if number != os.getpid()
    ]


def main() -> None:
    """Run the modules and look."""
    plane, *where = sys.argv[1:]
    place = Place(*where)
    device = {"name": "left", "pool": "link", "plane": plane}
    for name, options in (
        ("bandwidth_pool", {"pools": [applying.POOL]}),
        ("bandwidth_class", {"classes": list(many_prefixes(1))}),
        ("bandwidth_device", {"devices": [device]}),
    ):
        applying.run_module(place, name, options, commands.run)
    print(json.dumps({"left": others()}))


if __name__ == "__main__":
    main()
