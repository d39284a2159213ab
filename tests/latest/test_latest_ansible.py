"""The unit tests and the default scenario again, with the newest ansible-core on a newer Python."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import pytest
from tooling import ROOT, cache_dir, checkout_environment, passed_tests, pythons, run

REQUIREMENTS = ROOT / "requirements-latest.txt"
MINORS = (14, 13, 12)  # ansible-core 2.21


@pytest.fixture(scope="module")
def bin_dir() -> Path:
    """The programs of a virtual environment with requirements-latest.txt, which is kept for the next time."""
    python = next((path for minor in MINORS for path in pythons(minor)), None)
    if python is None:
        pytest.skip("no Python 3.12 or newer on PATH or in ~/.pyenv/versions, which the newest ansible-core needs")
    key = hashlib.sha256(REQUIREMENTS.read_bytes() + str(python).encode()).hexdigest()[:12]
    directory = cache_dir() / f"latest-{key}"
    if not (directory / f".{REQUIREMENTS.name}.stamp").exists():
        env = {**os.environ, "PYTHON": str(python)}
        run([ROOT / "tools" / "venv.sh", directory, REQUIREMENTS, "12"], env=env, timeout_s=900)
    return directory / "bin"


def test_unit_tests(bin_dir: Path) -> None:
    argv = [bin_dir / "python", "-m", "pytest", "-p", "no:cacheprovider", "-q", "tests/unit"]
    output = run(argv, env=checkout_environment(bin_dir), timeout_s=900)
    assert passed_tests(output) > 0, output[-4_000:]


def test_default_scenario(bin_dir: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("needs root")
    env = checkout_environment(bin_dir, MOLECULE_GLOB="molecule/*/molecule.yml", PY_COLORS="0", ANSIBLE_NOCOLOR="1")
    env.pop("ANSIBLE_CONFIG")
    output = run([bin_dir / "molecule", "test", "-s", "default"], env=env, timeout_s=1800)
    assert "converge" in output
    assert passed_tests(output) > 0, output[-4_000:]
