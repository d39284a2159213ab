"""Run in a guest: pace by departure times (EDT), measure what arrives, print one JSON object for each measurement."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from tests.kernel.test_bandwidth import Host
from tests.support.namespaces import Pair


def iperf(pair: Pair, flows: int, seconds: int, to: str) -> float:
    """Return bits a second that the receiver counted, the first second left out."""
    server = pair.start(["iperf3", "-s", "-1", "-p", "5301", "--forceflush"], pair.there)
    assert server.stdout is not None
    while "listening" not in server.stdout.readline():
        assert server.poll() is None, "iperf3 -s ended"
    argv = ["iperf3", "-J", "-c", to, "-p", "5301", "-P", str(flows), "-t", str(seconds), "-O", "1"]
    try:
        shown = pair.run(argv, timeout_s=seconds + 60).stdout
    finally:
        server.kill()
        server.communicate()
    return float(json.loads(shown)["end"]["sum_received"]["bits_per_second"])


def measure(host: Host, mbit: int, accounting: str, flows: int, seconds: int, hook: str = "egress") -> dict[str, Any]:
    limited = {"name": "pod", "pool": "link", "limit": f"{mbit}Mbit/s", "prefixes": ["10.99.0.1/32"]}
    link = {"name": "link", "accounting": accounting, "direction": hook}
    host.apply((link,), (limited,), ((f"left/{hook}", "link", "edt"),))
    pair, to = (host.pair, "10.99.0.2") if hook == "egress" else (host.pair.reversed(), "10.99.0.1")
    arrived = iperf(pair, flows, seconds, to)
    counted = host.figures()["classes"]["pod"]
    return {
        "mbit": mbit, "accounting": accounting, "flows": flows, "hook": hook, "arrived_mbit": arrived / 1e6,
        "error_pct": 100 * (arrived / (mbit * 1e6) - 1), "dropped": counted["dropped"], "marked": counted["marked"],
    }  # fmt: skip


def main() -> None:
    cases = json.loads(sys.argv[2])
    with Pair("edt", ipv6=False) as pair:
        host = Host(pair, Path(sys.argv[1]))
        for case in cases:
            print("measured", json.dumps(measure(host, *case)), flush=True)
            host.apply((), (), ())
        assert not any("fq" in line or "ctb" in line for line in host.picture()[:1])


if __name__ == "__main__":
    main()
