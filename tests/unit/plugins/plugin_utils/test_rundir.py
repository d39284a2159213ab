"""Run directories: whole measurements or none, and one sentence for everything that is damaged."""

from __future__ import annotations

import json
import shutil

import pytest

from ansible_collections.colocation.testbed.plugins.plugin_utils import rundir, schemas
from tests.support import synthetic_run
from tests.support.synthetic_readings import Options
from tests.support.synthetic_run import readings

SMALL = Options(blocks=1, window_s=4.0, peak_rps=200.0)


@pytest.fixture(scope="module")
def original(tmp_path_factory):
    return synthetic_run.make_run(tmp_path_factory.mktemp("runs") / "original", SMALL)


@pytest.fixture
def copy(original, tmp_path):
    shutil.copytree(original.path, tmp_path / "copy")
    return tmp_path / "copy"


def test_every_file_follows_its_schema(original):
    assert original.validate() == 1 + 3 * 6
    assert original.finished


def test_the_schemas_are_schemas():
    for name in schemas.NAMES:
        schemas.validator(name).check_schema(schemas.validator(name).schema)


def test_what_was_stored_is_read_back(original):
    records = rundir.RunDirectory.open(original.path).measurements()
    assert [record.n for record in records] == [1, 2, 3]
    slo = next(record for record in records if record.mode == "slo_aware")
    expected = readings(SMALL, "slo_aware")
    assert original.policy(slo) == expected.policy
    assert original.load(slo)["latency_us"] == expected.load["latency_us"]
    assert set(original.samples(slo)) == {"tested1", "load1"}
    assert all(result.ok for result in original.validity(slo))


def test_samples_as_bytes_lose_their_unfinished_line(tmp_path):
    found = readings(SMALL, "baseline")
    run = rundir.RunDirectory.create(tmp_path / "run", found.manifest)
    samples = {"tested1": b'{"wall_s": 1}\n{"wall_s": 2}\n{"wall', "node.example.com": b""}
    record = run.store_measurement(found.record, found.load, samples, found.policy, ())
    assert record.n == 1
    assert run.samples(record) == {"tested1": ({"wall_s": 1}, {"wall_s": 2}), "node.example.com": ()}


def test_what_breaks_the_schema_is_not_stored(tmp_path):
    found = readings(SMALL, "baseline")
    run = rundir.RunDirectory.create(tmp_path / "run", found.manifest)
    with pytest.raises(rundir.RunDirectoryError, match=r"load\.json: does not follow .*errors"):
        run.store_measurement(found.record, {**found.load, "errors": None}, found.samples, found.policy, ())
    with pytest.raises(rundir.RunDirectoryError, match=r"'\.\./x': is no file name"):
        run.store_measurement(found.record, found.load, {"../x": b""}, found.policy, ())
    assert run.measurements() == ()
    assert list((run.path / "measurements").iterdir()) == []


def test_a_crash_while_storing_leaves_whole_measurements(tmp_path, monkeypatch):
    found = readings(SMALL, "baseline")
    run = rundir.RunDirectory.create(tmp_path / "run", found.manifest)
    run.store_measurement(found.record, found.load, found.samples, found.policy, ())
    # what a killed process leaves behind
    (run.path / "measurements" / ".tmp-killed" / "nodes").mkdir(parents=True)
    (run.path / "measurements" / ".tmp-killed" / "load.json").write_text("{")
    reopened = rundir.RunDirectory.open(run.path)
    assert [record.n for record in reopened.measurements()] == [1]
    assert reopened.store_measurement(found.record, found.load, found.samples, found.policy, ()).n == 2


def test_a_run_is_made_once(tmp_path, original):
    with pytest.raises(rundir.RunDirectoryError, match="exists already"):
        rundir.RunDirectory.create(original.path, original.manifest)
    with pytest.raises(rundir.RunDirectoryError, match=r"run_id"):
        rundir.RunDirectory.create(tmp_path / "new", {**original.manifest, "run_id": None})
    assert not (tmp_path / "new").exists()


def test_finishing_twice_keeps_the_first_time(copy):
    run = rundir.RunDirectory.open(copy)
    before = (copy / "manifest.json").read_bytes()
    run.finish()
    assert (copy / "manifest.json").read_bytes() == before


