"""What the `load` command accepts, and the command lines that come of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.colocation.testbed.plugins.module_utils.node import load_spec


@pytest.fixture
def raw(tmp_path: Path) -> dict[str, Any]:
    """A specification that is right, with a wrk and scripts as role load_generator leaves them."""
    (tmp_path / "4.2.0-git").mkdir()
    (tmp_path / "scripts").mkdir()
    wrk = tmp_path / "4.2.0-git" / "wrk"
    wrk.write_text("#!/bin/sh\n")
    wrk.chmod(0o755)
    for kind in load_spec.KINDS:
        (tmp_path / "scripts" / f"{kind}.lua").write_text("")
    return {
        "kind": "open_loop",
        "wrk": str(wrk),
        "url": "http://127.0.0.1:8000/page",
        "threads": 2,
        "connections": 40,
        "rate_rps": 500,
        "seed": 7,
        "warmup_s": 2,
        "duration_s": 10,
        "timeout_s": 9.5,
        "headers": {"accept-encoding": "gzip"},
        "output": str(tmp_path / "load.json"),
    }


def test_command_line_of_a_window(raw: dict[str, Any], tmp_path: Path) -> None:
    spec = load_spec.parse(raw)
    argv = spec.argv(11, spec.arguments(spec.duration_s, spec.seed, None))
    assert argv == [
        *[str(tmp_path / "4.2.0-git" / "wrk"), "-t", "2", "-c", "40", "-d", "11s", "-T", "10s", "--latency"],
        *["-H", "accept-encoding: gzip", "-s", str(tmp_path / "scripts" / "open_loop.lua")],
        *["http://127.0.0.1:8000/page", "--", "connections=40"],
        *["rate_rps=500.0", "window_s=10.0", "seed=7", "threads=2"],
    ]


def test_a_closed_loop_has_no_rate_and_no_seed(raw: dict[str, Any]) -> None:
    spec = load_spec.parse({**raw, "kind": "closed_loop", "rate_rps": None})
    assert spec.rate_rps is None
    assert spec.arguments(10, 7, None) == ["connections=40"]
    assert spec.script.endswith("/scripts/closed_loop.lua")


def test_script_can_be_named(raw: dict[str, Any], tmp_path: Path) -> None:
    own = tmp_path / "own.lua"
    own.write_text("")
    assert load_spec.parse({**raw, "script": str(own)}).script == str(own)


@given(seed=st.integers(0, load_spec.SEED_LIMIT - 1))
def test_warmup_has_another_seed_that_is_allowed(seed: int) -> None:
    other = seed ^ load_spec.WARMUP_SEED_MASK
    assert other != seed
    assert 0 <= other < load_spec.SEED_LIMIT


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"kind": "half_open"}, "kind is 'half_open'; it must be open_loop or closed_loop"),
        ({"threads": 0}, "threads is 0"),
        ({"threads": True}, "threads is True"),
        ({"connections": 41}, "a multiple of threads (2)"),
        ({"rate_rps": 0}, "rate_rps is 0"),
        ({"rate_rps": None}, "rate_rps is None"),
        ({"rate_rps": float("nan")}, "rate_rps is nan"),
        ({"kind": "closed_loop"}, "null in a closed loop"),
        ({"kind": "closed_loop", "rate_rps": None, "duration_s": 1.5}, "whole seconds in a closed loop"),
        ({"seed": -1}, "seed is -1"),
        ({"seed": 2**53}, "seed is 9007199254740992"),
        ({"duration_s": "10"}, "duration_s is '10'"),
        ({"duration_s": 0}, "duration_s is 0"),
        ({"warmup_s": -1}, "warmup_s is -1"),
        ({"timeout_s": 1000}, "up to 120"),
        ({"headers": {"a": "b\r\nc: d"}}, "headers is"),
        ({"headers": ["a: b"]}, "headers is"),
        ({"url": ""}, "url is ''"),
        ({"wrk": "/nowhere/wrk"}, "wrk /nowhere/wrk is not there"),
        ({"script": "/nowhere/x.lua"}, "script /nowhere/x.lua is not there"),
        ({"rps": 5}, "unknown key 'rps'"),
    ],
)
def test_bad_input_is_named(raw: dict[str, Any], change: dict[str, Any], said: str) -> None:
    with pytest.raises(load_spec.LoadSpecError) as caught:
        load_spec.parse({**raw, **change})
    assert said in str(caught.value)


def test_missing_key_is_named(raw: dict[str, Any]) -> None:
    del raw["seed"]
    with pytest.raises(load_spec.LoadSpecError, match="key 'seed' is missing"):
        load_spec.parse(raw)


JSON = st.recursive(st.none() | st.booleans() | st.text(), lambda inner: st.dictionaries(st.text(), inner))


@given(JSON)
def test_anything_else_is_refused_with_a_sentence(value: object) -> None:
    with pytest.raises(load_spec.LoadSpecError, match=r"^load: "):
        load_spec.parse(value)
