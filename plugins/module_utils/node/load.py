# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The `load` command of the node tool: a warm-up and one measured window of wrk, and the result as JSON."""

from __future__ import annotations

import contextlib
import json
import math
import os
import resource
import signal
import subprocess
import sys
from dataclasses import dataclass
from types import FrameType
from typing import Any

from ansible_collections.colocation.testbed.plugins.module_utils import files
from ansible_collections.colocation.testbed.plugins.module_utils.node import load_spec
from ansible_collections.colocation.testbed.plugins.module_utils.node.load_spec import LoadSpec, LoadSpecError

MARKER = "COLOCATION_TESTBED_LOAD "
# open_loop.lua begins 0.2 s after wrk has started; the rest is for the last answers.
LEAD_AND_DRAIN_S = 1.0
# Beyond the seconds that wrk was told to run: starting, joining the threads, printing the histogram.
DEADLINE_SLACK_S = 15.0
_VERSION_TIMEOUT_S = 10.0


class LoadError(Exception):
    """Load could not be sent or its result is not to be trusted; the text says why and what to do."""


@dataclass(frozen=True)
class Ended:
    """What a wrk that ended by itself left: what it printed, and the CPU seconds (user and system) that it used."""

    stdout: str
    cpu_s: float


def run(spec_path: str) -> int:
    """Carry out the specification in a file and write its `output`; the node tool's entry point.

    Returns 0, or 1 after a failure, when `output` holds `{"error": sentence}` if the specification names it.
    """
    output = None
    try:
        _raise_when_ended()
        raw = files.read_json(spec_path)
        output = raw.get("output") if isinstance(raw, dict) else None
        spec = load_spec.parse(raw)
        with contextlib.suppress(FileNotFoundError):
            # A result from before must not be taken for this one if we are killed.
            os.unlink(spec.output)
        files.write_json(spec.output, measure(spec))
    except (files.FilesError, LoadSpecError, LoadError, OSError) as exc:
        sys.stderr.write(f"{exc}\n")
        if isinstance(output, str) and output:
            files.write_json(output, {"error": str(exc)})
        return 1
    return 0


def measure(spec: LoadSpec) -> dict[str, Any]:
    """Warm up, send one window of load, and return the result in the format of load.json (docs/architecture.md).

    Raises LoadError.
    """
    tool = version(spec.wrk)
    if spec.warmup_s > 0:
        arguments = spec.arguments(spec.warmup_s, spec.warmup_seed, None)
        wrk_s = math.ceil(spec.warmup_s)
        parse_output(run_wrk(spec.argv(wrk_s, arguments), wrk_s + DEADLINE_SLACK_S).stdout)
    wrk_s = window_wrk_s(spec)
    argv = spec.argv(wrk_s, spec.arguments(spec.duration_s, spec.seed, spec.trace))
    ended = run_wrk(argv, wrk_s + DEADLINE_SLACK_S)
    return result(spec, tool, parse_output(ended.stdout), ended.cpu_s)


def window_wrk_s(spec: LoadSpec) -> int:
    """Return the whole seconds that wrk runs for the window: an open loop also waits for the last answers."""
    return math.ceil(spec.duration_s + (LEAD_AND_DRAIN_S if spec.kind == "open_loop" else 0.0))


