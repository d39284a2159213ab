"""A run that is killed at any point leaves what the next run completes, and what the journal takes back."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.colocation.testbed.plugins.module_utils import undo
from ansible_collections.colocation.testbed.plugins.module_utils.bandwidth import instance, reconcile
from ansible_collections.colocation.testbed.plugins.module_utils.kernel import bpf, shaping_abilities
from tests.kernel.test_bandwidth import BATCH, LINK, SERVICE, everything, host
from tools.bandwidth.host import Host

__all__ = ["host"]


def dies_in(name: str, after: int) -> Callable[[Host], None]:
    """Return what makes this process kill itself at the given call of a function, before the function does anything."""
    owner, attribute = {"pin": (bpf, "pin"), "state": (instance, "write_state"), "tables": (instance, "write_tables"),
                        "members": (bpf, "update_many"), "tc": (None, "run")}[name]  # fmt: skip

    def prepare(made: Host) -> None:
        calls = []
        real = made.host.run if owner is None else getattr(owner, attribute)

        def call(*args: Any, **options: Any) -> Any:
            calls.append(args)
            if len(calls) > after:
                os.kill(os.getpid(), signal.SIGKILL)
            return real(*args, **options)

        if owner is None:
            made.host = replace(made.host, run=call)
        else:
            setattr(owner, attribute, call)

    return prepare


def killed(made: Host, prepare: Callable[[Host], None], work: Callable[[Host], Any]) -> bool:
    """Do some work in a child and tell whether it was killed at it."""
    child = os.fork()
    if child == 0:
        try:
            prepare(made)
            work(made)
        finally:
            os._exit(0)
    _, status = os.waitpid(child, 0)
    return os.WIFSIGNALED(status)


def in_a_child_that_dies(made: Host, prepare: Callable[[Host], None], work: Callable[[Host], Any]) -> None:
    assert killed(made, prepare, work), "the point at which it should have been killed was never reached"


POINTS = [("pin", 0), ("pin", 5), ("state", 0), ("tables", 0), ("members", 1), ("members", 3), ("tc", 5), ("tc", 6)]


@pytest.mark.parametrize(("point", "after"), POINTS)
@pytest.mark.parametrize("recover", ["again", "undo"])
def test_the_first_run_is_killed(host: Host, point: str, after: int, recover: str) -> None:
    Path(host.place.state_dir).mkdir()
    before = host.picture()
    in_a_child_that_dies(host, dies_in(point, after), everything)
    if recover == "again":
        everything(host)
        assert not everything(host).changed
        host.apply((), (), ())
    handlers = {**undo.Undo().handlers(), "bandwidth": lambda entry, check: reconcile.undo(entry, check, host.host)}
    assert all(item.outcome.result == "undone" for item in host.book.undo(handlers))
    assert host.picture() == before


@pytest.mark.parametrize(("point", "after"), [("state", 0), ("tables", 0), ("members", 1), ("tc", 1), ("tc", 2)])
def test_a_change_is_killed(host: Host, point: str, after: int) -> None:
    everything(host)
    changed = ({**LINK, "high": "900Mbit/s"},), ({**BATCH, "limit": "1Mbit/s"}, SERVICE)
    in_a_child_that_dies(host, dies_in(point, after), lambda made: made.apply(*changed))
    host.apply(*changed)
    assert not host.apply(*changed).changed


def test_a_device_of_ours_goes_wherever_a_run_is_killed(host: Host) -> None:
    """Killed before each of the programs that it starts, one after the other, until it comes to its end."""
    if not shaping_abilities.Abilities(host.pair.run).diverts:
        pytest.skip("this kernel has no ifb or act_mirred")
    Path(host.place.state_dir).mkdir()
    before = host.picture(), host.pair.indexes()
    handlers = {**undo.Undo().handlers(), "bandwidth": lambda entry, check: reconcile.undo(entry, check, host.host)}
    link = {"name": "down", "direction": "ingress"}
    number = 0
    while killed(
        host, dies_in("tc", number), lambda made: made.apply((link,), (), (("left/ingress", "down", "auto"),))
    ):
        assert all(item.outcome.result == "undone" for item in host.book.undo(handlers))
        assert (host.picture(), host.pair.indexes()) == before, number
        number += 1
    assert number > 8
    assert "ctb" in str(host.pair.indexes())
    host.book.undo(handlers)
    assert (host.picture(), host.pair.indexes()) == before
