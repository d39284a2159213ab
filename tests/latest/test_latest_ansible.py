"""The unit tests and the default scenario again, with the newest ansible-core on a newer Python."""

from __future__ import annotations

import os

import latest
import pytest
from beside import Beside
from tooling import checkout_environment, passed_tests, run

NO_PYTHON = "no Python 3.12 or newer on PATH or in ~/.pyenv/versions, which the newest ansible-core needs"
UNIT_TESTS_S = 1800


def test_unit_tests(beside: Beside) -> None:
    """They have been running since the session began."""
    if beside.latest is None:
        pytest.skip(NO_PYTHON)
    ended = beside.latest.wait(UNIT_TESTS_S)
    beside.latest.stop()
    output = beside.latest.output()
    assert ended, output[-12_000:]
    assert beside.latest.failure() == "", output[-12_000:]
    assert passed_tests(output) > 0, output[-4_000:]


def test_default_scenario() -> None:
    if os.geteuid() != 0:
        pytest.skip("needs root")
    python = latest.newest_python()
    if python is None:
        pytest.skip(NO_PYTHON)
    bin_dir = latest.bin_dir(python)
    env = checkout_environment(bin_dir, MOLECULE_GLOB="molecule/*/molecule.yml", PY_COLORS="0", ANSIBLE_NOCOLOR="1")
    env.pop("ANSIBLE_CONFIG")
    output = run([bin_dir / "molecule", "test", "-s", "default"], env=env, timeout_s=1800)
    assert "converge" in output
    assert passed_tests(output) > 0, output[-4_000:]
