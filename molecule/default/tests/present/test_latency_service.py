"""The latency service after converge, asked from the load node as the load generator asks it."""

import json
import os
from pathlib import Path

import pytest

FACTS = json.loads((Path(os.environ["MOLECULE_EPHEMERAL_DIRECTORY"]) / "facts.json").read_text())
GET = """import gzip, json, sys, urllib.request
request = urllib.request.Request(sys.argv[1], headers=json.loads(sys.argv[2]))
with urllib.request.urlopen(request, timeout=10) as answer:
    body = answer.read()
    print(json.dumps([answer.status, answer.headers.get("Content-Encoding"), len(body), len(gzip.decompress(body))]))
"""
PAGES = {FACTS["service"]["page"]: 72_000, "/slow-5": 76_450, "/slow-20": 89_800}


@pytest.fixture(params=sorted(PAGES))
def page(request):
    return request.param


def test_page_is_compressed_for_each_request(node, page):
    service = FACTS["service"]
    url = f"http://{service['address']}:{service['port']}{page}"
    status, encoding, sent_bytes, page_bytes = json.loads(
        node.check_output("python3 -c %s %s %s", GET, url, json.dumps(service["headers"]))
    )
    assert (status, encoding, page_bytes) == (200, "gzip", PAGES[page])
    assert sent_bytes < page_bytes / 4


def test_every_slow_page_has_a_url():
    assert FACTS["service"]["slow_pages"] == {"5": "/slow-5", "20": "/slow-20"}


def test_runs_in_its_group_on_its_cpu():
    record = json.loads((Path(FACTS["node"]["state_dir"]) / "processes/nginx.pid").read_text())
    children = Path(f"/proc/{record['pid']}/task/{record['pid']}/children").read_text().split()
    assert children, "a worker"
    for pid in [record["pid"], *children]:
        groups = Path(f"/proc/{pid}/cgroup").read_text()
        assert f"{FACTS['node']['cgroup_root']}/service" in groups
        assert os.sched_getaffinity(int(pid)) == {0}


def test_the_configuration_of_the_machine_is_not_used():
    argv = FACTS["service"]["process"]["argv"]
    assert not any("/etc/nginx" in word for word in argv)
    config = Path(FACTS["service"]["process"]["config_files"][0]).read_text()
    assert "/etc/nginx" not in config.replace("/etc/nginx is not used", "")
