"""What the tests share: where things are, and how programs are started."""

from __future__ import annotations

import functools
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
NAMESPACE, NAME = "colocation", "testbed"
COLLECTION = f"{NAMESPACE}.{NAME}"
IMPORT_PREFIX = f"ansible_collections.{COLLECTION}."


def cache_dir() -> Path:
    """Return the user's cache directory for virtual environments that are expensive to make."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    path = Path(base) / "colocation-testbed"
    path.mkdir(parents=True, exist_ok=True)
    return path


def clean_environment(bin_dir: Path | None = None, **extra: str) -> dict[str, str]:
    """Return an environment without settings of Ansible or Molecule, `bin_dir` (this interpreter's) first on PATH."""
    env = {key: value for key, value in os.environ.items() if not key.startswith(("ANSIBLE_", "MOLECULE_", "PYTEST_"))}
    first = str(bin_dir or Path(sys.executable).parent)
    env |= {"PATH": f"{first}{os.pathsep}{env.get('PATH', os.defpath)}", "LC_ALL": "C.UTF-8", "NO_COLOR": "1"}
    return env | extra


def checkout_environment(bin_dir: Path | None = None, **extra: str) -> dict[str, str]:
    """Return an environment in which Ansible works on this checkout, from whatever directory it is started."""
    return clean_environment(bin_dir, ANSIBLE_CONFIG=str(ROOT / "ansible.cfg"), **extra)


def run(
    argv: Sequence[str | Path],
    *,
    cwd: Path = ROOT,
    env: Mapping[str, str] | None = None,
    timeout_s: float = 600,
) -> str:
    """Run a program and return what it printed; a failure fails the test with the end of that."""
    done = subprocess.run(
        [str(part) for part in argv],
        cwd=cwd,
        env=dict(env) if env is not None else checkout_environment(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=timeout_s,
        check=False,
    )
    if done.returncode != 0:
        command = " ".join(str(part) for part in argv)
        raise AssertionError(f"{command}\nexit code {done.returncode}\n{done.stdout[-12_000:]}")
    return done.stdout


@functools.cache
def tracked_files() -> tuple[Path, ...]:
    """Return the files that are, or are about to be, part of the repository; without the collection's symlink."""
    argv = ["git", "-C", str(ROOT), "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listing = subprocess.run(argv, check=True, capture_output=True, text=True, timeout=60).stdout
    paths = (ROOT / name for name in sorted(filter(None, listing.split("\0"))))
    return tuple(path for path in paths if path.is_file() and not path.is_symlink())


def files_below(*folders: str, suffix: str = "") -> list[Path]:
    """Return the repository's files below one of the folders, by the end of their names."""
    prefixes = tuple(ROOT / folder for folder in folders)
    return [
        path
        for path in tracked_files()
        if path.name.endswith(suffix) and any(path == p or p in path.parents for p in prefixes)
    ]


def relative(path: Path) -> str:
    """Return a path as the repository names it: the id of a parametrised test."""
    return str(path.relative_to(ROOT))


def pythons(minor: int) -> Iterator[Path]:
    """Yield interpreters of Python 3.<minor> that start: those on PATH, then those of pyenv."""
    wanted = f"(3, {minor})"
    candidates = [shutil.which(f"python3.{minor}")]
    versions = Path.home() / ".pyenv" / "versions"
    candidates += [str(path) for path in sorted(versions.glob(f"3.{minor}.*/bin/python3"), reverse=True)]
    for candidate in filter(None, candidates):
        # A pyenv shim exists for versions that aren't selected, and then exits with 127.
        code = f"import sys; sys.exit(sys.version_info[:2] != {wanted})"
        if subprocess.run([candidate, "-c", code], capture_output=True, check=False, timeout=30).returncode == 0:
            yield Path(candidate)


def passed_tests(output: str) -> int:
    """Return how many tests the pytest summaries in an output say have passed."""
    return sum(int(count) for count in re.findall(r"\b(\d+) passed\b", output))
