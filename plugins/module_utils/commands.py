# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Run a program: list argv, always a timeout, always the C locale, one sentence when it fails."""

from __future__ import annotations

import os
import shlex
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass


class CommandError(Exception):
    """A program is missing, took too long, or ended with an unexpected status."""


@dataclass(frozen=True)
class Result:
    """What a finished program left."""

    argv: tuple[str, ...]
    status: int
    stdout: str
    stderr: str


def _last_lines(text: str, count: int) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return "; ".join(lines[-count:]) if lines else "it printed no error"


def run(
    argv: Sequence[str],
    *,
    timeout_s: float = 60.0,
    check: bool = True,
    input_text: str | None = None,
    directory: str | None = None,
    environment: Mapping[str, str] | None = None,
    error_lines: int = 1,
) -> Result:
    """Run ``argv`` to its end and return its output.

    ``environment`` is added to the present one. ``error_lines`` is how many of the last lines an error repeats, for
    programs that say the reason before they say that they fail. Raises CommandError when the program is missing or not
    executable, runs longer than ``timeout_s`` (it is killed), or, with ``check``, ends with a status other than 0.
    """
    shown = shlex.join(argv)
    variables = {**os.environ, **(environment or {}), "LC_ALL": "C"}
    try:
        done = subprocess.run(
            list(argv),
            input=input_text,
            stdin=None if input_text is not None else subprocess.DEVNULL,
            capture_output=True,
            encoding="utf-8",
            errors="replace",
            timeout=timeout_s,
            cwd=directory,
            env=variables,
            check=False,
        )
    except FileNotFoundError as exc:
        missing = directory if exc.filename == directory else argv[0]
        raise CommandError(f"{shown}: {missing} is not there; install it or correct the path") from exc
    except OSError as exc:
        raise CommandError(f"{shown}: could not be started: {exc.strerror}; check {argv[0]}") from exc
    except subprocess.TimeoutExpired as exc:
        raise CommandError(
            f"{shown}: did not end within {timeout_s:g} s and was killed; run it by hand to see why"
        ) from exc
    if check and done.returncode != 0:
        said = _last_lines(done.stderr or done.stdout, error_lines)
        raise CommandError(f"{shown}: ended with status {done.returncode}: {said}")
    return Result(tuple(argv), done.returncode, done.stdout, done.stderr)
