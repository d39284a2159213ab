"""Scenarios of invented runs of the bandwidth experiment, in the form of a manifest."""

from __future__ import annotations

from typing import Any

LINK_BPS = 1e9
MBIT = 1e6


def bulk(role: str = "offline", **given: Any) -> dict[str, Any]:
    """Return a class of bulk traffic."""
    usual = {"limit_bps": None, "request_bps": None, "priority": None, "flows": 4, "message_bytes": 131_072}
    return {"role": role, **usual, "protocol": "tcp", "offered_bps": None, "probe": False, **given}


def case(classes: dict[str, Any], objectives: dict[str, float] | None = None, **given: Any) -> dict[str, Any]:
    """Return a case; senders get 2.4 Gbit/s through where nothing holds them."""
    usual = {"direction": "egress", "pool": None, "capacity_bps": 2.4e9}
    return {**usual, "classes": classes, "objectives": objectives or {}, **given}


def many(count: int) -> dict[str, Any]:
    """Return so many classes of 1 Mbit/s."""
    return {f"pod_{place:03d}": bulk(limit_bps=MBIT, flows=1) for place in range(1, count + 1)}


_POOL = {"total_bps": 1000 * MBIT, "waterline_bps": 200 * MBIT, "low_bps": 160 * MBIT, "high_bps": 800 * MBIT,
         "shares": None}  # fmt: skip
_ALL = ["ebpf", "htb", "tbf", "none"]

SCENARIOS: dict[str, Any] = {
    "single_priority": {
        "title": "Single priority",
        "description": "One class of bulk traffic against its limit.",
        "shapers": _ALL,
        "cases": {
            "egress": case(
                {"bulk": bulk(limit_bps=500 * MBIT, flows=16)},
                {"accuracy_pct_min": 99.9, "cpu_ratio_htb_max": 1.0, "cpu_ratio_tbf_max": 1.0},
            )
        },
    },
    "multi_priority": {
        "title": "Several priorities",
        "description": "Classes with limits, and four classes that ask for more than the link has.",
        "shapers": ["ebpf", "htb"],
        "cases": {
            "limits": case(
                {
                    "online": bulk("online", offered_bps=150 * MBIT, priority=2),
                    "middle": bulk(limit_bps=500 * MBIT, priority=1),
                    "low": bulk(limit_bps=200 * MBIT),
                }
            ),
            "requests": case(
                {
                    "high": bulk("online", request_bps=500 * MBIT, priority=2),
                    "middle_1": bulk("online", request_bps=200 * MBIT, priority=1),
                    "middle_2": bulk("online", request_bps=200 * MBIT, priority=1),
                    "low": bulk(request_bps=10 * MBIT, priority=0),
                },
                {"request_kept_pct_min": 98.0},
                pool={**_POOL, "shares": "weights"},
            ),
        },
    },
    "waterline": {
        "title": "Waterline",
        "description": "Offline traffic beside online traffic below and above the waterline, and in bursts.",
        "shapers": ["ebpf"],
        "cases": {
            "online_below": case(
                {"online": bulk("online", offered_bps=120 * MBIT), "bulk": bulk(limit_bps=800 * MBIT)}, pool=_POOL
            ),
            "online_above": case(
                {"online": bulk("online", offered_bps=240 * MBIT), "bulk": bulk(limit_bps=160 * MBIT)}, pool=_POOL
            ),
            "dynamic": case(
                {
                    "online": bulk("online", offered_bps=400 * MBIT, bursts={"on_s": 0.06, "off_s": 0.09}),
                    "bulk": bulk(),
                },
                {"switch_p95_ms_max": 10.0, "transitions_per_change_max": 1.0},
                pool=_POOL,
            ),
        },
    },
    "message_sizes": {
        "title": "Message sizes and connections",
        "description": "512 B and 128 KB on 1 and 64 connections.",
        "shapers": ["ebpf", "htb"],
        "cases": {
            f"{name}_x{flows}": case({"bulk": bulk(limit_bps=500 * MBIT, flows=flows, message_bytes=size)})
            for name, size in (("512B", 512), ("128KB", 131_072))
            for flows in (1, 64)
        },
    },
    "class_count": {
        "title": "Number of classes",
        "description": "10 to 200 classes of 1 Mbit/s.",
        "shapers": ["ebpf", "htb"],
        "cases": {
            f"{count}_classes": case(
                many(count), {"accuracy_p95_pct_min": 99.5, "apply_ms_max": 50.0} if count == 200 else None
            )
            for count in (10, 50, 100, 200)
        },
    },
    "latency": {
        "title": "Latency of the service",
        "description": "A request and its answer, a thousand times a second, while offline traffic fills its limit.",
        "shapers": _ALL,
        "cases": {
            "offline_saturates": case(
                {
                    "online": bulk("online", offered_bps=20 * MBIT, flows=1, probe=True),
                    "bulk": bulk(limit_bps=700 * MBIT, flows=8),
                },
                {"rr_p50_us_max": 1000.0},
            )
        },
    },
}


def only(*names: str) -> dict[str, Any]:
    """Return some of the scenarios."""
    return {name: SCENARIOS[name] for name in names}
