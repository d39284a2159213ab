"""Markers by folder, and the order of the suite: what is quick and tells most comes first."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

# Times of single examples say nothing on a machine that does other things too.
PATIENT = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("default", PATIENT)
settings.register_profile("nightly", PATIENT, max_examples=10_000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "default"))

TESTS = Path(__file__).resolve().parent
ORDER = ("unit", "gates", "kernel", "report", "molecule", "end_to_end", "latest")
MARKERS = {"gates": "gate", "kernel": "kernel", "molecule": "molecule", "end_to_end": "end_to_end", "latest": "latest"}
NEED_ROOT = ("kernel", "molecule", "end_to_end")


def _folder(item: pytest.Item) -> str:
    return item.path.relative_to(TESTS).parts[0]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark each test by its folder, skip those that need root without it, and put the folders in order."""
    is_root = os.geteuid() == 0
    for item in items:
        folder = _folder(item)
        if folder in MARKERS:
            item.add_marker(MARKERS[folder])
        if folder in NEED_ROOT and not is_root:
            item.add_marker(pytest.mark.skip(reason="needs root"))
    items.sort(key=lambda item: ORDER.index(_folder(item)) if _folder(item) in ORDER else len(ORDER))
