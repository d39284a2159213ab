"""Every aggressor does its work, run for a moment as its definition says."""

import functools
import json
import os
import re
import subprocess
import time
from pathlib import Path

import pytest

from ansible_collections.colocation.testbed.plugins.plugin_utils.definitions import load_definitions
from ansible_collections.colocation.testbed.plugins.plugin_utils.experiment.specs import fill

FACTS = json.loads((Path(os.environ["MOLECULE_EPHEMERAL_DIRECTORY"]) / "facts.json").read_text())
AGGRESSORS = load_definitions(os.environ["MOLECULE_PROJECT_DIRECTORY"]).aggressors
WITH_PEER = sorted(name for name, definition in AGGRESSORS.items() if definition.get("peer"))
RUN_S = 2
DEADLINE_S = 60


def inside(host, argv):
    return ["nsenter", f"--net=/run/netns/ctmol-{host}", *argv]


def placeholders(tmp_path):
    return {**FACTS["batch"]["placeholders"], "progress": str(tmp_path / "progress"), "peer_address": "198.18.66.2"}


def run_until(condition, argv):
    """Run a program until a condition holds, then end it."""
    deadline_s = time.monotonic() + DEADLINE_S
    with subprocess.Popen(inside("molecule-tested", argv), stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as process:
        while not condition():
            if process.poll() is not None:
                pytest.fail(f"ended by itself: {process.stdout.read().decode()}")
            if time.monotonic() > deadline_s:
                process.kill()
                pytest.fail("has not done its work in time")
            time.sleep(0.1)
        process.terminate()
        # stress-ng ends between two rounds of its work, which other work on the machine makes long.
        process.communicate(timeout=DEADLINE_S)


def a_moment():
    """Return a condition that holds when a moment has passed."""
    end_s = time.monotonic() + RUN_S
    return lambda: time.monotonic() >= end_s


def has_done(path, frames):
    """Return whether ffmpeg says that it has done more frames."""
    found = re.findall(r"^frame=(\d+)$", path.read_text(), re.MULTILINE) if path.exists() else []
    return bool(found) and int(found[-1]) > frames


def children_cpu_s():
    times = os.times()
    return times.children_user + times.children_system


def test_all_built_in_aggressors_are_deployed():
    assert set(FACTS["batch"]["description"]["aggressors"]) == set(AGGRESSORS)


@pytest.mark.parametrize("name", sorted(set(AGGRESSORS) - set(WITH_PEER)))
def test_works(name, tmp_path):
    words = placeholders(tmp_path)
    before = children_cpu_s()
    condition = a_moment()
    if AGGRESSORS[name]["work"]["kind"] == "ffmpeg_progress":
        # More than the clip has: it is played in a loop.
        condition = functools.partial(has_done, Path(words["progress"]), 30)
    run_until(condition, [fill(word, words) for word in AGGRESSORS[name]["argv"]])
    assert children_cpu_s() - before > 0.05 * RUN_S
    assert os.listdir(words["directory"]) == [], "nothing is left behind"


@pytest.mark.parametrize("name", WITH_PEER)
def test_network_aggressor_sends_to_its_peer(name, tmp_path):
    words = placeholders(tmp_path)
    definition = AGGRESSORS[name]
    argv = [fill(word, words) for word in definition["peer"]["argv"]]
    with subprocess.Popen(inside("molecule-load", argv), stdout=subprocess.DEVNULL) as peer:
        try:
            wait_for_port("molecule-load", fill(str(definition["peer"]["ready_tcp_port"]), words))
            before = sent_bytes()
            run_until(lambda: sent_bytes() - before > 1_000_000, [fill(word, words) for word in definition["argv"]])
        finally:
            peer.terminate()


def wait_for_port(host, port):
    """Wait until something listens on a port of a host, which `ss` sees without connecting to it."""
    deadline_s = time.monotonic() + 10
    argv = inside(host, ["ss", "-Hltn", f"sport = :{port}"])
    while not subprocess.run(argv, check=True, capture_output=True).stdout:
        assert time.monotonic() < deadline_s, f"nothing listens on port {port}"


def sent_bytes():
    argv = inside("molecule-tested", ["ip", "-j", "-s", "link", "show", "ct0"])
    shown = json.loads(subprocess.run(argv, check=True, capture_output=True).stdout)
    return shown[0]["stats64"]["tx"]["bytes"]


def test_clip_is_what_was_asked_for():
    argv = ["ffprobe", "-v", "error", "-count_frames", "-show_entries", "stream=codec_name,width,height,nb_read_frames"]
    argv += ["-of", "json", FACTS["batch"]["placeholders"]["clip"]]
    stream = json.loads(subprocess.run(argv, check=True, capture_output=True).stdout)["streams"][0]
    assert stream == {"codec_name": "h264", "width": 1280, "height": 720, "nb_read_frames": "30"}
