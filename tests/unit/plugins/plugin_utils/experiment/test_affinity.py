"""The controller makes room on the measured CPUs, and gets its own back."""

from __future__ import annotations

import os

import pytest

from ansible_collections.colocation.testbed.plugins.plugin_utils.experiment import affinity


@pytest.fixture
def had():
    """Return the CPUs that this process has, and give them back whatever a test does."""
    cpus = os.sched_getaffinity(0)
    if len(cpus) < 2:
        pytest.skip("needs two CPUs to choose between")
    yield cpus
    os.sched_setaffinity(0, cpus)


def test_runs_on_the_wanted_cpus_and_gives_all_back(had):
    wanted = max(had)
    with affinity.controller_on(str(wanted)):
        assert os.sched_getaffinity(0) == {wanted}
    assert os.sched_getaffinity(0) == had


def test_gives_back_after_a_failure(had):
    def fail():
        with affinity.controller_on(str(max(had))):
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail()
    assert os.sched_getaffinity(0) == had


@pytest.mark.parametrize("cpus", ["", "8190"])
def test_nothing_wanted_or_nothing_possible_changes_nothing(had, cpus):
    with affinity.controller_on(cpus):
        assert os.sched_getaffinity(0) == had
