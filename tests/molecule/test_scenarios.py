"""Each molecule scenario, from nothing to nothing."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

import pytest
import schedule
from background import Background
from beside import Beside
from programs import CannotRunError, NotBuiltError
from tooling import ROOT, checkout_environment, passed_tests, run

SCENARIO_S = 1800
DESTROY_S = 90
SCENARIOS = sorted(path.parent for path in (ROOT / "molecule").glob("*/molecule.yml"))


def silent(output: str) -> list[str]:
    """Return what a successful run of a scenario did not do.

    Molecule ends with 0 where a playbook is missing, where a play matches no host and where no test was found:
    its exit code alone proves nothing.
    """
    missing = []
    if not re.search(r"\bconverge\b", output):
        missing.append("the action converge")
    if not re.search(r"^\S+\s+: ok=[1-9]\d*", output, re.MULTILINE):
        missing.append("a task on any host")
    if passed_tests(output) == 0:
        missing.append("a testinfra test that passed")
    return missing


def test_there_are_scenarios() -> None:
    names = {path.name for path in SCENARIOS}
    assert "default" in names
    assert set(schedule.DEAR) <= names


def played(scenario: str, env: Mapping[str, str], limit_s: float, log: Path) -> str:
    """Return what molecule printed; a scenario that is not done when its time is over is ended and cleared away."""
    started = Background(["molecule", "test", "-s", scenario], log, env)
    try:
        ended = started.wait(min(limit_s, SCENARIO_S))
    finally:
        started.stop()
    if not ended:
        run(["molecule", "destroy", "-s", scenario], env=env, timeout_s=DESTROY_S)
        if limit_s < SCENARIO_S:
            pytest.skip(f"was ended, as all minutes are used: {schedule.BUDGET}=0 make test lets it finish")
    assert ended, f"was ended after {SCENARIO_S} s\n{started.output()[-12_000:]}"
    assert started.failure() == "", started.output()[-12_000:]
    return started.output()


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda path: path.name)
def test_scenario(scenario: Path, beside: Beside, tmp_path: Path) -> None:
    try:
        limit_s = beside.programs.admit(scenario.name)
    except CannotRunError as exc:
        pytest.skip(str(exc))
    except NotBuiltError as exc:
        pytest.fail(str(exc))
    env = checkout_environment(MOLECULE_GLOB="molecule/*/molecule.yml", PY_COLORS="0", ANSIBLE_NOCOLOR="1")
    # Molecule writes its own configuration, and ANSIBLE_CONFIG would be the checkout's instead.
    env.pop("ANSIBLE_CONFIG")
    output = played(scenario.name, env, limit_s, tmp_path / "molecule.log")
    assert silent(output) == [], output[-8_000:]


def test_silence_is_not_success() -> None:
    assert silent("WARNING default > verify: no tests found\n") == [
        "the action converge",
        "a task on any host",
        "a testinfra test that passed",
    ]
    assert silent("INFO default > converge: Executing\na  : ok=3 changed=0\n== 2 passed in 0.1s ==\n") == []
