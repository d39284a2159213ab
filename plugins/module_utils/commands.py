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


def _last_line(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1] if lines else "it printed no error"


def run(
    argv: Sequence[str],
    *,
    timeout_s: float = 60.0,
    check: bool = True,
    input_text: str | None = None,
    directory: str | None = None,
    environment: Mapping[str, str] | None = None,
) -> Result:
    """Run ``argv`` to its end and return its output.

    ``environment`` is added to the present one. Raises CommandError when the program is missing or not
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
        raise CommandError(f"{shown}: ended with status {done.returncode}: {_last_line(done.stderr or done.stdout)}")
    return Result(tuple(argv), done.returncode, done.stdout, done.stderr)
