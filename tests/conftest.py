"""Markers by folder, the order of the suite, and what is built beside it; schedule.py says how."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import lane
import pytest
import schedule
import tooling
from beside import Beside
from hypothesis import HealthCheck, settings
from spent import Spent

# Times of single examples say nothing on a machine that does other things too.
PATIENT = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("default", PATIENT)
settings.register_profile("again", PATIENT, max_examples=20)
settings.register_profile("nightly", PATIENT, max_examples=10_000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "default"))

TESTS = Path(__file__).resolve().parent
MARKERS = {"gates": "gate", "kernel": "kernel", "molecule": "molecule", "end_to_end": "end_to_end", "latest": "latest"}
NEED_ROOT = ("kernel", "molecule", "end_to_end")


BESIDE = pytest.StashKey[Beside]()
SPENT = pytest.StashKey[Spent]()
LANE = pytest.StashKey[lane.Lane]()
UNIT_TESTS_AGAIN = "tests/latest/test_latest_ansible.py::test_unit_tests"


def _folder(item: pytest.Item) -> str:
    return item.path.relative_to(TESTS).parts[0]


def _stage(item: pytest.Item) -> str:
    if item.get_closest_marker(schedule.MEASURES):
        return schedule.MEASURES
    folder = _folder(item)
    # The unit tests have been running since the beginning; what else is there plays a scenario.
    return "molecule" if folder == "latest" and item.nodeid != UNIT_TESTS_AGAIN else folder


def _scenario(item: pytest.Item) -> str:
    """Return the molecule scenario that a test runs, empty for any other test."""
    parameters = item.callspec.params if isinstance(item, pytest.Function) and hasattr(item, "callspec") else {}
    return parameters["scenario"].name if _folder(item) == "molecule" and "scenario" in parameters else ""


class _Count:
    """Counts what each test took."""

    def __init__(self, spent: Spent) -> None:
        self.spent = spent

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Count one phase of a test."""
        self.spent.add(report.nodeid, report.duration)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Say where the time went, so that what CI has no time for is cut where it is dear."""
    terminalreporter.section("time")
    for line in config.stash[SPENT].lines():
        terminalreporter.line(line)
    for line in config.stash[BESIDE].lines():
        terminalreporter.line(line)


def pytest_configure(config: pytest.Config) -> None:
    """Begin to count the time. A budget that cannot be read ends everything before it begins."""
    try:
        config.stash[BESIDE] = Beside(schedule.budget())
        config.stash[SPENT] = Spent()
        config.pluginmanager.register(_Count(config.stash[SPENT]))
        if lane.REPORTS in os.environ:
            config.pluginmanager.register(lane.Writer(config, Path(os.environ[lane.REPORTS])))
    except schedule.ScheduleError as exc:
        raise pytest.UsageError(str(exc)) from exc


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark each test by its folder, skip those that need root without it, and put them in order."""
    is_root = os.geteuid() == 0
    for item in items:
        folder = _folder(item)
        if folder in MARKERS:
            item.add_marker(MARKERS[folder])
        if folder in NEED_ROOT and not is_root:
            item.add_marker(pytest.mark.skip(reason="needs root"))
    order = schedule.ORDER
    if lane.wanted(config, frozenset(map(_folder, items))):
        config.stash[LANE] = lane.Lane(tooling.cache_dir())
        order = schedule.LANES
    items.sort(key=lambda item: schedule.position(_stage(item), _scenario(item), order))


def pytest_collection_finish(session: pytest.Session) -> None:
    """Start what chosen tests need, unless they are only listed or can't run."""
    if not session.config.option.collectonly:
        scenarios = {_scenario(item) for item in session.items} if os.geteuid() == 0 else set()
        again = any(item.nodeid == UNIT_TESTS_AGAIN for item in session.items)
        session.config.stash[BESIDE].start(scenarios, again)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> bool | None:
    """Take over what the second lane has reported; a test that it has not reported runs here."""
    if LANE not in item.config.stash or _folder(item) not in lane.COMPUTING:
        return None
    found = item.config.stash[LANE].take(item.nodeid)
    if not found:
        return None
    item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
    for data in found:
        report = item.config.hook.pytest_report_from_serializable(config=item.config, data=data)
        item.ihook.pytest_runtest_logreport(report=report)
    item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
    return True


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Keep what runs in the background from disturbing what measures."""
    item.config.stash[BESIDE].pause(_stage(item) == schedule.MEASURES)


def pytest_runtest_teardown(item: pytest.Item) -> None:
    """Put dear scenarios whose programs are ready before those that would have to wait for theirs."""
    if _scenario(item) in schedule.DEAR:
        ready = item.config.stash[BESIDE].programs.ready
        items = item.session.items
        rest = items.index(item) + 1
        items[rest:] = sorted(items[rest:], key=lambda other: not ready(_scenario(other)))


def pytest_unconfigure(config: pytest.Config) -> None:
    """End what runs in the background, however the session ends."""
    if LANE in config.stash:
        config.stash[LANE].stop()
    if BESIDE in config.stash:
        config.stash[BESIDE].stop()


@pytest.fixture(autouse=True)
def termination() -> Iterator[None]:
    """Leave no handler of a program that a test has run in this process: whoever ends the session waits for it."""
    before = signal.getsignal(signal.SIGTERM)
    yield
    signal.signal(signal.SIGTERM, before)


@pytest.fixture(scope="session")
def beside(pytestconfig: pytest.Config) -> Beside:
    """Return what runs beside the tests."""
    return pytestconfig.stash[BESIDE]
