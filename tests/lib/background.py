"""A program in a process group of its own, which can be paused, and which ends with the tests in any case."""

from __future__ import annotations

import os
import select
import signal
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from tooling import ROOT

#: In front of a program that may have a processor and a disk only while nobody else wants them.
BEHIND = ("chrt", "--idle", "0", "ionice", "-c", "3")
# Asks a program to end when the session is killed.
_ATTACHED = ("setpriv", "--pdeathsig", "TERM")
_END_S = 30.0


class Background:
    """One program and what it starts.

    The group stays in the session of the tests: so a terminal's Ctrl-C does not reach it, and the kernel wakes and ends
    a paused group whose session was killed (an orphaned process group gets SIGHUP and SIGCONT).
    """

    def __init__(self, argv: Sequence[str], log: Path, environment: Mapping[str, str]) -> None:
        """Start the program at the root of the checkout; what it prints goes to `log`."""
        self.log = log
        self.paused = False
        self.stopped = False
        log.parent.mkdir(parents=True, exist_ok=True)
        with log.open("wb") as stream:
            self._process = subprocess.Popen(
                [*_ATTACHED, *argv],
                stdin=subprocess.DEVNULL,
                stdout=stream,
                stderr=subprocess.STDOUT,
                cwd=ROOT,
                env=dict(environment),
                process_group=0,
            )
        self._handle = os.pidfd_open(self._process.pid)

    @property
    def running(self) -> bool:
        """Tell whether the program has not ended yet; a paused one has not."""
        return not self._ended(0)

    def pause(self) -> None:
        """Keep the whole group from running, and have written what it wrote, which would take the disk later."""
        if not self.paused and self.running:
            self._signal(signal.SIGSTOP)
            self.paused = True
            os.sync()

    def resume(self) -> None:
        """Let the group go on."""
        if self.paused:
            self._signal(signal.SIGCONT)
            self.paused = False

    def wait(self, timeout_s: float) -> bool:
        """Wait until the program ends, for `timeout_s` seconds at most; tells whether it has."""
        self.resume()
        return self._ended(timeout_s)

    def stop(self, grace_s: float = _END_S) -> None:
        """End the group, whoever of it still runs: first asked, then killed."""
        if self._handle < 0:
            return
        self.stopped = self.running
        if self.stopped:
            self._signal(signal.SIGTERM)
            self._signal(signal.SIGCONT)
            self._ended(grace_s)
        # The leader is not waited for before this, so that no other group can have its number.
        if self._process.returncode is None:
            self._signal(signal.SIGKILL)
            self._process.wait()
        os.close(self._handle)
        self._handle = -1

    def output(self) -> str:
        """Return what the program has printed so far."""
        return self.log.read_text(encoding="utf-8", errors="replace")

    def failure(self) -> str:
        """Return what a program that failed by itself printed last; empty where it runs, succeeded or was stopped."""
        if self.stopped or self.running or self._process.wait() == 0:
            return ""
        lines = [line for line in self.output().splitlines() if line.strip()]
        return lines[-1] if lines else f"it ended with {self._process.returncode} and printed nothing"

    def _signal(self, number: int) -> None:
        try:
            os.killpg(self._process.pid, number)
        except ProcessLookupError:
            pass  # nobody is left in the group

    def _ended(self, timeout_s: float) -> bool:
        if self._process.returncode is not None:
            return True
        poll = select.poll()
        poll.register(self._handle, select.POLLIN)
        # It takes no number without an end.
        return bool(poll.poll(min(max(timeout_s, 0.0), 86_400.0) * 1000))
