"""The lab that the end-to-end tests share: made once, taken away at the end, whatever happened."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from tests.end_to_end.bench_lab import Lab


@pytest.fixture(scope="package")
def shared_lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    """Return the lab; nothing is made until a test plays something."""
    made = Lab(tmp_path_factory.mktemp("lab"))
    yield made
    made.good("playbooks/reset.yml")


@pytest.fixture(scope="module")
def lab(shared_lab: Lab, request: pytest.FixtureRequest) -> Lab:
    """Return the lab with a place for the module's own runs, so that none is taken for another module's."""
    return replace(shared_lab, results_name=f"results-{request.path.stem}")
