"""A signal ends a run in order: what the blocks inside have to stop is stopped, whatever else arrives."""

from __future__ import annotations

import os
import signal

import pytest

from ansible_collections.colocation.testbed.plugins.plugin_utils.experiment import interruption


@pytest.mark.parametrize("number", interruption.SIGNALS)
def test_the_first_signal_raises_and_later_ones_do_not_disturb_the_end(number):
    before = {one: signal.getsignal(one) for one in interruption.SIGNALS}
    stopped = []

    def measure():
        try:
            os.kill(os.getpid(), number)
            stopped.append("went on")
        finally:
            os.kill(os.getpid(), number)
            os.kill(os.getpid(), signal.SIGTERM)
            stopped.append("stopped")

    with pytest.raises(interruption.InterruptedRunError, match="run it again to resume"), interruption.orderly_end():
        measure()
    assert stopped == ["stopped"]
    assert {one: signal.getsignal(one) for one in interruption.SIGNALS} == before


def test_without_a_signal_nothing_is_left_changed():
    before = {one: signal.getsignal(one) for one in interruption.SIGNALS}
    with interruption.orderly_end():
        assert {one: signal.getsignal(one) for one in interruption.SIGNALS} != before
    assert {one: signal.getsignal(one) for one in interruption.SIGNALS} == before
