"""What is done with each guest, on a machine whose kernel program is a stand-in that only waits."""

from __future__ import annotations

import dataclasses
import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from ansible_collections.colocation.testbed.plugins.module_utils import undo
from ansible_collections.colocation.testbed.plugins.module_utils.journal import Journal
from ansible_collections.colocation.testbed.plugins.module_utils.kernel import processes
from ansible_collections.colocation.testbed.plugins.module_utils.lab import boot, command_line, guests, ssh
from ansible_collections.colocation.testbed.plugins.module_utils.lab.guest import Guest, Machine
from ansible_collections.colocation.testbed.plugins.module_utils.lab.guests import Lab

A, B = Guest("a", "198.18.0.1", "ct1", ""), Guest("b", "198.18.0.2", "ct2", "")


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    """Return a machine whose keys are texts and whose kernel waits for its end."""
    kernel = tmp_path / "waits"
    kernel.write_text(f"#!{sys.executable} -IS\nimport signal\nprint('booting', flush=True)\nsignal.pause()\n")
    kernel.chmod(0o755)

    def make_keys(access: ssh.Access, names: list[str]) -> None:
        Path(access.control).mkdir(parents=True, exist_ok=True)
        for path in (access.identity, *(access.host_key(name) for name in names)):
            Path(path).write_text(f"private of {path}\n")
            Path(f"{path}.pub").write_text(f"ssh-ed25519 AAAA{Path(path).name} lab\n")

    monkeypatch.setattr(ssh, "make_keys", make_keys)
    # The namespace needs root; all else is as it is on a machine.
    argv = command_line.argv
    monkeypatch.setattr(command_line, "argv", lambda *parts: argv(*parts)[2:])
    return Machine("uml", str(kernel), "/cache/0123.img", 512, 2, "colocation-switch", 24, 1500)


@pytest.fixture
def state_dir(tmp_path: Path) -> Iterator[str]:
    """Return a state directory whose journal is undone at the end, so that nothing runs on."""
    path = tmp_path / "state"
    yield str(path)
    Journal(str(path / "journal.json")).undo(undo.Undo().handlers())
    assert not path.exists()


def apply(lab: Lab) -> list[str]:
    """Do what the plan says and return it."""
    book = Journal(f"{lab.state_dir}/journal.json")
    actions = guests.plan(lab)
    guests.end_surplus(lab, actions, book)
    guests.prepare(lab, book)
    guests.start(lab, actions, book)
    return [action.text for action in actions]


def test_guests_are_made_once(machine, state_dir):
    lab = Lab(state_dir, machine, (A, B))
    assert apply(lab) == ["make guest a", "make guest b"]
    assert guests.plan(lab) == ()
    assert boot.pid(lab.paths("a")) != boot.pid(lab.paths("b"))


def test_one_that_was_killed_is_started_with_the_disk_that_it_had(machine, state_dir):
    lab = Lab(state_dir, machine, (A,))
    apply(lab)
    Path(lab.paths("a").disk).write_text("written")
    boot.end(lab.paths("a"))
    assert apply(lab) == ["start guest a"]
    assert Path(lab.paths("a").disk).read_text() == "written"


def test_one_with_other_options_is_made_anew(machine, state_dir):
    lab = Lab(state_dir, machine, (A, B))
    apply(lab)
    before = boot.pid(lab.paths("a")), boot.pid(lab.paths("b"))
    Path(lab.paths("a").disk).write_text("written")
    changed = dataclasses.replace(lab, guests=(dataclasses.replace(A, address="198.18.0.9"), B))
    assert apply(changed) == ["make guest a anew: its options or image have changed"]
    assert not Path(lab.paths("a").disk).exists()
    assert boot.pid(lab.paths("a")) != before[0]
    assert boot.pid(lab.paths("b")) == before[1]


def test_one_that_is_not_wanted_goes_with_its_entry(machine, state_dir):
    lab = Lab(state_dir, machine, (A, B))
    apply(lab)
    assert apply(dataclasses.replace(lab, guests=(A,))) == ["remove guest b"]
    assert guests.present(state_dir) == ("a",)
    entries = Journal(f"{state_dir}/journal.json").entries()
    assert [entry.target for entry in entries if entry.kind == "process"] == [lab.paths("a").pid]


