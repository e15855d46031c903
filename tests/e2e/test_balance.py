"""Many nodes: their balance, the one that is held back, and the heat maps in which each has a row. Every node is a recording
whose numbers are known."""

import json
import subprocess

import pytest

from exported import tool
from recorder import run, show

NODE_ROWS = 1024  # of a heat map


def node(folder, host, *values):
    subprocess.run([tool("query_tool"), "node", folder / f"{host}.tacho", host, *values], check=True)


def report(*words):
    done = run("report", "--force", *words)
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout


def panels_of(folder):
    return {panel["id"]: panel for panel in json.loads(report("-f", "json", "-o", "-", folder))["panels"]}


@pytest.fixture(scope="module")
def nodes(tmp_path_factory):
    """Twelve that work alike, but for node5 with a low clock and less memory, and node7, which does nothing."""
    folder = tmp_path_factory.mktemp("nodes")
    for i in range(1, 13):
        own = {5: ("cores=6", "mhz=1200", "memory=1024"), 7: ("cores=0",)}.get(i, ())
        node(folder, f"node{i}", "cores=7.5", "memory=2048", "gpus=1", f"util={90 if i == 1 else 30}", f"in={i}", *own)
    return folder


def test_the_balance_is_told(nodes):
    (balance,) = show(nodes)["balance"]
    assert (balance["of"], balance["name"], balance["over"]) == ("run", None, "nodes")
    cpu, memory, gpu, received = (balance[name] for name in ("cpu_s", "memory_bytes", "gpu_percent", "net_rx_bytes"))
    mean = (10 * 7.5 + 6) / 12
    assert (cpu["count"], cpu["most"], cpu["least"], cpu["least_on"]) == (12, 225, 0, "node7")
    assert cpu["mean"] == pytest.approx(30 * mean) and cpu["ratio"] == pytest.approx(mean / 7.5)
    assert memory["ratio"] == pytest.approx((11 * 2048 + 1024) / 12 / 2048) and memory["least_on"] == "node5"
    assert gpu["ratio"] == pytest.approx((90 + 11 * 30) / 12 / 90) and gpu["most_on"] == "node1"
    assert (received["most_on"], received["least_on"], received["most"]) == ("node12", "node1", 30 * 12 << 20)
    text = run("show", nodes).stdout.decode()
    assert f"CPU {100 * mean / 7.5:.0f} % (least: node7, most: node1)" in text
    assert "the run, over nodes" in report("-f", "md", "-o", "-", nodes).decode()
    assert "balance" not in show(nodes / "node1.tacho")


def test_what_is_found(nodes):
    found = {finding["id"]: finding for finding in json.loads(report("-f", "json", "-o", "-", nodes))["findings"]}
    assert "node7 did nothing" in found["idle-node"]["title"]
    assert "node5 was held back" in found["slow-node"]["title"]
    assert "its CPUs ran at 1.2 GHz (the others: 3 GHz)" in found["slow-node"]["text"]
    assert "on node1 90 % busy" in found["gpu-imbalance"]["title"]
    assert "network-imbalance" not in found


def test_every_node_has_a_row(nodes):
    panels = panels_of(nodes)
    assert {"cpu-nodes", "memory-nodes", "network-nodes", "gpu-util-nodes"} <= panels.keys()
    cpu, traffic = panels["cpu-nodes"], panels["network-nodes"]
    # As people count, and the first on top: rows begin at the bottom.
    assert [line["name"] for line in cpu["lines"]] == [f"node{i}" for i in range(12, 0, -1)]
    assert (cpu["form"], cpu["node"], cpu["y_most"]) == ("heat", -1, 8), "the colours reach to what each was given"
    assert cpu["lines"][7]["average"] == pytest.approx(6) and cpu["lines"][5]["average"] == 0
    assert "lowest 0: node7" in cpu["subtitle"]
    # In and out together.
    assert traffic["lines"][0]["average"] == pytest.approx((12 + 5) << 20)
    assert panels["gpu-util-nodes"]["y_most"] == 1


def test_two_nodes_have_no_map(nodes):
    done = run("report", "-f", "json", "-o", "-", nodes / "node1.tacho", nodes / "node2.tacho")
    assert not [panel for panel in json.loads(done.stdout)["panels"] if panel["id"].endswith("-nodes")]


def test_more_nodes_than_rows(tmp_path):
    for i in range(NODE_ROWS + 6):
        node(tmp_path, f"n{i}", "seconds=12", f"cores={4 if i % 2 else 2}")
    cpu = panels_of(tmp_path)["cpu-nodes"]
    assert len(cpu["lines"]) == (NODE_ROWS + 6) / 2
    assert cpu["lines"][-1]["name"] == "n0 – n1" and cpu["lines"][0]["name"] == f"n{NODE_ROWS + 4} – n{NODE_ROWS + 5}"
    assert {round(line["average"], 6) for line in cpu["lines"]} == {3}
    assert "a row is the mean of 2 nodes" in cpu["subtitle"]
    report("-f", "png", "-o", tmp_path / "out", tmp_path)
    assert (tmp_path / "out/plots/cpu-nodes.png").stat().st_size > 10000


RANKS = [(240, "0"), (120, "1"), (60, "2"), (60, "3")]


def test_recordings_of_ranks_are_compared(tmp_path):
    """`srun tacho run -- ./rank`: a recording a rank, two on each node."""
    for cpu_s, rank in RANKS:
        host = f"node{int(rank) // 2}"
        subprocess.run([tool("query_tool"), "node", tmp_path / f"{rank}.tacho", host, f"cores={cpu_s / 30}", f"rank={rank}"], check=True)
    nodes, ranks = show(tmp_path)["balance"]
    assert (nodes["over"], nodes["cpu_s"]["count"], nodes["cpu_s"]["most"]) == ("nodes", 2, 360)
    cpu = ranks["cpu_s"]
    assert (ranks["over"], cpu["count"], cpu["most_on"], cpu["ratio"]) == ("ranks", 4, "rank 0 on node0", 0.5)
