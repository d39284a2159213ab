"""Shell scripts, of which there are few."""

from __future__ import annotations

import shutil

import pytest
from tooling import run, tracked_files


def test_shellcheck() -> None:
    if shutil.which("shellcheck") is None:
        pytest.skip("no shellcheck: apt-get install shellcheck")
    scripts = []
    for path in tracked_files():
        with path.open("rb") as handle:
            if handle.readline().startswith(
                (b"#!/usr/bin/env bash", b"#!/bin/bash", b"#!/bin/sh", b"#!/usr/bin/env sh")
            ):
                scripts.append(path)
    assert scripts
    run(["shellcheck", *scripts])
