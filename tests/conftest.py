"""Markers by folder, the order of the suite, and what is built beside it; schedule.py says how."""

from __future__ import annotations

import os
from pathlib import Path

import programs
import pytest
import schedule
from hypothesis import HealthCheck, settings

# Times of single examples say nothing on a machine that does other things too.
PATIENT = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("default", PATIENT)
settings.register_profile("nightly", PATIENT, max_examples=10_000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "default"))

TESTS = Path(__file__).resolve().parent
MARKERS = {"gates": "gate", "kernel": "kernel", "molecule": "molecule", "end_to_end": "end_to_end", "latest": "latest"}
NEED_ROOT = ("kernel", "molecule", "end_to_end")


PROGRAMS = pytest.StashKey[programs.Programs]()


def _folder(item: pytest.Item) -> str:
    return item.path.relative_to(TESTS).parts[0]


def _scenario(item: pytest.Item) -> str:
    """Return the molecule scenario that a test runs, empty for any other test."""
    parameters = item.callspec.params if isinstance(item, pytest.Function) and hasattr(item, "callspec") else {}
    return parameters["scenario"].name if _folder(item) == "molecule" and "scenario" in parameters else ""


def pytest_configure(config: pytest.Config) -> None:
    """Begin to count the time. A budget that cannot be read ends everything before it begins."""
    try:
        config.stash[PROGRAMS] = programs.Programs(schedule.budget())
    except schedule.ScheduleError as exc:
        raise pytest.UsageError(str(exc)) from exc


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark each test by its folder, skip those that need root without it, and put them in order."""
    is_root = os.geteuid() == 0
    for item in items:
        folder = _folder(item)
        if folder in MARKERS:
            item.add_marker(MARKERS[folder])
        if folder in NEED_ROOT and not is_root:
            item.add_marker(pytest.mark.skip(reason="needs root"))
    items.sort(key=lambda item: schedule.position(_folder(item), _scenario(item)))


def pytest_collection_finish(session: pytest.Session) -> None:
    """Start to build what the chosen scenarios need, unless tests are only listed or can't run."""
    if os.geteuid() == 0 and not session.config.option.collectonly:
        session.config.stash[PROGRAMS].build(filter(None, map(_scenario, session.items)))


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Keep what is built in the background from disturbing what measures."""
    item.config.stash[PROGRAMS].pause(_folder(item) in schedule.MEASURING)


def pytest_unconfigure(config: pytest.Config) -> None:
    """End what is built in the background, however the session ends."""
    if PROGRAMS in config.stash:
        config.stash[PROGRAMS].stop()


@pytest.fixture(scope="session")
def session_programs(pytestconfig: pytest.Config) -> programs.Programs:
    """Return what admits dear scenarios."""
    return pytestconfig.stash[PROGRAMS]