def version(wrk: str) -> str:
    """Return the program and version that `wrk -v` prints, such as "wrk 4.2.0". Raises LoadError.

    wrk ends with status 1 after printing its version, so the status says nothing.
    """
    try:
        done = subprocess.run(
            [wrk, "-v"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            encoding="utf-8",
            errors="replace",
            timeout=_VERSION_TIMEOUT_S,
            env={**os.environ, "LC_ALL": "C"},
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as exc:
        raise LoadError(f"load: {wrk} -v: {exc}; build it again with role load_generator") from exc
    words = done.stdout.split()
    if len(words) < 2 or words[0] != "wrk":
        raise LoadError(f"load: {wrk} -v does not print a version of wrk; build it again with role load_generator")
    return " ".join(words[:2])


def _raise_when_ended() -> None:
    """Turn a request to end into an exception: it ends wrk first, so that none outlives us, and leaves a result."""

    def end(number: int, _frame: FrameType | None) -> None:
        raise LoadError(f"load: ended by signal {signal.Signals(number).name} before the window was over; run it again")

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, end)


def _children_cpu_s() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def run_wrk(argv: list[str], deadline_s: float) -> Ended:
    """Run wrk to its end. Raises LoadError when it fails, or is killed at the deadline."""
    before_s = _children_cpu_s()
    child = subprocess.Popen(
        argv,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        encoding="utf-8",
        errors="replace",
        env={**os.environ, "LC_ALL": "C"},
    )
    try:
        stdout, stderr = child.communicate(timeout=deadline_s)
    except subprocess.TimeoutExpired as exc:
        raise LoadError(
            f"load: wrk did not end within {deadline_s:g} s and was killed; is the load node short of CPU?"
        ) from exc
    finally:
        if child.poll() is None:
            child.kill()
            child.wait()
    if child.returncode != 0 or MARKER not in stdout:
        raise LoadError(f"load: wrk ended with status {child.returncode}: {_reason(stdout, stderr)}")
    return Ended(stdout, _children_cpu_s() - before_s)


def _reason(stdout: str, stderr: str) -> str:
    lines = [line.strip() for line in stderr.splitlines() if line.strip()]
    if lines:
        script_failed = lines[-1].startswith("PANIC")
        return f"{lines[-1]}; {'use wrk 4.1.0 or 4.2.0' if script_failed else 'is the service up there?'}"
    printed = stdout.split("\n")
    return f"it printed no result but {printed[0]!r}; run it by hand to see why"


def parse_output(text: str) -> dict[str, Any]:
    """Return the object on the result line of what wrk printed. Raises LoadError, also when requests are unaccounted.

    Every answer is in the histogram or was later than the timeout: where the sum differs, wrk's memory is laid out
    otherwise than the scripts believe.
    """
    lines = [line[len(MARKER) :] for line in text.splitlines() if line.startswith(MARKER)]
    try:
        found = json.loads(lines[-1])
        histogram, errors = found["latency_us"], found["errors"]
        counted = sum(count for _unused, count in histogram)
        expected = found["requests"] - errors["timeout"]
        numbers = [*errors.values(), *(found[key] for key in ("bytes", "scheduled", "late", "late_max_ms"))]
        sound = all(isinstance(number, (int, float)) for number in numbers)
    except (IndexError, KeyError, TypeError, ValueError, AttributeError) as exc:
        raise LoadError("load: the result that wrk's script printed is damaged; run it by hand to see why") from exc
    if counted != expected or not sound or any(count < 1 for _unused, count in histogram):
        raise LoadError(
            f"load: the histogram holds {counted} requests of {expected}; this wrk counts otherwise than 4.1.0 and "
            "4.2.0, build one of these with role load_generator"
        )
    return dict(found)


def result(spec: LoadSpec, tool: str, found: dict[str, Any], cpu_s: float) -> dict[str, Any]:
    """Return load.json: the window's facts around what wrk's script found."""
    window_s = found["window_us"] / 1e6
    start_wall_s, start_mono_s = found["start_wall_us"] / 1e6, found["start_mono_us"] / 1e6
    return {
        "kind": spec.kind,
        "tool": tool,
        "url": spec.url,
        "threads": spec.threads,
        "connections": spec.connections,
        "seed": spec.seed,
        "rate_rps": spec.rate_rps,
        "warmup_s": spec.warmup_s,
        "duration_s": spec.duration_s,
        "start_wall_s": start_wall_s,
        "end_wall_s": start_wall_s + window_s,
        "start_mono_s": start_mono_s,
        "end_mono_s": start_mono_s + window_s,
        "scheduled": int(found["scheduled"]),
        "requests": found["requests"],
        "bytes": found["bytes"],
        "errors": found["errors"],
        "late": int(found["late"]),
        "late_max_ms": found["late_max_ms"],
        "generator_cpu_s": round(cpu_s, 6),
        "latency_us": found["latency_us"],
    }
