"""The archive that users install: what is in it, and that it works away from the checkout."""

from __future__ import annotations

import re
import shutil
import sys
import tarfile
from pathlib import Path

import ansible_test
import pytest
from tooling import COLLECTION, NAME, NAMESPACE, ROOT, cache_dir, clean_environment, run, tracked_files

SHIPPED = ("changelogs", "docs", "files", "inventories", "meta", "playbooks", "plugins", "roles")
SHIPPED_FILES = {"CHANGELOG.rst", "LICENSE", "README.md", "requirements.txt", "requirements.yml", "site.yml",
                 "MANIFEST.json", "FILES.json"}  # fmt: skip


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The archive, built from the checkout as it is."""
    folder = tmp_path_factory.mktemp("archive")
    run(["ansible-galaxy", "collection", "build", "--output-path", folder])
    (built,) = folder.glob(f"{NAMESPACE}-{NAME}-*.tar.gz")
    return built


@pytest.fixture(scope="module")
def elsewhere(archive: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with the archive installed below collections/, far from the checkout."""
    # Inside the checkout ansible-galaxy would find the checkout itself and install nothing.
    folder = tmp_path_factory.mktemp("elsewhere")
    argv = ["ansible-galaxy", "collection", "install", archive, "-p", folder / "collections", "--offline"]
    run(argv, cwd=folder, env=clean_environment())
    return folder


@pytest.fixture(scope="module")
def installed_environment(elsewhere: Path) -> dict[str, str]:
    """Environment in which only the installed collection can be found."""
    return clean_environment(ANSIBLE_COLLECTIONS_PATH=str(elsewhere / "collections"))


def test_archive_holds_what_is_shipped_and_nothing_else(archive: Path) -> None:
    with tarfile.open(archive) as tar:
        members = tar.getmembers()
    names = {member.name for member in members if member.isfile()}
    assert [member.name for member in members if not (member.isfile() or member.isdir())] == []
    assert {name for name in names if "/" not in name} <= SHIPPED_FILES
    assert {name.split("/")[0] for name in names if "/" in name} <= set(SHIPPED)
    wanted = {str(path.relative_to(ROOT)) for path in tracked_files()}
    assert (
        sorted(name for name in wanted if name.startswith(tuple(f"{f}/" for f in SHIPPED)) and name not in names) == []
    )


def test_installed_site_passes_the_syntax_check(elsewhere: Path, installed_environment: dict[str, str]) -> None:
    inventory = elsewhere / "collections" / "ansible_collections" / NAMESPACE / NAME / "inventories" / "local"
    argv = ["ansible-playbook", "-i", inventory, f"{COLLECTION}.site", "--syntax-check"]
    assert "playbook:" in run(argv, cwd=elsewhere, env=installed_environment)


def test_installed_modules_are_listed(elsewhere: Path, installed_environment: dict[str, str]) -> None:
    listing = run(["ansible-doc", "-l", COLLECTION], cwd=elsewhere, env=installed_environment)
    names = {path.stem for path in (ROOT / "plugins" / "modules").glob("*.py")} - {"__init__"}
    assert names
    assert {line.split()[0].removeprefix(f"{COLLECTION}.") for line in listing.splitlines() if line} == names


def _sanity_home() -> Path:
    """Return a home directory for ansible-test, in which its script for getting pip is already there.

    ansible-test downloads that script for the virtual environments of its tests; ensurepip does the same
    without the network. The directory is kept, because making the environments takes a minute.
    """
    home = cache_dir() / "sanity"
    requirements = Path(ansible_test.__file__).parent / "_internal" / "python_requirements.py"
    found = re.search(r"pip='([0-9.]+)'", requirements.read_text(encoding="utf-8"))
    assert found, f"{requirements} no longer names its version of pip: adapt this function"
    cache = home / ".ansible" / "test" / "cache"
    cache.mkdir(parents=True, exist_ok=True)
    script = cache / f"get_pip_{found[1].replace('.', '_')}.py"
    script.write_text("import ensurepip\n\nensurepip.bootstrap(upgrade=True)\n", encoding="utf-8")
    user_config = Path.home() / ".config" / "pip" / "pip.conf"
    if user_config.is_file():
        (home / ".config" / "pip").mkdir(parents=True, exist_ok=True)
        shutil.copy(user_config, home / ".config" / "pip" / "pip.conf")
    return home


def test_ansible_test_sanity(elsewhere: Path) -> None:
    installed = elsewhere / "collections" / "ansible_collections" / NAMESPACE / NAME
    ignores = ROOT / "tests" / "sanity"
    if ignores.is_dir():
        shutil.copytree(ignores, installed / "tests" / "sanity", dirs_exist_ok=True)
    python = f"{sys.version_info.major}.{sys.version_info.minor}"
    argv = ["ansible-test", "sanity", "--python", python, "--color", "no"]
    output = run(argv, cwd=installed, env=clean_environment(HOME=str(_sanity_home())), timeout_s=1200)
    assert "Running sanity test" in output
    assert "validate-modules" in output
