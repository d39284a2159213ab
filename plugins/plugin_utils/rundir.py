# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Run directories: what a run measured, written so that a crash at any point leaves whole measurements only."""

from __future__ import annotations

import contextlib
import dataclasses
import fcntl
import json
import os
import re
import shutil
import tempfile
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from ansible_collections.colocation.testbed.plugins.module_utils import files
from ansible_collections.colocation.testbed.plugins.module_utils.measure.records import (
    GuardResult,
    MeasurementRecord,
    RecordsError,
)
from ansible_collections.colocation.testbed.plugins.plugin_utils import schemas

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

SCHEMA = "colocation.testbed/manifest/1"
MANIFEST = "manifest.json"
MEASUREMENTS = "measurements"
LOCK = ".lock"
_TEMPORARY = ".tmp-"
_MEASUREMENT_NAME = re.compile(r"([0-9]{3,})-(.+)-([0-9]+)")
_HOST_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,252}")


class RunDirectoryError(Exception):
    """A run directory cannot be read or written; the text names path, finding, what is allowed and what to do."""


class RunDirectory:
    """One run on disk. Nothing in it is edited later, except that ``finish`` notes when the run ended."""

    def __init__(self, path: Path, manifest: dict[str, Any]) -> None:
        """Wrap a checked directory; use ``create`` or ``open``."""
        self._path = path
        self._manifest = manifest

    @classmethod
    def create(cls, path: str | os.PathLike[str], manifest: Mapping[str, Any]) -> RunDirectory:
        """Make a run directory. Raises RunDirectoryError when it exists, or when the manifest is not one."""
        target = Path(path)
        document = dict(manifest)
        _check("manifest", document, target / MANIFEST)
        if target.exists():
            raise RunDirectoryError(f"{target}: exists already; choose another run id or remove the directory")
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            with _temporary_beside(target) as temporary:
                (temporary / MEASUREMENTS).mkdir()
                _write_json(temporary / MANIFEST, document)
        except OSError as exc:
            _fail_to_write(target, exc)
        return cls(target, document)

    @classmethod
    def open(cls, path: str | os.PathLike[str]) -> RunDirectory:
        """Open a run directory. Raises RunDirectoryError for one that is missing, damaged or of another version."""
        target = Path(path)
        if not target.is_dir():
            raise RunDirectoryError(
                f"{target}: is no run directory; name one that holds {MANIFEST}, such as results/<id>"
            )
        manifest = _read_json(target / MANIFEST)
        found = manifest.get("schema") if isinstance(manifest, dict) else None
        if found != SCHEMA:
            raise RunDirectoryError(
                f"{target / MANIFEST}: schema is {found!r}; this version reads {SCHEMA!r} only; "
                "use the version of the collection that wrote it (versions.collection in the file)"
            )
        _check("manifest", manifest, target / MANIFEST)
        return cls(target, manifest)

    @property
    def path(self) -> Path:
        """Return where the run lies."""
        return self._path

    @property
    def manifest(self) -> dict[str, Any]:
        """Return the manifest."""
        return self._manifest

    @property
    def finished(self) -> bool:
        """Return whether the run came to its end."""
        return self._manifest["finished"] is not None

    @contextlib.contextmanager
    def lock(self) -> Iterator[None]:
        """Hold the run for writing. Raises RunDirectoryError when another process does."""
        handle = os.open(self._path / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as exc:
                raise RunDirectoryError(
                    f"{self._path}: another process is measuring into it; wait for it or choose another run id"
                ) from exc
            yield
        finally:
            os.close(handle)

    def measurements(self) -> tuple[MeasurementRecord, ...]:
        """Return all measurements in the order of execution. Raises RunDirectoryError for a damaged or missing one."""
        records = [self._record(number, name) for number, name in self._numbered()]
        for expected, record in enumerate(records, start=1):
            if record.n != expected:
                raise RunDirectoryError(
                    f"{self._path / MEASUREMENTS}: measurement {expected:03d} is missing before {record.name}; "
                    "restore it from a copy, or measure again under another run id"
                )
        return tuple(records)

    def directory(self, record: MeasurementRecord) -> Path:
        """Return where a measurement lies."""
        return self._path / MEASUREMENTS / record.name

    def load(self, record: MeasurementRecord) -> dict[str, Any]:
        """Return a measurement's load result. Raises RunDirectoryError."""
        path = self.directory(record) / "load.json"
        value = _read_json(path)
        _check_load(value, path)
        return dict(value)

    def samples(self, record: MeasurementRecord) -> dict[str, tuple[dict[str, Any], ...]]:
        """Return a measurement's sample lines by host. Raises RunDirectoryError, also for a truncated file."""
        folder = self.directory(record) / "nodes"
        if not folder.is_dir():
            raise RunDirectoryError(f"{folder}: is missing; restore the measurement from a copy, or remove the run")
        return {path.stem: _read_lines(path) for path in sorted(folder.glob("*.jsonl"))}

    def policy(self, record: MeasurementRecord) -> dict[str, Any]:
        """Return a measurement's policy values, ``wanted`` and ``applied``. Raises RunDirectoryError."""
        path = self.directory(record) / "policy.json"
        value = _read_json(path)
        _check("policy", value, path)
        return dict(value)

    def validity(self, record: MeasurementRecord) -> tuple[GuardResult, ...]:
        """Return what the guards found in a measurement. Raises RunDirectoryError."""
        path = self.directory(record) / "validity.json"
        value = _read_json(path)
        _check("validity", value, path)
        try:
            return tuple(GuardResult.from_dict(entry) for entry in value)
        except RecordsError as exc:
            raise RunDirectoryError(f"{path}: {exc}") from exc

    def summary(self) -> dict[str, Any] | None:
        """Return the stored summary, or None when there is none yet. Raises RunDirectoryError for a damaged one."""
        path = self._path / "summary.json"
        if not path.exists():
            return None
        value = _read_json(path)
        _check("summary", value, path)
        return dict(value)

    def store_measurement(
        self,
        record: MeasurementRecord,
        load: Mapping[str, Any],
        samples: Mapping[str, bytes | Iterable[Mapping[str, Any]]],
        policy: Mapping[str, Any],
        validity: Sequence[GuardResult],
    ) -> MeasurementRecord:
        """Store a measurement whole or not at all, and return its record with the number that it got.

        ``samples`` are each host's JSON lines as bytes, or as values. A last line that the sampler had not finished
        is left out. Raises RunDirectoryError, also for what does not follow the schemas: nothing is stored then.
        """
        stored = dataclasses.replace(record, n=len(self._numbered()) + 1)
        target = self.directory(stored)
        results = [result.as_dict() for result in validity]
        _check("measurement", stored.as_dict(), target / "measurement.json")
        _check_load(load, target / "load.json")
        _check("policy", dict(policy), target / "policy.json")
        _check("validity", results, target / "validity.json")
        try:
            with _temporary_beside(target) as temporary:
                (temporary / "nodes").mkdir()
                for host, lines in samples.items():
                    if not _HOST_NAME.fullmatch(host):
                        raise RunDirectoryError(f"host {host!r}: is no file name; use letters, digits, dots and dashes")
                    _write_bytes(temporary / "nodes" / f"{host}.jsonl", _as_lines(lines, target / "nodes" / host))
                _write_json(temporary / "load.json", dict(load), indent=None)
                _write_json(temporary / "policy.json", dict(policy))
                _write_json(temporary / "validity.json", results)
                _write_json(temporary / "measurement.json", stored.as_dict())
        except OSError as exc:
            _fail_to_write(target, exc)
        return stored

    def finish(self) -> None:
        """Note that the run came to its end; a second call changes nothing. Raises RunDirectoryError."""
        if self.finished:
            return
        document = {**self._manifest, "finished": datetime.now(UTC).isoformat(timespec="seconds")}
        _replace_json(self._path / MANIFEST, document)
        self._manifest = document

    def write_summary(self, summary: Mapping[str, Any]) -> Path:
        """Write ``summary.json`` and return its path. Raises RunDirectoryError for one that breaks the schema."""
        path = self._path / "summary.json"
        _check("summary", dict(summary), path)
        _replace_json(path, dict(summary))
        return path

    def validate(self) -> int:
        """Check every file against its schema and return how many there were. Raises RunDirectoryError."""
        count = 1
        for record in self.measurements():
            self.policy(record)
            self.validity(record)
            _check("load", self.load(record), self.directory(record) / "load.json")
            hosts = self.samples(record)
            for host, lines in hosts.items():
                for number, line in enumerate(lines, start=1):
                    _check("sample", line, self.directory(record) / "nodes" / f"{host}.jsonl:{number}")
            count += 4 + len(hosts)
        return count + (self.summary() is not None)

    def _numbered(self) -> list[tuple[int, str]]:
        folder = self._path / MEASUREMENTS
        try:
            names = [entry for entry in os.listdir(folder) if not entry.startswith(".")]
        except OSError as exc:
            raise RunDirectoryError(
                f"{folder}: cannot be read: {exc.strerror}; restore the run from a copy or remove it"
            ) from exc
        found = []
        for name in names:
            match = _MEASUREMENT_NAME.fullmatch(name)
            if not match:
                raise RunDirectoryError(
                    f"{folder / name}: is no measurement, which are called <number>-<mode>-<block>; move it away"
                )
            found.append((int(match.group(1)), name))
        return sorted(found)

    def _record(self, number: int, name: str) -> MeasurementRecord:
        path = self._path / MEASUREMENTS / name / "measurement.json"
        value = _read_json(path)
        _check("measurement", value, path)
        record = MeasurementRecord.from_dict(value)
        if record.n != number or record.name != name:
            raise RunDirectoryError(f"{path}: describes {record.name}; put the directory back under its own name")
        return record


def find_partial(results_dir: str | os.PathLike[str], fingerprint: str) -> Path | None:
    """Return the newest run below ``results_dir`` that was cut short and asked for the same, or None.

    What is no readable run directory of this version is passed over: it cannot be resumed.
    """
    found: list[tuple[str, Path]] = []
    folder = Path(results_dir)
    for entry in sorted(folder.iterdir()) if folder.is_dir() else []:
        if entry.name.startswith(".") or not (entry / MANIFEST).is_file():
            continue
        try:
            run = RunDirectory.open(entry)
        except RunDirectoryError:
            continue
        if not run.finished and run.manifest["fingerprint"] == fingerprint:
            found.append((str(run.manifest["created"]), entry))
    return max(found)[1] if found else None


@contextlib.contextmanager
def _temporary_beside(target: Path) -> Iterator[Path]:
    """Yield a fresh directory that becomes ``target`` in one step when the block ends well, and vanishes otherwise."""
    temporary = Path(tempfile.mkdtemp(prefix=_TEMPORARY, dir=target.parent))
    try:
        yield temporary
        temporary.chmod(0o755)
        for folder in (temporary, *(entry for entry in temporary.iterdir() if entry.is_dir())):
            files.sync_directory(str(folder))
        temporary.rename(target)
        files.sync_directory(str(target.parent))
    except BaseException:
        shutil.rmtree(temporary, ignore_errors=True)
        raise


def _check(name: str, value: Any, path: Path) -> None:
    try:
        schemas.check(name, value)
    except schemas.SchemaError as exc:
        raise RunDirectoryError(
            f"{path}: does not follow docs/schemas/{name}.schema.json: {exc}; restore the file or remove the run"
        ) from exc


def _check_load(value: Any, path: Path) -> None:
    """Check a load result; its thousands of histogram pairs are checked by Histogram, a hundred times quicker."""
    if isinstance(value, dict) and isinstance(value.get("latency_us"), list):
        value = {**value, "latency_us": value["latency_us"][:1]}
    _check("load", value, path)


def _read_json(path: Path) -> Any:
    try:
        return files.read_json(str(path))
    except files.FilesError as exc:
        raise RunDirectoryError(str(exc)) from exc


def _read_lines(path: Path) -> tuple[dict[str, Any], ...]:
    try:
        content = files.read_text(str(path))
    except files.FilesError as exc:
        raise RunDirectoryError(str(exc)) from exc
    if content and not content.endswith("\n"):
        raise RunDirectoryError(f"{path}: its last line is cut short; restore the file from a copy or remove the run")
    lines = []
    for number, line in enumerate(content.splitlines(), start=1):
        try:
            value = json.loads(line)
        except ValueError as exc:
            raise RunDirectoryError(
                f"{path}:{number}: is not JSON: {exc}; restore the file from a copy or remove the run"
            ) from exc
        if not isinstance(value, dict):
            raise RunDirectoryError(f"{path}:{number}: is no object; restore the file from a copy or remove the run")
        lines.append(value)
    return tuple(lines)


def _as_lines(lines: bytes | Iterable[Mapping[str, Any]], path: Path) -> bytes:
    if isinstance(lines, bytes):
        return lines[: lines.rfind(b"\n") + 1]
    return b"".join(json.dumps(dict(line), sort_keys=True).encode("utf-8") + b"\n" for line in lines)


def _write_bytes(path: Path, content: bytes) -> None:
    with path.open("wb") as handle:
        handle.write(content)
        handle.flush()
        os.fsync(handle.fileno())


def _write_json(path: Path, value: Any, indent: int | None = 1) -> None:
    _write_bytes(path, (json.dumps(value, indent=indent, sort_keys=True, ensure_ascii=False) + "\n").encode("utf-8"))


def _replace_json(path: Path, value: Any) -> None:
    try:
        files.write_json(str(path), value)
    except files.FilesError as exc:
        raise RunDirectoryError(str(exc)) from exc


def _fail_to_write(path: Path, exc: OSError) -> NoReturn:
    raise RunDirectoryError(
        f"{path}: cannot be written: {exc.strerror}; check permissions and free space of the results directory"
    ) from exc
