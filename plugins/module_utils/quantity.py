# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Numbers with units as people write them, turned into exact integers; what is ambiguous is rejected.

Kubernetes quantities follow k8s.io/apimachinery/pkg/api/resource. Floats are rejected: YAML has rounded them already.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from fractions import Fraction
from typing import Union

Written = Union[str, int]

_DECIMAL = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_BINARY = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}
_QUANTITY = re.compile(r"([+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+))(?:[eE]([+-]?[0-9]{1,3})|([A-Za-z]{0,2}))\Z")
_NUMBER_UNIT = re.compile(r"([0-9]+(?:\.[0-9]+)?) ?([A-Za-zµ%/]*)\Z")
_RANGE = re.compile(r"([0-9]{1,5})(?:-([0-9]{1,5}))?\Z")
_DURATION_PART = re.compile(r"([0-9]+(?:\.[0-9]+)?)(ns|us|µs|ms|s|m|h)")
_DURATION_UNITS_NS = {"ns": 1, "us": 10**3, "µs": 10**3, "ms": 10**6, "s": 10**9, "m": 60 * 10**9, "h": 3600 * 10**9}
_RATE_PREFIXES = {
    "": 1,
    "k": 10**3,
    "M": 10**6,
    "G": 10**9,
    "T": 10**12,
    "Ki": 2**10,
    "Mi": 2**20,
    "Gi": 2**30,
    "Ti": 2**40,
}
_RATE_UNITS_BIT = {
    **{f"{prefix}bit/s": factor for prefix, factor in _RATE_PREFIXES.items()},
    **{f"{prefix}B/s": 8 * factor for prefix, factor in _RATE_PREFIXES.items()},
}
# The first that fits counts: a bool is an int too.
_KINDS: tuple[tuple[type | tuple[type, ...], str], ...] = (
    (bool, "a bool"),
    (int, "a whole number"),
    (float, "a floating-point number"),
    (str, "a text"),
    ((list, tuple, set), "a list"),
    (Mapping, "a mapping"),
)
MAX_LENGTH = 64
MAX_EXPONENT = 30
MAX_CPU = 8191


class QuantityError(Exception):
    """A text is not a number of the wanted kind; the text says what it was, why it is refused and what to write."""


def counted(number: int, noun: str) -> str:
    """Return a number with its noun: 1 run, 2 runs."""
    return f"{number} {noun}{'' if number == 1 else 's'}"


def kind_of(value: object) -> str:
    """Return what a value is, in the words of whoever writes YAML; never the name of a Python type."""
    for kind, name in _KINDS:
        if isinstance(value, kind):
            return name
    return "nothing" if value is None else "something else"


def _text(value: object, what: str, example: str) -> str:
    if isinstance(value, bool) or not isinstance(value, (str, int)):
        raise QuantityError(f"{value!r}: is {kind_of(value)}, not {what}; write it as a string such as {example!r}")
    text = str(value) if isinstance(value, int) else value
    if len(text) > MAX_LENGTH:
        raise QuantityError(f"{text[:20]!r}…: is too long for {what}; write {example!r}")
    return text


def parse(value: Written) -> Fraction:
    """Return the exact value of a Kubernetes quantity: 70k, 22Gi, 1500m, 1e3, 12.

    Raises QuantityError for anything else, also for K (write k or Ki) and for exponents beyond 30.
    """
    text = _text(value, "a quantity", "1500m")
    found = _QUANTITY.match(text)
    if not found:
        raise QuantityError(
            f"{text!r}: is not a quantity; write digits and one of {' '.join(filter(None, _DECIMAL))} "
            f"{' '.join(_BINARY)}, such as '1500m' or '22Gi', without a space"
        )
    number, exponent, suffix = Fraction(found.group(1)), found.group(2), found.group(3) or ""
    if exponent is not None:
        if abs(int(exponent)) > MAX_EXPONENT:
            raise QuantityError(f"{text!r}: its exponent is beyond {MAX_EXPONENT}; write a number of usual size")
        return number * Fraction(10) ** int(exponent)
    if suffix in _BINARY:
        return number * (1 << _BINARY[suffix])
    if suffix in _DECIMAL:
        return number * Fraction(10) ** _DECIMAL[suffix]
    hint = "write k (1000) or Ki (1024)" if suffix == "K" else "write B-less suffixes such as Mi or Gi"
    raise QuantityError(f"{text!r}: {suffix!r} is not a suffix of a quantity; {hint}")


def _whole(exact: Fraction, text: object, unit: str) -> int:
    if exact.denominator != 1:
        raise QuantityError(f"{text!r}: is not a whole number of {unit}; write one that is")
    if exact < 0:
        raise QuantityError(f"{text!r}: is negative; write 0 or more")
    return exact.numerator


def parse_cpu_milli(value: Written) -> int:
    """Return milli-cores of a Kubernetes CPU quantity: 500m → 500, 2 → 2000, 0.5 → 500."""
    exact = parse(value)
    _refuse_binary(value, "cores such as '500m' or '2'")
    return _whole(exact * 1000, value, "milli-cores (finer than 1m is not allowed)")


