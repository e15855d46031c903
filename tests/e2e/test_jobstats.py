"""`tacho show --jobstats`: the line of jobstats, decoded by reportseff's own code and shown by its own program."""

import base64
import gzip
import json
import os
import subprocess
import sys

import pytest

from exported import reader, tool
from recorder import run, show

MIB, GIB = 1 << 20, 1 << 30


def node(folder, host, *values):
    path = folder / f"{host}.tacho"
    subprocess.run([tool("query_tool"), "node", path, host, *values], check=True)
    return path


def line_of(*operands):
    done = run("show", "--jobstats", *operands)
    assert done.returncode == 0 and not done.stderr, done.stderr
    text = done.stdout.decode("ascii")
    assert text.startswith("JS1:") and text.endswith("\n") and text.count("\n") == 1
    return text.strip()


def decoded(line):
    return json.loads(gzip.decompress(base64.b64decode(line[4:], validate=True)))


@pytest.fixture
def nodes(tmp_path):
    """Two nodes, of which one has GPUs: every number is known."""
    folder = tmp_path / "run"
    folder.mkdir()
    node(folder, "node1", "seconds=40", "cores=6", "cpus=8", "memory=4096", "given=16384", "gpus=2", "util=75")
    node(folder, "node2", "seconds=40", "cores=2", "cpus=8", "memory=1024", "given=16384")
    return folder


def test_every_number_of_a_node(nodes):
    memory = {"0": GIB, "1": GIB}
    assert decoded(line_of(nodes)) == {
        "nodes": {
            "node1": {"cpus": 8, "total_time": 240, "total_memory": 16 * GIB, "used_memory": 4 * GIB, "gpu_used_memory": memory,
                      "gpu_total_memory": {"0": 40 * GIB, "1": 40 * GIB}, "gpu_utilization": {"0": 75, "1": 75}},
            "node2": {"cpus": 8, "total_time": 80, "total_memory": 16 * GIB, "used_memory": GIB},
        },
        "total_time": 40,
        "gpus": 2,
    }
    assert json.loads(run("show", "--jobstats", "--json", nodes).stdout) == decoded(line_of(nodes))


def test_recordings_of_one_host_are_one_node(nodes):
    node(nodes, "node1", "seconds=40", "cores=1", "memory=512", "gpus=2", "util=75")
    second = nodes / "again.tacho"
    subprocess.run([tool("query_tool"), "node", second, "node1", "seconds=40", "cores=1", "memory=512"], check=True)
    one = decoded(line_of(nodes))["nodes"]["node1"]
    assert (one["total_time"], one["used_memory"], one["cpus"]) == (80, GIB, 8)


def test_what_is_not_known_is_left_out(tmp_path):
    """A reader would divide by it. The machine stands in for an allocation that is not known."""
    path = tmp_path / "a.tacho"
    subprocess.run([tool("query_tool"), path, "here", "2"], check=True)
    found = decoded(line_of(path))
    assert found["nodes"]["here"].keys() == {"cpus", "total_time", "gpu_used_memory", "gpu_total_memory", "gpu_utilization"}
    assert found["gpus"] == 1, "the other GPU is not the job's"


def test_a_real_recording(tmp_path):
    path = tmp_path / "a.tacho"
    assert run("run", "-q", "-o", path, "--", "sh", "-c", "i=0; while [ $i -lt 100000 ]; do i=$((i + 1)); done").returncode == 0
    truth, (found,) = show(path), decoded(line_of(path))["nodes"].values()
    assert found["total_time"] == pytest.approx(truth["cpu"]["total_s"], abs=0.0005)
    assert found["used_memory"] == truth["memory"]["peak_bytes"]
    assert found["cpus"] == truth["limits"]["cpus"]
    assert found["total_memory"] == truth["limits"]["memory_bytes"]


