"""The newest ansible-core on a newer Python: its environment, and the unit tests in it."""

from __future__ import annotations

import hashlib
import os
import sys
from pathlib import Path

import tooling

REQUIREMENTS = tooling.ROOT / "requirements-latest.txt"
MINORS = (14, 13, 12)  # ansible-core 2.21


def newest_python() -> Path | None:
    """Return an interpreter that the newest ansible-core takes."""
    return next((path for minor in MINORS for path in tooling.pythons(minor)), None)


def bin_dir(python: Path) -> Path:
    """Return the programs of a virtual environment with requirements-latest.txt, which is kept for the next time."""
    key = hashlib.sha256(REQUIREMENTS.read_bytes() + str(python).encode()).hexdigest()[:12]
    directory = tooling.cache_dir() / f"latest-{key}"
    if not (directory / f".{REQUIREMENTS.name}.stamp").exists():
        env = {**os.environ, "PYTHON": str(python)}
        tooling.run([tooling.ROOT / "tools" / "venv.sh", directory, REQUIREMENTS, "12"], env=env, timeout_s=900)
    return directory / "bin"


def main(python: Path) -> None:
    """Become the unit tests in that environment, without those of the sources and of the suite itself."""
    programs = bin_dir(python)
    left_out = ("--ignore=tests/unit/meta", "--ignore=tests/unit/support")
    argv = [str(programs / "python"), "-m", "pytest", "-p", "no:cacheprovider", "-q", "tests/unit", *left_out]
    os.execve(argv[0], argv, tooling.checkout_environment(programs, HYPOTHESIS_PROFILE="again"))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