def _refuse_binary(value: Written, instead: str) -> None:
    """Raise QuantityError for 22Gi of CPU, a memory figure in the wrong line: no machine has 2^30 cores."""
    if isinstance(value, str) and value.endswith("i"):
        raise QuantityError(f"{value!r}: has a binary suffix, which is for memory; write {instead}")


def parse_batch_cpu_milli(value: Written) -> int:
    """Return milli-cores of a batch-cpu quantity, whose unit is the milli-core: 70k → 70000 (70 cores), 2 → 2."""
    exact = parse(value)
    _refuse_binary(value, "milli-cores such as '70k' or '500'")
    return _whole(exact, value, "milli-cores")


def parse_bytes(value: Written) -> int:
    """Return bytes of a Kubernetes memory quantity: 22Gi, 100M, 4096."""
    if isinstance(value, str) and value.endswith("m"):
        raise QuantityError(f"{value!r}: m means a thousandth of a byte; write M (10^6) or Mi (2^20)")
    return _whole(parse(value), value, "bytes")


def parse_percent(value: Written, low: int = 0, high: int = 100) -> Fraction:
    """Return a percentage, exact: 45, '45', '45%', '99.5%'. Raises QuantityError outside low..high."""
    text = _text(value, "a percentage", "45%")
    found = _NUMBER_UNIT.match(text)
    if not found or found.group(2) not in ("", "%"):
        raise QuantityError(f"{text!r}: is not a percentage; write a number from {low} to {high}, such as '45%'")
    exact = Fraction(found.group(1))
    if not low <= exact <= high:
        raise QuantityError(f"{text!r}: is not between {low} and {high} percent; write a number from {low} to {high}")
    return exact


def parse_bit_rate(value: str) -> int:
    """Return bits per second of a rate with explicit unit: 100Mbit/s, 1.5Gbit/s, 12MB/s (bytes), 10MiB/s.

    Raises QuantityError for a bare number and for units that mean different things to different tools (Mbps, mbit).
    """
    text = _text(value, "a rate", "100Mbit/s")
    found = _NUMBER_UNIT.match(text)
    unit = found.group(2) if found else ""
    if not found or unit not in _RATE_UNITS_BIT:
        raise QuantityError(
            f"{text!r}: has no unit that says bits or bytes without doubt; write bit/s or B/s with k M G T Ki Mi Gi Ti "
            "before it, such as '100Mbit/s' or '12MB/s' (not Mbps, which is bits to some tools and bytes to others)"
        )
    return _whole(Fraction(found.group(1)) * _RATE_UNITS_BIT[unit], text, "bits per second")


def parse_byte_rate(value: str) -> int:
    """Return bytes per second of a rate with explicit unit, as parse_bit_rate takes them."""
    return _whole(Fraction(parse_bit_rate(value), 8), value, "bytes per second")


def parse_duration_ns(value: str) -> int:
    """Return nanoseconds of a duration: 100us, 10ms, 1m30s, 1.5h (Go's notation). A bare number is rejected."""
    text = _text(value, "a duration", "10s")
    parts = list(_DURATION_PART.finditer(text))
    if not parts or "".join(part.group(0) for part in parts) != text:
        raise QuantityError(f"{text!r}: is not a duration; write numbers with ns us ms s m h, such as '10s' or '1m30s'")
    exact = sum((Fraction(part.group(1)) * _DURATION_UNITS_NS[part.group(2)] for part in parts), Fraction(0))
    return _whole(exact, text, "nanoseconds")


def parse_duration_us(value: str) -> int:
    """Return microseconds of a duration, as parse_duration_ns takes them; finer ones are rejected."""
    return _whole(Fraction(parse_duration_ns(value), 1000), value, "microseconds")


def parse_cpu_list(value: Written) -> tuple[int, ...]:
    """Return the CPUs of a list as the kernel writes it ('0-3,8'), ascending and unique; '' is none.

    Raises QuantityError for descending ranges, spaces inside, strides and numbers above 8191 (the kernel's NR_CPUS).
    """
    text = _text(value, "a CPU list", "0-3,8").strip() if not isinstance(value, str) else value.strip()
    cpus: set[int] = set()
    for part in text.split(",") if text else []:
        found = _RANGE.match(part)
        if not found:
            raise QuantityError(f"{text[:MAX_LENGTH]!r}: is not a CPU list; write numbers and ranges such as '0-3,8'")
        first, last = int(found.group(1)), int(found.group(2) or found.group(1))
        if last < first or last > MAX_CPU:
            raise QuantityError(
                f"{text[:MAX_LENGTH]!r}: {part} is not an ascending range of CPUs up to {MAX_CPU}; write '0-3,8'"
            )
        cpus.update(range(first, last + 1))
    return tuple(sorted(cpus))


def format_cpu_list(cpus: Iterable[int]) -> str:
    """Return CPUs as the kernel writes them: ascending, ranges joined."""
    runs: list[list[int]] = []
    for cpu in sorted(set(cpus)):
        if runs and runs[-1][1] == cpu - 1:
            runs[-1][1] = cpu
        else:
            runs.append([cpu, cpu])
    return ",".join(str(first) if first == last else f"{first}-{last}" for first, last in runs)
