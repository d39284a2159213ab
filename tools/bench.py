"""Run a benchmark, print its figures and write them to results/bench/<name>.json.

`python -m tools.bench matrix [--blocks N] [--run DIRECTORY]`, `python -m tools.bench node [--rounds N]`,
`python -m tools.bench bandwidth [--only PART,…]`, `python -m tools.bench kubernetes [--blocks N] [--run DIRECTORY]`, or
`make bench-matrix`, `make bench-node`, `make bench-bandwidth`, `make bench-kubernetes`.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tools import bench_bandwidth, bench_node
from tools.bench_figures import BenchError, Figure, table, write

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "results"
ADDED_LATENCY_GOAL_PCT = 1.0
WORK_KEPT_GOAL_PCT = 98.0
RERUN_GOAL_S = 15.0
#: One machine that carries a whole cluster.
KUBERNETES_INVENTORY = "inventories/kubernetes_local"


Judge = Callable[[dict[str, float]], bool]


def upper_end_is_within_goal(interval: dict[str, float]) -> bool:
    """Judge added latency: by the end of the interval that hurts."""
    return interval["high"] <= ADDED_LATENCY_GOAL_PCT


def value_reaches_goal(interval: dict[str, float]) -> bool:
    """Judge the batch work that was kept."""
    return interval["value"] >= WORK_KEPT_GOAL_PCT


def no_goal(interval: dict[str, float]) -> bool:
    """Judge a peer, which is measured to compare with and may be anything."""
    return bool(interval)


def figure(name: str, interval: dict[str, float] | None, goal: str, judge: Judge, where: dict[str, Any]) -> Figure:
    """Return a figure in percent from an interval of the summary; without one, or in an invalid run, nothing holds."""
    ends = interval or {}
    holds = interval is not None and where["verdict"] != "invalid" and judge(interval)
    method = f"{where['method']}; verdict of the run: {where['verdict']}"
    return Figure(
        name, ends.get("value"), ends.get("low"), ends.get("high"), "%", goal, holds, method, where["machine"]
    )


def only(rows: list[dict[str, Any]], what: str, **wanted: str) -> dict[str, Any]:
    """Return the one row of the summary that has the wanted values."""
    found = [row for row in rows if all(row.get(key) == value for key, value in wanted.items())]
    if len(found) != 1:
        text = ", ".join(f"{key} {value}" for key, value in wanted.items())
        raise BenchError(
            f"{what} with {text}: the summary has {len(found)}, not one; run the benchmark with one load point"
            " and one aggressor"
        )
    return found[0]


def machine(manifest: dict[str, Any]) -> dict[str, Any]:
    """Return what is known about the tested host of a run."""
    hosts = [host for host in manifest["hosts"].values() if host["role"] == "tested"]
    if not hosts:
        raise BenchError("the manifest names no tested host: the run directory is damaged; run the benchmark again")
    return {
        key: hosts[0].get(key) for key in ("cpu_model", "cpus", "kernel", "memory_bytes", "virtualization", "cgroup")
    }


def matrix_figures(manifest: dict[str, Any], summary: dict[str, Any], prefix: str = "") -> list[Figure]:
    """Return the figures of one run of the three-mode matrix, default colocation as the peer."""
    schedule = manifest["schedule"]
    where = {
        "method": f"{schedule['blocks']} shuffled blocks of {schedule['window_s']} s, the same arrivals in every mode"
        " of a block; change against the block's own baseline, 95 % bootstrap interval over blocks"
        f"{on_cluster(manifest)}",
        "verdict": summary["verdict"]["result"],
        "machine": machine(manifest),
    }
    modes: list[tuple[str, str, Judge]] = [
        ("slo_aware", f"upper end <= {ADDED_LATENCY_GOAL_PCT:g}", upper_end_is_within_goal),
        ("colocation", "peer, no goal", no_goal),
    ]
    figures = []
    for mode, goal, judge in modes:
        for metric in ("p90", "p99"):
            effect = only(summary["effects"], "effects", mode=mode, metric=f"{metric}_us")
            figures.append(figure(f"{prefix}{mode}_{metric}_added_pct", effect["change_pct"], goal, judge, where))
    kept = only(summary["gains"], "gains", mode="slo_aware")["batch_work_kept_pct"]
    # Suppress gives work away on purpose: how much is a figure, not a goal.
    goal, keeps = ("a figure, no goal", no_goal) if prefix else (f">= {WORK_KEPT_GOAL_PCT:g}", value_reaches_goal)
    figures.append(figure(f"{prefix}batch_work_kept_pct", kept, goal, keeps, where))
    return figures


def on_cluster(manifest: dict[str, Any]) -> str:
    """Return the words about the cluster of a run on pods, empty for one on processes."""
    cluster = manifest.get("cluster")
    if manifest.get("substrate") != "pod" or not cluster:
        return ""
    koordinator = (cluster["koordinator"] or {}).get("version", "none")
    place = "on the tested machine" if cluster["shares_machine"] else "elsewhere"
    return (
        f"; pods of Kubernetes {cluster['server_version']}, Koordinator {koordinator}, load generator and control plane"
        f" {place}"
    )


def play(variables: dict[str, Any], inventory: str | None = None) -> tuple[str, float]:
    """Run site.yml with variables; return what it printed, which is also shown, and the seconds it took."""
    chosen = ["-i", inventory] if inventory else []
    argv = [str(Path(sys.executable).parent / "ansible-playbook"), *chosen, "site.yml", "-e", json.dumps(variables)]
    env = os.environ | {"ANSIBLE_CONFIG": str(ROOT / "ansible.cfg"), "ANSIBLE_NOCOLOR": "1"}
    started = time.monotonic()
    lines = []
    with subprocess.Popen(argv, cwd=ROOT, env=env, stdout=subprocess.PIPE, text=True) as process:
        for line in process.stdout or ():
            sys.stdout.write(line)
            lines.append(line)
    if process.returncode != 0:
        raise BenchError(f"{' '.join(argv)} ended with {process.returncode}: its last lines above say why")
    return "".join(lines), time.monotonic() - started


def rerun_figure(where: dict[str, Any]) -> Figure:
    """Return how long site.yml takes when nothing is to be changed."""
    play({"matrix_blocks": 0})
    output, seconds = play({"matrix_blocks": 0})
    changes = sum(int(count) for count in re.findall(r"\bchanged=(\d+)", output))
    return Figure(
        name="site_rerun_s",
        value=round(seconds, 2),
        low=None,
        high=None,
        unit="s",
        goal=f"<= {RERUN_GOAL_S:g} with nothing changed",
        holds=seconds <= RERUN_GOAL_S and changes == 0,
        method=f"one run of site.yml with matrix_blocks 0 after another one; {changes} changes",
        machine=where,
    )


def read(path: Path) -> dict[str, Any]:
    """Return a JSON file of a run directory."""
    try:
        parsed: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as exc:
        raise BenchError(f"cannot read {path}: {exc}; name a finished run directory") from exc
    return parsed


def run_of(options: argparse.Namespace, inventory: str | None = None) -> tuple[dict[str, Any], dict[str, Any]]:
    """Measure the default matrix of an inventory, or read the run that was named; return manifest and summary."""
    directory = options.run
    if directory is None:
        run_id = datetime.now(UTC).strftime("bench-%Y%m%d-%H%M%S")
        play({"matrix_run_id": run_id, "matrix_blocks": options.blocks}, inventory)
        directory = RESULTS / run_id
    return read(directory / "manifest.json"), read(directory / "summary.json")


def bench_matrix(options: argparse.Namespace) -> list[Figure]:
    """Measure the default matrix, or read the run that was named."""
    manifest, summary = run_of(options)
    return [*matrix_figures(manifest, summary), rerun_figure(machine(manifest))]


def bench_kubernetes(options: argparse.Namespace) -> list[Figure]:
    """Measure the matrix with workloads as pods, or read the run that was named."""
    manifest, summary = run_of(options, KUBERNETES_INVENTORY)
    substrate = manifest.get("substrate", "process")
    if substrate != "pod":
        raise BenchError(
            f"the workloads of run {manifest['run_id']} were no pods (substrate {substrate}); name a run of"
            f" {KUBERNETES_INVENTORY}"
        )
    return matrix_figures(manifest, summary, prefix="pod_")


BENCHMARKS: dict[str, Callable[[argparse.Namespace], list[Figure]]] = {
    "matrix": bench_matrix,
    "node": bench_node.bench,
    "bandwidth": bench_bandwidth.bench,
    "kubernetes": bench_kubernetes,
}


def main(arguments: list[str] | None = None) -> int:
    """Run one benchmark; the exit code is 1 when it can't be run, not when a goal is missed."""
    parser = argparse.ArgumentParser(prog="python -m tools.bench", description=__doc__)
    parser.add_argument("name", choices=sorted(BENCHMARKS))
    parser.add_argument("--blocks", type=int, default=10, help="blocks of the matrix (default: %(default)s)")
    parser.add_argument("--rounds", type=int, default=7, help="rounds of the node benchmark (default: %(default)s)")
    parser.add_argument("--run", type=Path, help="take the figures from this run directory instead of measuring")
    parts = ", ".join(bench_bandwidth.PARTS)
    parser.add_argument("--only", help=f"parts of the bandwidth benchmark, separated by commas: {parts}")
    options = parser.parse_args(arguments)
    try:
        figures = BENCHMARKS[options.name](options)
        path = write(options.name, figures, RESULTS / "bench", keep=bool(options.only))
    except BenchError as exc:
        sys.stderr.write(f"bench {options.name}: {exc}\n")
        return 1
    sys.stdout.write(f"\n{table(figures)}\n\nwritten: {path.relative_to(ROOT)}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
