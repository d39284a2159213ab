# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What run directories of every experiment have in common: whole measurements or none, whatever happens."""

from __future__ import annotations

import contextlib
import dataclasses
import fcntl
import os
import re
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Self, TypeVar

from ansible_collections.colocation.testbed.plugins.module_utils.measure.records import (
    GuardResult,
    MeasurementRecord,
    RecordsError,
)
from ansible_collections.colocation.testbed.plugins.module_utils.measure.records_traffic import BandwidthRecord
from ansible_collections.colocation.testbed.plugins.plugin_utils import ranges
from ansible_collections.colocation.testbed.plugins.plugin_utils.rundir_files import (
    MANIFEST,
    RunDirectoryError,
    as_lines,
    check,
    experiment_of,
    fail_to_write,
    read_json,
    read_lines,
    read_manifest,
    replace_json,
    temporary_beside,
    write_bytes,
    write_json,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

MEASUREMENTS = "measurements"
LOCK = ".lock"
_MEASUREMENT_NAME = re.compile(r"([0-9]{3,})-(.+)-([0-9]+)")

RecordT = TypeVar("RecordT", bound=MeasurementRecord | BandwidthRecord)


@dataclasses.dataclass(frozen=True)
class Layout:
    """What an experiment calls its files: schemas by name, the file of raw results, how measurements are named."""

    experiment: str
    manifest: str
    measurement: str
    summary: str
    result: str
    named: str


class Store(Generic[RecordT]):
    """One run on disk. Nothing in it is edited later, except that ``finish`` notes when the run ended."""

    layout: ClassVar[Layout]

    def __init__(self, path: Path, manifest: dict[str, Any]) -> None:
        """Wrap a checked directory; use ``create`` or ``open``."""
        self._path = path
        self._manifest = manifest

    @classmethod
    def create(cls, path: str | os.PathLike[str], manifest: Mapping[str, Any]) -> Self:
        """Make a run directory. Raises RunDirectoryError when it exists, or when the manifest is not one."""
        target = Path(path)
        document = dict(manifest)
        check(cls.layout.manifest, document, target / MANIFEST)
        if target.exists():
            raise RunDirectoryError(f"{target}: exists already; choose another run id or remove the directory")
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            with temporary_beside(target) as temporary:
                (temporary / MEASUREMENTS).mkdir()
                write_json(temporary / MANIFEST, document)
        except OSError as exc:
            fail_to_write(target, exc)
        return cls(target, document)

    @classmethod
    def open(cls, path: str | os.PathLike[str]) -> Self:
        """Open a run directory. Raises RunDirectoryError for one that is missing, damaged or of another version."""
        target = Path(path)
        manifest = read_manifest(target)
        found = experiment_of(manifest, target)
        if found != cls.layout.experiment:
            raise RunDirectoryError(
                f"{target / MANIFEST}: is of the experiment {found!r}, and only {cls.layout.experiment!r} "
                "can be used here; name another run, or look at this one with the playbook report"
            )
        check(cls.layout.manifest, manifest, target / MANIFEST)
        return cls(target, manifest)

    @classmethod
    def find_partial(cls, results_dir: str | os.PathLike[str], fingerprint: str) -> Path | None:
        """Return the newest run below ``results_dir`` that was cut short and asked for the same, or None.

        What is no readable run directory of this version and experiment is passed over: it cannot be resumed.
        """
        found: list[tuple[str, Path]] = []
        folder = Path(results_dir)
        for entry in sorted(folder.iterdir()) if folder.is_dir() else []:
            if entry.name.startswith(".") or not (entry / MANIFEST).is_file():
                continue
            try:
                run = cls.open(entry)
            except RunDirectoryError:
                continue
            if not run.finished and run.manifest["fingerprint"] == fingerprint:
                found.append((str(run.manifest["created"]), entry))
        return max(found)[1] if found else None

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

    def measurements(self) -> tuple[RecordT, ...]:
        """Return all measurements in the order of execution. Raises RunDirectoryError for a damaged or missing one."""
        records = [self._record(number, name) for number, name in self._numbered()]
        for expected, record in enumerate(records, start=1):
            if record.n != expected:
                raise RunDirectoryError(
                    f"{self._path / MEASUREMENTS}: measurement {expected:03d} is missing before {record.name}; "
                    "restore it from a copy, or measure again under another run id"
                )
        return tuple(records)

    def directory(self, record: RecordT) -> Path:
        """Return where a measurement lies."""
        return self._path / MEASUREMENTS / record.name

    def samples(self, record: RecordT) -> dict[str, tuple[dict[str, Any], ...]]:
        """Return a measurement's sample lines by host. Raises RunDirectoryError, also for a truncated file."""
        folder = self.directory(record) / "nodes"
        if not folder.is_dir():
            raise RunDirectoryError(f"{folder}: is missing; restore the measurement from a copy, or remove the run")
        return {path.stem: read_lines(path) for path in sorted(folder.glob("*.jsonl"))}

    def policy(self, record: RecordT) -> dict[str, Any]:
        """Return a measurement's policy values, ``wanted`` and ``applied``. Raises RunDirectoryError."""
        path = self.directory(record) / "policy.json"
        value = read_json(path)
        check("policy", value, path)
        return dict(value)

    def validity(self, record: RecordT) -> tuple[GuardResult, ...]:
        """Return what the guards found in a measurement. Raises RunDirectoryError."""
        path = self.directory(record) / "validity.json"
        value = read_json(path)
        check("validity", value, path)
        try:
            return tuple(GuardResult.from_dict(entry) for entry in value)
        except RecordsError as exc:
            raise RunDirectoryError(f"{path}: {exc}") from exc

    def summary(self) -> dict[str, Any] | None:
        """Return the stored summary, or None when there is none yet. Raises RunDirectoryError for a damaged one."""
        path = self._path / "summary.json"
        if not path.exists():
            return None
        value = read_json(path)
        check(self.layout.summary, value, path)
        return dict(value)

    def _store(
        self,
        record: RecordT,
        result: Mapping[str, Any],
        samples: Mapping[str, bytes | Iterable[Mapping[str, Any]]],
        policy: Mapping[str, Any],
        validity: Sequence[GuardResult],
    ) -> RecordT:
        """Store a measurement whole or not at all, and return its record with the number that it got.

        ``samples`` are each host's JSON lines as bytes, or as values. A last line that the sampler had not finished
        is left out. Raises RunDirectoryError, also for what does not follow the schemas: nothing is stored then.
        """
        stored = dataclasses.replace(record, n=len(self._numbered()) + 1)
        target = self.directory(stored)
        found = [entry.as_dict() for entry in validity]
        check(self.layout.measurement, stored.as_dict(), target / "measurement.json")
        self._check_result(result, target / self.layout.result)
        check("policy", dict(policy), target / "policy.json")
        check("validity", found, target / "validity.json")
        try:
            with temporary_beside(target) as temporary:
                (temporary / "nodes").mkdir()
                for host, lines in samples.items():
                    if not ranges.HOST_NAME.fullmatch(host):
                        raise RunDirectoryError(f"host {host!r}: is no file name; use letters, digits, dots and dashes")
                    write_bytes(temporary / "nodes" / f"{host}.jsonl", as_lines(lines))
                write_json(temporary / self.layout.result, dict(result), indent=None)
                write_json(temporary / "policy.json", dict(policy))
                write_json(temporary / "validity.json", found)
                write_json(temporary / "measurement.json", stored.as_dict())
        except OSError as exc:
            fail_to_write(target, exc)
        return stored

    def finish(self) -> None:
        """Note that the run came to its end; a second call changes nothing. Raises RunDirectoryError."""
        if self.finished:
            return
        document = {**self._manifest, "finished": datetime.now(UTC).isoformat(timespec="seconds")}
        replace_json(self._path / MANIFEST, document)
        self._manifest = document

    def write_summary(self, summary: Mapping[str, Any]) -> Path:
        """Write ``summary.json`` and return its path. Raises RunDirectoryError for one that breaks the schema."""
        path = self._path / "summary.json"
        check(self.layout.summary, dict(summary), path)
        replace_json(path, dict(summary))
        return path

    def validate(self) -> int:
        """Check every file against its schema and return how many there were. Raises RunDirectoryError."""
        count = 1
        for record in self.measurements():
            self.policy(record)
            self.validity(record)
            self._check_whole_result(record)
            hosts = self.samples(record)
            for host, lines in hosts.items():
                for number, line in enumerate(lines, start=1):
                    check("sample", line, self.directory(record) / "nodes" / f"{host}.jsonl:{number}")
            count += 4 + len(hosts)
        return count + (self.summary() is not None)

    def _result(self, record: RecordT) -> dict[str, Any]:
        path = self.directory(record) / self.layout.result
        value = read_json(path)
        self._check_result(value, path)
        return dict(value)

    def _check_whole_result(self, record: RecordT) -> None:
        path = self.directory(record) / self.layout.result
        check(path.stem, read_json(path), path)

    @staticmethod
    def _check_result(value: Any, path: Path) -> None:
        """Check a raw result; experiments shorten its longest lists, which readers check whole and much quicker."""
        check(path.stem, value, path)

    def _parse(self, value: Mapping[str, Any]) -> RecordT:
        raise NotImplementedError

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
                    f"{folder / name}: is no measurement, which are called {self.layout.named}; move it away"
                )
            found.append((int(match.group(1)), name))
        return sorted(found)

    def _record(self, number: int, name: str) -> RecordT:
        path = self._path / MEASUREMENTS / name / "measurement.json"
        value = read_json(path)
        check(self.layout.measurement, value, path)
        record = self._parse(value)
        if record.n != number or record.name != name:
            raise RunDirectoryError(f"{path}: describes {record.name}; put the directory back under its own name")
        return record
