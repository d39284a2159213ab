"""A second lane: tests that only compute run in a process of their own, while the session plays what changes the host.

Their reports are taken over one by one, so that counts, failures and skips are those of one session.
"""

from __future__ import annotations

import json
import os
import sys
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import background
import pytest

#: Folders below tests/ that leave the host as it is.
COMPUTING = ("unit", "gates", "report")
#: Where the process of the lane writes its reports; nothing else sets it.
REPORTS = "COLOCATION_TESTBED_REPORTS"
TESTS = (sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *(f"tests/{folder}" for folder in COMPUTING))
_LOOK_S = 0.5


def wanted(config: pytest.Config, folders: frozenset[str]) -> bool:
    """Tell whether a session is worth a second lane: all tests were asked for, and root can play scenarios beside."""
    chosen = any(map(config.getoption, ("keyword", "markexpr", "deselect", "collectonly", "usepdb")))
    if chosen or config.getoption("lf", False) or config.args != ["tests"] or REPORTS in os.environ:
        return False
    return os.geteuid() == 0 and folders.issuperset({*COMPUTING, "molecule"})


class Writer:
    """Writes each report of this process for the session that takes it over."""

    def __init__(self, config: pytest.Config, path: Path) -> None:
        """Reports are added to a file, a line each."""
        self._config, self._path = config, path

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Write one phase of a test."""
        found = self._config.hook.pytest_report_to_serializable(config=self._config, report=report)
        with self._path.open("a", encoding="utf-8") as stream:
            stream.write(json.dumps(found) + "\n")


class Lane:
    """The process of the second lane, and what it has reported so far."""

    def __init__(self, directory: Path, argv: Sequence[str] = TESTS) -> None:
        """Start the tests; reports and output go to `directory`."""
        path = directory / "lane.jsonl"
        directory.mkdir(parents=True, exist_ok=True)
        path.write_text("", encoding="utf-8")
        self.process = background.Background(argv, directory / "lane.log", {**os.environ, REPORTS: str(path)})
        self._stream = path.open(encoding="utf-8")
        self._rest = ""
        self._found: dict[str, list[dict[str, Any]]] = defaultdict(list)

    def take(self, nodeid: str) -> list[dict[str, Any]]:
        """Wait for all phases of a test; nothing where the process ended without them."""
        while True:
            # Looked at first: what it wrote as its last act is not missed.
            running = self.process.running
            self._read()
            if any(report["when"] == "teardown" for report in self._found[nodeid]):
                return self._found.pop(nodeid)
            if not running:
                return []
            self.process.wait(_LOOK_S)

    def stop(self) -> None:
        """End the process with the session."""
        self.process.stop()
        self._stream.close()

    def _read(self) -> None:
        lines = (self._rest + self._stream.read()).split("\n")
        self._rest = lines.pop()
        for line in lines:
            report = json.loads(line)
            self._found[report["nodeid"]].append(report)