def test_many_nodes_are_packed_small(tmp_path):
    """AdminComment is a column of 64 KiB."""
    for i in range(400):
        node(tmp_path, f"compute-{i:04}", "seconds=5", f"cores={i % 8}.{i % 10}", f"memory={1000 + 7 * i}", "gpus=4", f"util={i % 100}")
    line = line_of(tmp_path)
    found = decoded(line)
    assert len(found["nodes"]) == 400 and found["gpus"] == 1600
    for i in range(400):
        one = found["nodes"][f"compute-{i:04}"]
        assert (one["used_memory"], one["gpu_utilization"]["3"]) == ((1000 + 7 * i) * MIB, i % 100)
    plain = len(json.dumps(found, separators=(",", ":")))
    assert len(line) < 65536 < plain, (len(line), plain)


def test_it_goes_with_no_other_view(nodes):
    for other in ("--stats", "--processes", "--follow", "--csv"):
        done = run("show", "--jobstats", other, nodes)
        assert done.returncode == 2 and b"--jobstats" in done.stderr


def test_reportseff_reads_it(nodes):
    job = reader("reportseff.job").Job("4711", "4711", None)
    job.update({"JobID": "4711", "State": "COMPLETED", "Elapsed": "00:00:40", "TotalCPU": "00:00:01", "AllocCPUS": "16",
                "ReqMem": "32G", "NNodes": "2", "AdminComment": line_of(nodes)})
    one, two = job.comment_data["node1"], job.comment_data["node2"]
    assert (one["CPUEff"], one["MemEff"], one["GPUEff"], one["GPUMem"]) == (75, 25, 75, 2.5)
    assert one["gpus"] == {"0": {"GPUEff": 75, "GPUMem": 2.5}, "1": {"GPUEff": 75, "GPUMem": 2.5}}
    assert (two["CPUEff"], two["MemEff"]) == (25, 6.25)
    assert (job.cpu, job.gpu, job.gpu_mem) == (50, 75, 2.5)
    assert job.mem_eff == pytest.approx(15.6, abs=0.05)


SACCT = """#!/bin/sh
case "$*" in *--helpformat*) echo JobID JobIDRaw State Elapsed TotalCPU AllocCPUS REQMEM ReqMem NNodes MaxRSS NTasks Timelimit AdminComment; exit;; esac
for word; do case $word in --format=*) format=${word#--format=};; esac; done
line=
IFS=,
for name in $format; do
    case $name in
        JobID*) value=4711;; State) value=COMPLETED;; Elapsed) value=00:00:40;; TotalCPU) value=00:00:01;;
        AllocCPUS) value=16;; REQMEM|ReqMem) value=32G;; NNodes) value=2;; Timelimit) value=00:01:00;;
        AdminComment) value=$COMMENT;; *) value=;;
    esac
    line="$line${line:+^|^}$value"
done
echo "$line"
"""


def test_the_program_reportseff_shows_it(nodes, tmp_path):
    """As a user calls it; only SLURM's two programs are stand-ins; sacct answers with our line as AdminComment."""
    folder = os.path.dirname(os.path.dirname(reader("reportseff").__file__))
    fakes = tmp_path / "bin"
    fakes.mkdir()
    for name, text in {"sacct": SACCT, "scontrol": "#!/bin/sh\necho PartitionName=all MaxTime=UNLIMITED\n"}.items():
        (fakes / name).write_text(text)
        (fakes / name).chmod(0o755)
    env = dict(os.environ, PATH=f"{fakes}:{os.environ['PATH']}", PYTHONPATH=folder, COMMENT=line_of(nodes))
    done = subprocess.run([sys.executable, "-c", "from reportseff.console import main; main()", "--no-color", "--node-and-gpu", "4711"],
                          env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert done.returncode == 0, done.stderr
    rows = {line.split()[0]: line.split()[1:] for line in done.stdout.splitlines()[1:] if line.strip()}
    said = done.stdout
    assert rows["4711"][0] == "COMPLETED" and "50.0%" in said and "15.6%" in said, said
    assert {"75.0%", "25.0%"} <= set(rows["node1"]), said
    assert "25.0%" in rows["node2"] and "6.2%" in rows["node2"], said
