"""Every aggressor does its work, run for a moment as its definition says."""

import json
import os
import subprocess
import time
from pathlib import Path

import pytest

from ansible_collections.colocation.testbed.plugins.plugin_utils.definitions import load_definitions
from ansible_collections.colocation.testbed.plugins.plugin_utils.experiment.specs import fill

FACTS = json.loads((Path(os.environ["MOLECULE_EPHEMERAL_DIRECTORY"]) / "facts.json").read_text())
AGGRESSORS = load_definitions(os.environ["MOLECULE_PROJECT_DIRECTORY"]).aggressors
RUN_S = 2


def inside(host, argv):
    return ["nsenter", f"--net=/run/netns/ctmol-{host}", *argv]


def placeholders(tmp_path):
    return {**FACTS["batch"]["placeholders"], "progress": str(tmp_path / "progress"), "peer_address": "198.18.66.2"}


def run_for_a_moment(argv):
    """Return CPU seconds and status of a program that is ended after a moment."""
    with subprocess.Popen(inside("molecule-tested", argv), stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as process:
        try:
            process.wait(RUN_S)
        except subprocess.TimeoutExpired:
            process.terminate()
        else:
            pytest.fail(f"ended by itself: {process.stdout.read().decode()}")
        process.communicate(timeout=20)


def children_cpu_s():
    times = os.times()
    return times.children_user + times.children_system


def test_all_built_in_aggressors_are_deployed():
    assert set(FACTS["batch"]["description"]["aggressors"]) == set(AGGRESSORS)


@pytest.mark.parametrize("name", sorted(set(AGGRESSORS) - {"iperf3"}))
def test_works(name, tmp_path):
    words = placeholders(tmp_path)
    before = children_cpu_s()
    run_for_a_moment([fill(word, words) for word in AGGRESSORS[name]["argv"]])
    assert children_cpu_s() - before > 0.05 * RUN_S
    if AGGRESSORS[name]["work"]["kind"] == "ffmpeg_progress":
        frames = [line for line in Path(words["progress"]).read_text().splitlines() if line.startswith("frame=")]
        # More than the clip has: it is played in a loop.
        assert int(frames[-1].removeprefix("frame=")) > 30
    assert os.listdir(words["directory"]) == [], "nothing is left behind"


def test_network_aggressor_sends_to_its_peer(tmp_path):
    words = placeholders(tmp_path)
    definition = AGGRESSORS["iperf3"]
    argv = [fill(word, words) for word in definition["peer"]["argv"]]
    with subprocess.Popen(inside("molecule-load", argv), stdout=subprocess.DEVNULL) as peer:
        try:
            wait_for_port("molecule-load", definition["peer"]["ready_tcp_port"])
            before = sent_bytes()
            run_for_a_moment([fill(word, words) for word in definition["argv"]])
            assert sent_bytes() - before > 1_000_000
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
