"""Programs are built beside the tests, by the real builder and a stand-in for go."""

from __future__ import annotations

import os
import shutil
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import programs
import pytest
import schedule
import yaml
from background import Background
from tooling import ROOT

from ansible_collections.colocation.testbed.plugins.module_utils.kubernetes import go_groups
from ansible_collections.colocation.testbed.plugins.plugin_utils.kubernetes import go_pins

CRICTL = {"small": schedule.Dear(2, ("crictl",))}
VERSION = go_groups.parse(go_pins.load(["crictl"]))[0].programs["crictl"].version
# Writes what it is asked for, after half of it has been there for as long as a file is missing.
GO = """#!/bin/sh
[ "$1" = version ] && exit 0
[ "$1" = build ] || exit 3
while [ "$1" != -o ]; do shift; done
printf '#!/bin/sh\\n' > "$2/crictl"
chmod 755 "$2/crictl"
echo $$ > "{folder}/building"
while [ ! -e "{folder}/go-on" ]; do sleep 0.05; done
[ -e "{folder}/fails" ] && {{ echo "x: checksum mismatch" >&2; exit 1; }}
echo 'echo {version}' >> "$2/crictl"
"""
WAIT_S = 30.0


class Bench:
    """A cache, a stand-in for go, and the session's programs."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.cache = folder, folder / "cache"
        self.started: list[Background] = []
        path = folder / "bin" / "go"
        path.parent.mkdir()
        path.write_text(GO.format(folder=folder, version=VERSION))
        path.chmod(0o755)

    def start(self, arguments: Sequence[str]) -> Background:
        environment = {**os.environ, "PYTHONPATH": str(ROOT / "collections")}
        builder = str(ROOT / "tests/lib/build_programs.py")
        self.started.append(Background([sys.executable, builder, *arguments], self.folder / "log", environment))
        return self.started[-1]

    def session(self, minutes: float = 0.0, past_min: float = 0.0) -> programs.Programs:
        made = programs.Programs(schedule.Budget(time.time() - past_min * 60, minutes), self.cache, self.start)
        made.build(["small"], buildable=lambda _name: True)
        return made

    def file(self, name: str) -> Path:
        return self.folder / name

    def until(self, name: str) -> None:
        deadline_s = time.monotonic() + WAIT_S
        while not self.file(name).exists():
            assert time.monotonic() < deadline_s, f"{name} has not come"
            time.sleep(0.02)

    def kept(self) -> list[str]:
        return sorted(path.name for path in self.cache.iterdir() if path.name != "lock")


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Bench]:
    if shutil.disk_usage(tmp_path).free < 10 * 1024**3:
        pytest.skip(f"{tmp_path} has less than 10 GiB free, without which nothing is built")
    monkeypatch.setattr(schedule, "DEAR", CRICTL)
    made = Bench(tmp_path)
    monkeypatch.setenv("PATH", f"{tmp_path}/bin{os.pathsep}{os.environ['PATH']}")
    yield made
    for program in made.started:
        program.stop(0)


def test_a_scenario_waits_for_its_programs(bench: Bench) -> None:
    session = bench.session()
    bench.until("building")
    assert not session.ready("small")
    assert session.ready("default")
    bench.file("go-on").touch()
    assert session.admit("small") == float("inf")
    assert session.ready("small")
    assert programs.missing(["crictl"], session.store) == []
    session.stop()


def test_what_is_there_is_not_built_again(bench: Bench) -> None:
    bench.file("go-on").touch()
    bench.session().admit("small")
    assert bench.session(minutes=55).admit("small") > 0
    assert len(bench.started) == 1


def test_nothing_is_built_for_cheap_scenarios(bench: Bench) -> None:
    session = programs.Programs(schedule.Budget(0, 0), bench.cache, bench.start)
    session.build(["default", "node"])
    session.pause(True)
    session.stop()
    assert bench.started == []
    assert session.admit("default") == float("inf")


def test_an_end_in_the_middle_leaves_nothing_half(bench: Bench) -> None:
    session = bench.session()
    bench.until("building")
    session.pause(True)
    session.stop()
    assert bench.kept() == []
    assert programs.missing(["crictl"], session.store) == ["crictl"]


def test_a_kill_in_the_middle_leaves_nothing_whole(bench: Bench) -> None:
    session = bench.session()
    bench.until("building")
    bench.started[0].stop(0)
    assert programs.missing(["crictl"], session.store) == ["crictl"]
    bench.file("go-on").touch()
    assert bench.session().admit("small") == float("inf")
    assert all(not name.startswith(".build-") for name in bench.kept()), "the next run removes it"


def test_a_scenario_is_skipped_while_its_programs_are_not_ready(bench: Bench) -> None:
    session = bench.session(minutes=10, past_min=8)
    bench.until("building")
    with pytest.raises(programs.CannotRunError, match="crictl are still being built: COLOCATION_TESTBED_BUDGET_MIN=0"):
        session.admit("small")


def test_what_cannot_be_built_is_no_skip(bench: Bench) -> None:
    bench.file("fails").touch()
    bench.file("go-on").touch()
    with pytest.raises(programs.NotBuiltError, match=r"crictl could not be built: .*checksum mismatch"):
        bench.session().admit("small")
    assert bench.started[0].output().count("checksum mismatch") == 2


def test_a_role_that_builds_itself_has_to_fit(bench: Bench) -> None:
    session = programs.Programs(schedule.Budget(time.time(), 10), bench.cache, bench.start)
    session.build(["small"], buildable=lambda _name: False)
    assert bench.started == []
    with pytest.raises(programs.CannotRunError, match=r"needs 17 min, and 10\.0 of 10 are left"):
        session.admit("small")


def test_without_go_a_scenario_is_skipped(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(bench.folder))
    session = bench.session()
    assert bench.started == []
    with pytest.raises(programs.CannotRunError, match="crictl are built with Go, which is not on PATH"):
        session.admit("small")


def test_an_admitted_scenario_ends_soon_after_the_time(bench: Bench) -> None:
    bench.file("go-on").touch()
    bench.session().admit("small")
    limit_s = bench.session(minutes=55, past_min=50).admit("small")
    assert limit_s == pytest.approx((5 + schedule.OVERRUN_MIN) * 60, abs=30)


def test_groups_are_built_once_in_the_order_of_the_table() -> None:
    assert programs.wanted(["koordinator", "default", "kubernetes"]) == list(schedule.DEAR["koordinator"].groups)
    assert programs.wanted(["cgroup_qemu"]) == []


@pytest.mark.parametrize(
    ("role", "variable"), [("kubernetes", "__kubernetes_groups"), ("koordinator", "_koordinator_group")]
)
def test_the_table_has_what_roles_ask_for(role: str, variable: str) -> None:
    """Otherwise a role builds in the middle of its scenario."""
    variables = yaml.safe_load((ROOT / "roles" / role / "vars" / "main.yml").read_text(encoding="utf-8"))
    asked = variables[variable]
    # A list of names, or an expression that begins with one.
    names = asked if isinstance(asked, list) else yaml.safe_load(asked.strip("{ }").partition("|")[0])
    assert set(names) <= set(schedule.DEAR[role].groups)
