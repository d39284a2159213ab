# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What load to send: the specification of the `load` command, checked before anything starts."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Callable

from ansible_collections.colocation.testbed.plugins.module_utils import quantity

KINDS = ("open_loop", "closed_loop")
# A double holds whole numbers exactly up to here, and Lua has no other numbers.
SEED_LIMIT = 2**53
# wrk keeps one 8-byte counter for each microsecond of the timeout.
TIMEOUT_LIMIT_S = 120
# Flips many bits, so that the warm-up never has the arrivals of this or a neighbouring window.
WARMUP_SEED_MASK = 0x2545F491

_KEYS = frozenset(
    [
        "kind",
        "wrk",
        "script",
        "url",
        "threads",
        "connections",
        "rate_rps",
        "seed",
        "warmup_s",
        "duration_s",
        "timeout_s",
        "headers",
        "output",
        "trace",
    ]
)
_OPTIONAL = frozenset(["script", "rate_rps", "headers", "warmup_s", "timeout_s", "trace"])


class LoadSpecError(Exception):
    """The specification asks for something that cannot be sent; the text names the key and what is allowed."""


@dataclass(frozen=True)
class LoadSpec:
    """One window of load. `rate_rps` is None for a closed loop; `trace` is a path prefix for send times, or None."""

    kind: str
    wrk: str
    script: str
    url: str
    threads: int
    connections: int
    rate_rps: float | None
    seed: int
    warmup_s: float
    duration_s: float
    timeout_s: int
    headers: Mapping[str, str]
    output: str
    trace: str | None

    def arguments(self, window_s: float, seed: int, trace: str | None) -> list[str]:
        """Return the script's arguments for a window of this length."""
        given: dict[str, Any] = {"connections": self.connections}
        if self.rate_rps is not None:
            given.update(rate_rps=self.rate_rps, window_s=window_s, seed=seed, threads=self.threads)
        if trace is not None:
            given["trace"] = trace
        return [f"{key}={value}" for key, value in given.items()]

    def argv(self, wrk_s: int, arguments: list[str]) -> list[str]:
        """Return wrk's command line for a run of `wrk_s` seconds."""
        headers = [word for name, value in self.headers.items() for word in ("-H", f"{name}: {value}")]
        counts = ["-t", str(self.threads), "-c", str(self.connections), "-d", f"{wrk_s}s", "-T", f"{self.timeout_s}s"]
        return [self.wrk, *counts, "--latency", *headers, "-s", self.script, self.url, "--", *arguments]

    @property
    def warmup_seed(self) -> int:
        """Return the seed of the warm-up."""
        return self.seed ^ WARMUP_SEED_MASK


def _fail(key: str, value: object, allowed: str) -> LoadSpecError:
    return LoadSpecError(f"load: {key} is {value!r}; it must be {allowed}")


def _whole(raw: Mapping[str, Any], key: str, low: int, high: int) -> int:
    value = raw.get(key)
    if not isinstance(value, int) or isinstance(value, bool) or not low <= value <= high:
        raise _fail(key, value, f"a whole number from {low} to {high}")
    return value


def _number(raw: Mapping[str, Any], key: str, default: float, allowed: Callable[[float], bool], text: str) -> float:
    value = raw.get(key, default)
    if type(value) not in (int, float) or not math.isfinite(value) or not allowed(value):
        raise _fail(key, value, text)
    return float(value)


def _text(raw: Mapping[str, Any], key: str) -> str:
    value = raw.get(key)
    if not isinstance(value, str) or not value or "\n" in value or "\0" in value:
        raise _fail(key, value, "a text of one line")
    return value


def _rate(raw: Mapping[str, Any], kind: str) -> float | None:
    if kind == "open_loop":
        return _number(
            raw, "rate_rps", 0.0, lambda rate: 0 < rate <= 1e6, "requests per second, above 0, up to 1000000"
        )
    if raw.get("rate_rps") is not None:
        raise _fail("rate_rps", raw["rate_rps"], "null in a closed loop, which has no rate; or choose kind open_loop")
    return None


def _headers(raw: Mapping[str, Any]) -> dict[str, str]:
    value = raw.get("headers", {})
    words = [word for pair in value.items() for word in pair] if isinstance(value, Mapping) else [None]
    if not all(isinstance(word, str) and word and not set(word) & set("\r\n\0") for word in words):
        raise _fail("headers", value, "an object of header names and values, each a text of one line")
    return dict(value)


def _file(path: str, key: str, mode: int, advice: str) -> str:
    if not os.path.isfile(path) or not os.access(path, mode):
        raise LoadSpecError(f"load: {key} {path} is not there or not usable; {advice}")
    return path


def _seconds(raw: Mapping[str, Any], kind: str) -> tuple[float, float, int]:
    """Return warm-up and window in seconds, and the timeout rounded up to whole seconds (wrk takes no others)."""
    warmup_s = _number(raw, "warmup_s", 0.0, lambda value: value >= 0, "seconds, 0 or more")
    duration_s = _number(raw, "duration_s", 0.0, lambda value: 0 < value <= 86400, "seconds, above 0, up to 86400")
    if kind == "closed_loop" and duration_s != int(duration_s):
        raise _fail("duration_s", duration_s, "whole seconds in a closed loop, because wrk measures whole seconds")
    text = f"seconds, above 0, up to {TIMEOUT_LIMIT_S}"
    timeout_s = _number(raw, "timeout_s", 10.0, lambda value: 0 < value <= TIMEOUT_LIMIT_S, text)
    return warmup_s, duration_s, math.ceil(timeout_s)


def parse(raw: object) -> LoadSpec:
    """Check a specification and return it. Raises LoadSpecError.

    Without `script`, the script of the kind in `scripts` beside the directory of `wrk` is taken, where role
    load_generator puts it.
    """
    if not isinstance(raw, Mapping):
        raise LoadSpecError(f"load: the specification is {quantity.kind_of(raw)}; it must be a JSON object")
    unknown, missing = sorted(set(raw) - _KEYS), sorted(_KEYS - _OPTIONAL - set(raw))
    if unknown or missing:
        text = f"unknown key {unknown[0]!r}" if unknown else f"key {missing[0]!r} is missing"
        raise LoadSpecError(f"load: {text}; allowed are {', '.join(sorted(_KEYS))}")
    kind = raw["kind"]
    if kind not in KINDS:
        raise _fail("kind", kind, " or ".join(KINDS))
    wrk = _file(_text(raw, "wrk"), "wrk", os.X_OK, "run role load_generator on this host")
    beside = os.path.join(os.path.dirname(os.path.dirname(wrk)), "scripts", f"{kind}.lua")
    script = _text(raw, "script") if raw.get("script") is not None else beside
    threads = _whole(raw, "threads", 1, 1024)
    connections = _whole(raw, "connections", 1, 1_000_000)
    if connections % threads:
        raise _fail("connections", connections, f"a multiple of threads ({threads}), because wrk gives each the same")
    warmup_s, duration_s, timeout_s = _seconds(raw, kind)
    return LoadSpec(
        kind=kind,
        wrk=wrk,
        script=_file(script, "script", os.R_OK, "run role load_generator on this host"),
        url=_text(raw, "url"),
        threads=threads,
        connections=connections,
        rate_rps=_rate(raw, kind),
        seed=_whole(raw, "seed", 0, SEED_LIMIT - 1),
        warmup_s=warmup_s,
        duration_s=duration_s,
        timeout_s=timeout_s,
        headers=_headers(raw),
        output=_text(raw, "output"),
        trace=_text(raw, "trace") if raw.get("trace") is not None else None,
    )
