"""Make a whole, plausible run directory from a seed: no host, no load, a second of computing.

    python -m tests.support.synthetic_run results/example --blocks 5
    make_run(tmp_path / "run", Options(blocks=3, pm_qos_held=False))

What it writes goes through the same schedule, guards and run directory as a real run; only the readings are invented.
"""

from __future__ import annotations

import argparse
import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ansible_collections.colocation.testbed.plugins.module_utils.measure import guards, schedule
from ansible_collections.colocation.testbed.plugins.module_utils.measure.records import GuardResult, MeasurementRecord
from ansible_collections.colocation.testbed.plugins.plugin_utils.rundir import RunDirectory
from tests.support import synthetic_pods
from tests.support.synthetic_readings import (
    CALIBRATION_MODES,
    LOAD,
    TESTED,
    THREE_MODES,
    Behaviour,
    Options,
    Window,
    load_result,
    policy_readings,
    samples,
    window_of,
)


def manifest(options: Options) -> dict[str, Any]:
    """Return the manifest of the run."""
    host = {
        "kernel": options.kernel,
        "cpu_model": "Example CPU 3.0 GHz",
        "cpus": "0-1",
        "cgroup": "hybrid",
        "memory_bytes": 8 << 30,
        "virtualization": "kvm",
        "service_manager": "none",
        "pm_qos": options.pm_qos_held,
    }
    substrate = {"substrate": "pod", "cluster": synthetic_pods.cluster(options)} if options.pods else {}
    return {
        "schema": "colocation.testbed/manifest/1",
        "run_id": options.run_id,
        "created": options.created,
        "finished": None,
        "fingerprint": f"fingerprint-{options.seed}",
        "command": "ansible-playbook site.yml",
        "versions": {
            "collection": "0.1.0", "ansible": "2.19.14", "python": "3.11.2",
            "wrk": "4.2.0", "nginx": "1.22.1", "ffmpeg": "5.1.6",
        },
        "hosts": {
            TESTED: {**host, "role": "tested", "measured_cpus": "0", "clock_offset_s": options.clock_offset_s},
            LOAD: {**host, "role": "load", "measured_cpus": "1", "clock_offset_s": 0.0},
        },
        "modes": {name: {"batch": mode.batch, **mode.definition} for name, mode in options.modes.items()},
        "policies": {"shares": {}, "best_effort": {"cpu": {"idle": True}}},
        "aggressors": {name: {"title": name, "work": {"unit": "frames"}} for name in options.aggressors},
        "baseline": next(iter(options.modes)),
        "schedule": {
            "blocks": options.blocks,
            "modes": list(options.modes),
            "load_points": list(options.load_points),
            "aggressors": list(options.aggressors),
            "seed": options.seed,
            "repeat_cap": options.repeat_cap,
            "window_s": options.window_s,
            "warmup_s": 2.0,
        },
        "load": {
            "kind": options.load_kind, "threads": 1, "connections": 40, "page_bytes": 83_000,
            "compression_level": 4, "peak_rps": options.peak_rps,
        },
        "service": {"name": "nginx", "port": 8000, "page_bytes": 83_000},
        "batch": {"name": "ffmpeg", "threads": 1},
        "limits": dict(options.limits),
        "detectable_pct": {"p90_us": 1.4, "p99_us": 3.1},
        **substrate,
    }  # fmt: skip


@dataclasses.dataclass(frozen=True)
class Readings:
    """What one measurement brings home, before it is judged; the arguments of ``guards.evaluate``."""

    manifest: dict[str, Any]
    record: MeasurementRecord
    load: dict[str, Any]
    samples: dict[str, list[dict[str, Any]]]
    policy: dict[str, Any]

    def evaluate(self) -> dict[str, GuardResult]:
        """Return every guard's result by name."""
        found = guards.evaluate(self.manifest, self.record, self.load, self.samples, self.policy)
        return {result.guard: result for result in found}


def readings(options: Options, mode: str, block: int = 1, attempt: int = 1) -> Readings:
    """Return the readings of one measurement without writing a run."""
    document = manifest(options)
    plan = schedule.plan(schedule.Config.from_manifest(document))
    cell = next(cell for cell in plan if (cell.mode, cell.block) == (mode, block))
    window = window_of(options, dataclasses.replace(cell, attempt=attempt), block)
    record = MeasurementRecord.of(window.cell, window.rate_rps)
    return Readings(document, record, *_brought_home(window))


def _brought_home(window: Window) -> tuple[dict[str, Any], dict[str, list[dict[str, Any]]], dict[str, Any]]:
    """Return load, samples and policy of a window."""
    load, lines, policy = load_result(window), samples(window), policy_readings(window)
    if window.options.pods:
        lines[TESTED] = synthetic_pods.adapt(window, lines[TESTED])
        policy = synthetic_pods.policy_readings(window)
    return load, lines, policy


def make_run(path: Path | str, options: Options | None = None) -> RunDirectory:
    """Write a run directory at ``path`` and return it; finished unless ``stop_after`` cuts it short."""
    options = options or Options()
    document = manifest(options)
    run = RunDirectory.create(path, document)
    config = schedule.Config.from_manifest(document)
    progress = schedule.Progress(schedule.plan(config), config.repeat_cap)
    done: list[MeasurementRecord] = []
    while (cell := progress.next_cell(done)) is not None:
        if options.stop_after is not None and len(done) >= options.stop_after:
            return run
        window = window_of(options, cell, len(done))
        load, lines, policy = _brought_home(window)
        record = MeasurementRecord.of(cell, window.rate_rps)
        results = guards.evaluate(document, record, load, lines, policy)
        record = guards.judged(record, results)
        done.append(run.store_measurement(record, load, lines, policy, results))
    run.finish()
    return run


def main() -> None:
    """Write a run directory from the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("path", type=Path)
    parser.add_argument("--blocks", type=int, default=5)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--no-pm-qos", action="store_true")
    parser.add_argument("--calibration", action="store_true")
    parser.add_argument("--pods", action="store_true")
    parser.add_argument("--stop-after", type=int)
    arguments = parser.parse_args()
    options = Options(
        run_id=arguments.path.name,
        seed=arguments.seed,
        blocks=arguments.blocks,
        pm_qos_held=not arguments.no_pm_qos,
        modes=_modes(arguments),
        pods=arguments.pods,
        stop_after=arguments.stop_after,
    )
    print(make_run(arguments.path, options).path)


def _modes(arguments: argparse.Namespace) -> Mapping[str, Behaviour]:
    if arguments.pods:
        return synthetic_pods.POD_MODES
    return CALIBRATION_MODES if arguments.calibration else THREE_MODES


if __name__ == "__main__":
    main()