def test_a_run_that_was_cut_short_is_found_by_what_it_asked_for(tmp_path):
    first = synthetic_run.make_run(tmp_path / "a", Options(blocks=1, window_s=4.0, peak_rps=200.0, stop_after=1))
    newer = Options(blocks=1, window_s=4.0, peak_rps=200.0, stop_after=2, created="2026-12-01T00:00:00+00:00")
    second = synthetic_run.make_run(tmp_path / "b", newer)
    (tmp_path / "c").mkdir()
    (tmp_path / "c" / "manifest.json").write_text("{")
    assert rundir.RunDirectory.find_partial(tmp_path, "fingerprint-1") == second.path
    second.finish()
    assert rundir.RunDirectory.find_partial(tmp_path, "fingerprint-1") == first.path
    assert rundir.RunDirectory.find_partial(tmp_path, "other") is None
    assert rundir.RunDirectory.find_partial(tmp_path / "nowhere", "fingerprint-1") is None


def test_two_writers_exclude_each_other(copy):
    run, other = rundir.RunDirectory.open(copy), rundir.RunDirectory.open(copy)
    with run.lock(), pytest.raises(rundir.RunDirectoryError, match="another process"), other.lock():
        pass
    with other.lock():
        pass


def _edit(name, **changes):
    def edit(path):
        file = next(path.glob(name))
        file.write_text(json.dumps({**json.loads(file.read_text()), **changes}))

    return edit


def _write(name, text):
    def write(path):
        next(path.glob(name)).write_text(text)

    return write


def _truncate(name):
    def truncate(path):
        file = next(path.glob(name))
        file.write_bytes(file.read_bytes()[:-20])

    return truncate


def _remove(name):
    def remove(path):
        found = next(path.glob(name))
        shutil.rmtree(found) if found.is_dir() else found.unlink()

    return remove


FIRST = "measurements/001-*"
DAMAGES = {
    "no directory": (lambda path: shutil.rmtree(path), "is no run directory"),
    "no manifest": (_remove("manifest.json"), "manifest.json: cannot be read: No such file"),
    "corrupt manifest": (_write("manifest.json", "{"), "manifest.json: is not JSON"),
    "manifest of a list": (_write("manifest.json", "[]"), "schema is None"),
    "other schema version": (
        _edit("manifest.json", schema="colocation.testbed/manifest/9"),
        "manifest/9'; this version",
    ),
    "manifest without hosts": (_edit("manifest.json", hosts={}), "hosts: {}"),
    "no measurements": (_remove("measurements"), "measurements: cannot be read"),
    "missing measurement": (_remove(FIRST), "measurement 001 is missing"),
    "missing load": (_remove(f"{FIRST}/load.json"), "load.json: cannot be read: No such file"),
    "truncated load": (_truncate(f"{FIRST}/load.json"), "load.json: is not JSON"),
    "missing nodes": (_remove(f"{FIRST}/nodes"), "nodes: is missing"),
    "truncated samples": (_truncate(f"{FIRST}/nodes/tested1.jsonl"), "last line is cut short"),
    "corrupt samples": (_write(f"{FIRST}/nodes/tested1.jsonl", "{}\n{\n"), "tested1.jsonl:2: is not JSON"),
    "samples of lists": (_write(f"{FIRST}/nodes/tested1.jsonl", "[]\n"), "tested1.jsonl:1: is no object"),
    "missing policy": (_remove(f"{FIRST}/policy.json"), "policy.json: cannot be read"),
    "policy of numbers": (_edit(f"{FIRST}/policy.json", wanted={"a": 1}), "wanted.a: 1 is not of type"),
    "missing validity": (_remove(f"{FIRST}/validity.json"), "validity.json: cannot be read"),
    "validity of no list": (_write(f"{FIRST}/validity.json", "{}"), "validity.json: does not follow"),
    "measurement of another number": (_edit(f"{FIRST}/measurement.json", n=7), "describes 007-"),
    "measurement of another kind": (_edit(f"{FIRST}/measurement.json", kept="yes"), "kept: 'yes' is not of type"),
    "not UTF-8": (lambda path: (path / "manifest.json").write_bytes(b"\xff{}"), "is not UTF-8"),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_damage_is_one_sentence_with_the_path(copy, damage):
    edit, named = DAMAGES[damage]
    edit(copy)
    with pytest.raises(rundir.RunDirectoryError) as caught:
        rundir.RunDirectory.open(copy).validate()
    text = str(caught.value)
    assert named in text
    assert str(copy) in text
    assert "\n" not in text
    assert ";" in text  # what to do comes after it


def test_a_stranger_among_the_measurements_is_named(copy):
    (copy / "measurements" / "notes").mkdir()
    with pytest.raises(rundir.RunDirectoryError, match="notes: is no measurement"):
        rundir.RunDirectory.open(copy).measurements()


def test_an_unwritable_place_is_named(tmp_path, original):
    (tmp_path / "file").write_text("")
    with pytest.raises(rundir.RunDirectoryError, match="cannot be written"):
        rundir.RunDirectory.create(tmp_path / "file" / "run", original.manifest)
