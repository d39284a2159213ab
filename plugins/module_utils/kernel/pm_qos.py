# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The CPU latency constraint /dev/cpu_dma_latency (Documentation/power/pm_qos_interface.rst).

Whoever holds the device open with a 32-bit number of microseconds written to it keeps idle CPUs out of states with a
longer exit latency; closing the file ends the request. Reading returns the effective (smallest) value of all requests
as a native signed 32-bit integer. Opening it for reading makes a request of the default value, which changes nothing.
"""

from __future__ import annotations

import errno
import os
import struct

DEVICE = "/dev/cpu_dma_latency"
DEFAULT_US = 2_000_000_000
_FORMAT = struct.Struct("=i")


class PmQosError(Exception):
    """The latency constraint could not be read or held."""


def decode(raw: bytes) -> int:
    """Return the microseconds in what a read returned; raises PmQosError unless these are four bytes."""
    if len(raw) != _FORMAT.size:
        raise PmQosError(f"{DEVICE}: a read returned {len(raw)} bytes, not 4; this kernel's interface is unknown")
    return int(_FORMAT.unpack(raw)[0])


def read_effective_us(device: str = DEVICE) -> int | None:
    """Return the effective constraint in microseconds, DEFAULT_US when nobody asks, None without the device."""
    try:
        fd = os.open(device, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        return decode(os.pread(fd, _FORMAT.size, 0))
    except OSError:
        return None
    finally:
        os.close(fd)


def hold(latency_us: int, device: str = DEVICE) -> int:
    """Ask for at most `latency_us` of exit latency and return the descriptor that holds the request.

    Raises PmQosError where the device is missing or closed to us, or the effective value stays higher.
    """
    try:
        fd = os.open(device, os.O_RDWR | os.O_CLOEXEC)
    except OSError as exc:
        hint = "run as root" if exc.errno in (errno.EACCES, errno.EPERM) else "the kernel needs CONFIG_CPU_IDLE"
        raise PmQosError(f"{device}: cannot be opened for writing ({exc.strerror}); {hint}") from exc
    try:
        os.write(fd, _FORMAT.pack(latency_us))
        effective_us = decode(os.pread(fd, _FORMAT.size, 0))
    except OSError as exc:
        os.close(fd)
        raise PmQosError(f"{device}: refused {latency_us} µs ({exc.strerror}); give 0 or more microseconds") from exc
    if effective_us > latency_us:
        os.close(fd)
        raise PmQosError(f"{device}: still {effective_us} µs after asking for {latency_us} µs; check the driver")
    return fd