def test_one_that_was_left_half_made_is_made_again(machine, state_dir):
    lab = Lab(state_dir, machine, (A,))
    apply(lab)
    boot.end(lab.paths("a"))
    Path(lab.paths("a").record).unlink()
    assert apply(lab) == ["make guest a anew: its options or image have changed"]


def test_a_changed_configuration_of_ssh_is_written_again(machine, state_dir):
    lab = Lab(state_dir, machine, (A,))
    apply(lab)
    Path(lab.access.config).write_text("Host *\n")
    assert apply(lab) == ["write keys and configuration for ssh"]
    assert "ProxyUseFdpass" in Path(lab.access.config).read_text()
    assert guests.plan(lab) == ()


def test_removing_all_leaves_no_process_no_file_and_no_entry(machine, state_dir):
    lab = Lab(state_dir, machine, (A, B))
    apply(lab)
    running = [Path(f"/proc/{boot.pid(lab.paths(name))}") for name in "ab"]
    book = Journal(f"{state_dir}/journal.json")
    guests.remove_all(state_dir, book)
    assert not any(path.exists() and "waits" in (path / "cmdline").read_text() for path in running)
    assert {entry.by for entry in book.entries()} == {"journal"}
    assert sorted(path.name for path in Path(state_dir).iterdir()) == ["journal.json", "journal.json.lock"]


def test_the_journal_alone_undoes_a_run_that_was_killed(machine, state_dir):
    lab = Lab(state_dir, machine, (A, B))
    apply(lab)
    done = Journal(f"{state_dir}/journal.json").undo(undo.Undo().handlers())
    assert [item.outcome.text for item in done if item.outcome.result != "undone"] == []


def test_the_process_is_recorded_before_it_becomes_the_kernel(machine, state_dir):
    broken = dataclasses.replace(machine, program="/no/such/kernel")
    lab = Lab(state_dir, broken, (A,))
    apply(lab)
    recorded = json.loads(Path(lab.paths("a").pid).read_text())
    assert set(recorded) == {"pid", "start_ticks", "boot_id"}


@pytest.mark.parametrize(
    ("text", "state"),
    [
        ("running\n1234\n", boot.System("running", "1234", ())),
        (
            "degraded\n1234\nnginx.service loaded failed failed A web server\n",
            boot.System("degraded", "1234", ("nginx.service",)),
        ),
        ("", None),
        ("starting\n", None),
    ],
)
def test_the_answer_of_a_guest(text, state):
    assert boot.parse(text) == state


def test_a_kernel_that_ends_is_told_with_its_console(machine, state_dir):
    lab = Lab(state_dir, dataclasses.replace(machine, program="/bin/false"), (A,))
    apply(lab)
    Path(lab.paths("a").console).write_text("Kernel panic - not syncing: VFS: Unable to mount root fs\n")
    recorded = boot.recorded(lab.paths("a")).child
    assert recorded is not None
    assert processes.wait_end(recorded, 20)
    with pytest.raises(boot.BootError, match="guest a: its kernel has ended; its console says:\nKernel panic"):
        boot.wait_up(lab.access, "a", lab.paths("a"), float("inf"))


def test_a_guest_that_never_answers_is_told_with_its_console(machine, state_dir):
    lab = Lab(state_dir, machine, (A,))
    apply(lab)
    with pytest.raises(boot.BootError, match=r"guest a: not up in time .no answer over ssh.; set a longer"):
        boot.wait_up(lab.access, "a", lab.paths("a"), 0.0)


def test_a_reboot_counts_only_in_another_boot(machine, state_dir):
    lab = Lab(state_dir, machine, (A,))
    apply(lab)
    answers = iter(["stopping\nold\n", "running\nold\n", "running\nnew\n"])

    def run(argv, **_options):
        return boot.commands.Result(tuple(argv), 0, next(answers), "")

    found = boot.wait_up(lab.access, "a", lab.paths("a"), float("inf"), "old", run)
    assert found == boot.System("running", "new", ())
