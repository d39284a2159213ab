"""The committed BPF objects belong to the committed sources, and building them again gives the same bytes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tooling import ROOT

from ansible_collections.colocation.testbed.plugins.module_utils.bandwidth import objects
from tools import bpf

BUILT = ROOT / bpf.BUILT


def manifest() -> dict[str, dict[str, str]]:
    found: dict[str, dict[str, str]] = json.loads((BUILT / bpf.MANIFEST).read_text(encoding="utf-8"))
    return found


def test_objects_are_those_of_the_manifest() -> None:
    assert manifest()["objects"] == {f"{name}.o": bpf.digest(BUILT / f"{name}.o") for name in bpf.VARIANTS}


def test_sources_did_not_change_since_the_objects_were_built() -> None:
    assert manifest()["sources"] == {path.name: bpf.digest(path) for path in bpf.sources(ROOT)}, "run `make bpf`"


def test_building_again_gives_the_same_bytes(tmp_path: Path) -> None:
    if bpf.compiler_version() != bpf.VERSION:
        pytest.skip(f"{bpf.COMPILER} {bpf.VERSION} is not installed: only the digests were compared")
    bpf.build(ROOT, tmp_path)
    names = [*(f"{name}.o" for name in bpf.VARIANTS), bpf.MANIFEST]
    assert [name for name in names if (tmp_path / name).read_bytes() != (BUILT / name).read_bytes()] == []


def test_modules_carry_the_same_objects() -> None:
    assert dict(objects.variants()) == {name: (BUILT / f"{name}.o").read_bytes() for name in bpf.VARIANTS}


def test_another_compiler_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bpf, "compiler_version", lambda: "15.0.0")
    with pytest.raises(bpf.BuildError, match=r"version 14\.0\.6 is needed, found 15\.0\.0"):
        bpf.build(ROOT, tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_missing_compiler_is_no_version() -> None:
    assert bpf.compiler_version("no-such-compiler") is None
