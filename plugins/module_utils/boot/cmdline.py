# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The kernel's command line: its words as the kernel splits them (next_arg in lib/cmdline.c), and what may be added."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from ansible_collections.colocation.testbed.plugins.module_utils import quantity
from ansible_collections.colocation.testbed.plugins.module_utils.kernel import cpu_list

# What the boot loader's scripts and the kernel pass on unchanged, without quotes.
_NAME = re.compile(r"[A-Za-z0-9_.-]+\Z")
_VALUE = re.compile(r"[A-Za-z0-9_.,:/@%+!=~^-]+\Z")
# Without these the host may not come up again, and nobody could undo it from here.
_VITAL = ("root", "rootflags", "rootfstype", "init", "rdinit", "initrd", "ro", "rw")
# Documentation/admin-guide/kernel-parameters.txt. isolcpus may have flags before the list.
CPU_LISTS = ("isolcpus", "nohz_full", "rcu_nocbs", "irqaffinity", "kthread_cpus")
_ISOLCPUS_FLAGS = ("domain", "nohz", "managed_irq")
_STRIDE = re.compile(r"(?P<range>[^:]+):(?P<used>[1-9][0-9]{0,3})/(?P<group>[1-9][0-9]{0,3})\Z")
LISTS = ("rdt",)
"""Arguments whose value is a list of words to which every occurrence adds, ``!word`` taking one away."""


class CmdlineError(Exception):
    """An argument cannot be put on the kernel's command line; the text says why and what to write."""


@dataclass(frozen=True)
class Argument:
    """One argument, with None for a flag that has no value."""

    name: str
    value: str | None

    def __str__(self) -> str:
        """Return the argument as it is written on a command line."""
        return self.name if self.value is None else f"{self.name}={self.value}"

    def named(self, name: str) -> bool:
        """Tell whether this is an argument of that name; the kernel takes dashes and underscores for the same."""
        return self.name.replace("-", "_") == name.replace("-", "_")


def _words(text: str) -> Iterable[str]:
    word, quoted = "", False
    for char in text:
        if char == '"':
            quoted = not quoted
        if char.isspace() and not quoted:
            if word:
                yield word
            word = ""
        else:
            word += char
    if word:
        yield word


def _unquoted(text: str) -> str:
    return text[1:].removesuffix('"') if text.startswith('"') else text


def parse(text: str) -> tuple[Argument, ...]:
    """Return the arguments of a command line up to ``--``, after which they are those of the first process.

    Double quotes protect spaces, around a whole argument or a value; the kernel knows no escapes.
    """
    found = []
    for word in _words(text):
        if word == "--":
            break
        name, sign, value = _unquoted(word).partition("=")
        found.append(Argument(name, _unquoted(value) if sign else None))
    return tuple(found)


def values(arguments: Iterable[Argument], name: str) -> list[str | None]:
    """Return the values of all arguments of a name, in order."""
    return [argument.value for argument in arguments if argument.named(name)]


def merged(name: str, old: str | None, new: str | None) -> str | None:
    """Return the value that has the words of both; a new ``!word`` takes the place of ``word`` and vice versa."""
    if not old or not new or name not in LISTS:
        return new
    words = {word.lstrip("!"): word for value in (old, new) for word in value.split(",")}
    return ",".join(words.values())


def satisfied(arguments: Iterable[Argument], wanted: Argument) -> bool:
    """Tell whether a command line has an argument: of several the last counts, of lists all words together."""
    found = values(arguments, wanted.name)
    if wanted.name not in LISTS or not wanted.value:
        return found[-1:] == [wanted.value]
    words: dict[str, str] = {}
    for value in found:
        words.update((word.lstrip("!"), word) for word in (value or "").split(","))
    return all(words.get(word.lstrip("!")) == word for word in wanted.value.split(","))


def check_name(name: str) -> None:
    """Raise CmdlineError for what is no name of an argument."""
    if not _NAME.match(name):
        raise CmdlineError(
            f"{name!r} is not the name of an argument; write it without '=' and spaces, such as 'isolcpus'"
        )


def check(argument: Argument, sys_root: str = cpu_list.SYS_ROOT) -> None:
    """Raise CmdlineError for an argument that is not to be written, or whose CPUs this machine does not have."""
    name, value = argument.name, argument.value
    check_name(name)
    if name in _VITAL:
        raise CmdlineError(f"{name} decides whether this host comes up at all; set it by hand where it is needed")
    if value is not None and not _VALUE.match(value):
        raise CmdlineError(
            f"{name}={value!r}: boot loaders do not pass this on unchanged; write a value of letters, digits and "
            "_ . , : / @ % + ! = ~ ^ -, or leave value out for an argument without one"
        )
    if name in CPU_LISTS:
        _check_cpus(name, value or "", sys_root)


def _plain(word: str, online: frozenset[int]) -> str:
    """Return a part of a list as numbers. The kernel also takes all, N for the last CPU, 0-15:1/4 for one in four."""
    if word == "all":
        return quantity.format_cpu_list(online)
    found = _STRIDE.match(word)
    part = found["range"] if found else word
    named = "-".join(str(max(online)) if end == "N" else end for end in part.split("-"))
    if not found:
        return named
    used, group = int(found["used"]), int(found["group"])
    cpus = cpu_list.parse(named)
    return quantity.format_cpu_list(cpu for cpu in cpus if (cpu - min(cpus)) % group < used)


def _check_cpus(name: str, value: str, sys_root: str) -> None:
    words = value.split(",")
    while name == "isolcpus" and words and words[0] in _ISOLCPUS_FLAGS:
        words.pop(0)
    try:
        online = cpu_list.online(sys_root)
        plain = ",".join(_plain(word, online) for word in words)
        cpus = cpu_list.require_online(plain, f"{name}={value}", sys_root)
    except cpu_list.CpuListError as exc:
        raise CmdlineError(str(exc)) from exc
    if not cpus:
        raise CmdlineError(f"{name}={value}: names no CPU; write a list such as '1-3'")
    if name == "isolcpus" and cpus >= online:
        raise CmdlineError(f"{name}={value}: leaves no CPU for the host itself; keep at least one out of the list")
