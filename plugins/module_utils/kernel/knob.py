# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One kernel file that holds one value: how its text is compared, read and written, and what a refusal means."""

from __future__ import annotations

import errno
import re

from ansible_collections.colocation.testbed.plugins.module_utils import files, quantity
from ansible_collections.colocation.testbed.plugins.module_utils.kernel import cpu_list, cpu_mask

WORDS = "words"
"""Words between white space, such as the three sizes of net.ipv4.tcp_rmem; a single number too."""
CHOICE = "choice"
"""All choices in one line, the chosen one in brackets: ``always [madvise] never``."""
CPUS = "cpus"
"""A CPU list: ``0-3,8``."""
MASK = "mask"
"""A mask of CPUs in hexadecimal groups of 32 bits: ``00000000,0000000f``."""

_BRACKETED = re.compile(r"(?:^|\s)\[([^\s\[\]]+)\](?=\s|$)")
_HINTS = {
    errno.EACCES: "the file is read-only, or the run is not privileged; run as root",
    errno.EBUSY: "the kernel cannot take it now, as another setting or an offline CPU is in its way",
    errno.EINVAL: "the kernel does not accept this value; look into the kernel's documentation for its range",
    errno.EIO: "the device refuses it; the kernel manages this one by itself",
    errno.ENODEV: "the CPU or device is gone; run again",
    errno.ENOENT: "the file is gone, as its CPU or device was taken away meanwhile; run again",
    errno.ENOMEM: "there is not enough memory for it",
    errno.ENOSPC: "there is no room for it, such as on a CPU that has all the interrupts that it can take",
    errno.EOPNOTSUPP: "this machine cannot do it",
    errno.EPERM: "the kernel forbids it to this host, or manages this one by itself; run as root on the machine itself",
    errno.ERANGE: "the value is out of range",
    errno.EROFS: "it is mounted read-only, as in a container; remount it or run on the machine itself",
}


class KnobError(Exception):
    """A kernel file cannot be read or refuses a value; ``number`` is the errno, 0 where there is none."""

    def __init__(self, text: str, number: int = 0) -> None:
        """Keep the errno beside the sentence."""
        super().__init__(text)
        self.number = number


def chosen(text: str) -> str | None:
    """Return the bracketed one of several choices, or None where the text is no such line."""
    found = _BRACKETED.findall(text)
    return found[0] if len(found) == 1 and len(text.split()) > 1 else None


def choices(text: str) -> tuple[str, ...]:
    """Return all choices in such a line, without the brackets."""
    return tuple(word.strip("[]") for word in text.split())


def form_of(text: str) -> str:
    """Return the form of a file whose meaning isn't known, from its present text."""
    return CHOICE if chosen(text) is not None else WORDS


def normal(form: str, text: str) -> str:
    """Return a text in the one spelling of its form, so that equal values are equal texts. Raises KnobError."""
    if form == CHOICE:
        return chosen(text) or text.strip()
    if form == WORDS:
        return " ".join(text.split())
    try:
        return quantity.format_cpu_list(cpu_mask.parse(text) if form == MASK else cpu_list.parse(text))
    except (cpu_mask.CpuMaskError, cpu_list.CpuListError) as exc:
        raise KnobError(str(exc)) from exc


def previous(form: str, text: str) -> str:
    """Return what must be written to bring a file's present text back."""
    return normal(form, text) if form == CHOICE else text.strip()


def holds(text: str, written: str) -> bool:
    """Tell whether a file's text is what comes of writing ``written`` as previous() returned it."""
    return text.split() == written.split() or chosen(text) == written.strip()


def _explained(path: str, action: str, exc: OSError) -> KnobError:
    hint = _HINTS.get(exc.errno or 0, "see the kernel log")
    return KnobError(f"{path}: {action} failed: {exc.strerror} ({hint})", exc.errno or 0)


def read(path: str) -> str | None:
    """Return a file's text without the end of line, None where there is no such file. Raises KnobError."""
    try:
        text = files.read_text_or_none(path)
    except files.FilesError as exc:
        if isinstance(exc.__cause__, OSError):
            raise _explained(path, "reading", exc.__cause__) from exc
        raise KnobError(str(exc)) from exc
    return None if text is None else text.rstrip("\n")


def write(path: str, text: str) -> None:
    """Write a value at once. Raises KnobError with the kernel's reason and what it means."""
    try:
        files.write_kernel(path, text)
    except files.FilesError as exc:
        if isinstance(exc.__cause__, OSError):
            raise _explained(path, f"writing {text!r}", exc.__cause__) from exc
        raise KnobError(str(exc)) from exc


def write_checked(path: str, form: str, text: str) -> None:
    """Write a value and read it back. Raises KnobError when the file then holds something else."""
    write(path, text)
    found = read(path)
    if found is None or normal(form, found) != normal(form, text):
        raise KnobError(f"{path}: wrote {text!r}, read {found!r}; the kernel did not take the value")
