"""Every machine and film of the tree through the whole program: recorded, shown, and watched by the sanitizers.

A machine stands still, and sums of what stands still show nothing. So the counters of some are moved, each by another
power of two: the total then tells which of them were added, and none can be added twice unseen.
"""

import json
import re
import subprocess
from pathlib import Path

import pytest
from recorder import TACHO

TESTS = Path(__file__).resolve().parent.parent
ASAN = TESTS.parent / "build-asan" / "tacho"
MACHINES = sorted(path.stem for path in (TESTS / "machines").glob("*.txt"))
FILMS = sorted(path.stem for path in (TESTS / "films").glob("*.txt"))

# What is asked of the collection: a machine of each kind, a film of each mishap.
NEEDED = {"intel-2s", "amd-server", "laptop", "arm-server", "container-v2", "slurm-v2", "slurm26-v2", "slurm-v1", "oar", "pbs",
          "numa-256"}  # fmt: skip
NEEDED_FILMS = {"rapl-wrap", "rapl-reset", "ib-ports", "cpu-hotplug", "net-renamed"}

PROCESS = """\
file proc/1000/stat
|1000 (job) S 1 1000 1000 0 -1 4194304 100 0 0 0 10 5 0 0 20 0 1 0 100 10000000 500 18446744073709551615 1 1 0 0 0 0 0 \
0 0 0 0 0 17 0 0 0 0 0 0 0 0 0 0 0 0 0 0
file proc/1000/statm
|2441 500 100 10 0 200 0
"""
STILL = "frame 1\nframe 2\nframe 6\nframe 12\n"


class Machine:
    def __init__(self, path):
        self.start, frame, rest = path.read_text().partition("\nframe ")
        self.start += "\n"
        self.frames = "frame " + rest if frame else STILL
        found = re.search(r"^file proc/(\d+)/stat$", self.start, re.M)
        self.pid = found[1] if found else "1000"
        if not found:
            self.start += PROCESS

    def content(self, path):
        """The last block of this path, as the film has it."""
        return re.findall(rf"^file {re.escape(path)}\n((?:[|:].*\n)*)", self.start, re.M)[-1]

    def files(self, pattern):
        return sorted(set(re.findall(rf"^file ({pattern})$", self.start, re.M)))

    def move(self, changed):
        """From the first second on these files are so."""
        blocks = "".join(f"file {path}\n{content}" for path, content in changed.items())
        self.frames = self.frames.replace("frame 1\n", "frame 1\n" + blocks, 1)

    def play(self, folder, binary=TACHO):
        film, recording = folder / "film.txt", folder / "film.tacho"
        film.write_text(self.start + self.frames)
        ask(binary, "debug", "play", film, recording, "1s", self.pid)
        return recording


def ask(binary, *words):
    done = subprocess.run([binary, *map(str, words)], stdin=subprocess.DEVNULL, capture_output=True)
    assert done.returncode == 0, done.stderr.decode(errors="replace")
    assert done.stderr == b""
    return done.stdout


def machine(name):
    return Machine(TESTS / "machines" / f"{name}.txt")


def shown(played):
    return json.loads(ask(TACHO, "show", "--json", played))


def test_the_collection():
    assert NEEDED <= set(MACHINES)
    assert NEEDED_FILMS <= set(FILMS)


# ---- all of them ----


def numbers(value, path=""):
    """Every number of a document, with where it stands."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from numbers(inner, f"{path}.{key}")
    elif isinstance(value, list):
        for inner in value:
            yield from numbers(inner, path)
    elif isinstance(value, (int, float)) and not isinstance(value, bool):
        yield path, value


@pytest.mark.parametrize("name", [f"machines/{name}" for name in MACHINES] + [f"films/{name}" for name in FILMS])
def test_it_is_recorded_and_shown(name, tmp_path):
    """By the binary that watches itself, where it was built."""
    binary = ASAN if ASAN.exists() else TACHO
    recording = Machine(TESTS / f"{name}.txt").play(tmp_path, binary)
    says = json.loads(ask(binary, "show", "--json", recording))
    assert ask(binary, "show", recording)
    ask(binary, "check", recording)
    assert says["ticks"]["taken"] >= 2
    assert says["processes"]["seen"] >= 1
    # Nothing of the hardware is negative; a node that moves nothing has moved nothing.
    parts = ("network", "interconnect", "disk", "energy", "cgroup", "memory", "io")
    for where, number in numbers({part: says[part] for part in parts}):
        assert 0 <= number < 2**50, (where, number)
    if name.startswith("machines/"):
        for part in ("network", "interconnect", "disk"):
            assert set(says[part].values()) <= {0, None}, (part, says[part])


# ---- totals ----

JOULE = 1_000_000


def weights(names):
    return {name: 1 << i for i, name in enumerate(names)}


def meter(path):
    """A zone has one name by whichever path it is reached; elsewhere each file is a meter."""
    return path.split("/")[-2] if "powercap" in path else path


@pytest.mark.parametrize(
    "name, counted, source",
    [
        ("intel-2s", ["intel-rapl:0", "intel-rapl:0:0", "intel-rapl:1", "intel-rapl:1:0"], "rapl"),
        ("amd-server", ["intel-rapl:0", "intel-rapl:1"], "rapl"),
        ("laptop", ["intel-rapl:0"], "rapl"),
        ("cray", ["sys/cray/pm_counters/energy"], "cray"),
    ],
)
def test_energy_is_counted_once(name, counted, source, tmp_path):
    """Each meter of a node uses another number of joules; a zone by its second path what it uses by its first."""
    m = machine(name)
    paths = m.files(r"sys/(?:class/powercap|class/hwmon|cray)/\S*/(?:energy_uj|energy\d+_input|(?:\w+_)?energy)")
    joules = weights(sorted({meter(path) for path in paths}))
    changed = {}
    for path in paths:
        first, rest = re.fullmatch(r"\|(\d+)(.*\n)", m.content(path)).groups()
        used = joules[meter(path)] * (1 if path.startswith("sys/cray") else JOULE)
        changed[path] = f"|{int(first) + used}{rest}"
    m.move(changed)
    energy = shown(m.play(tmp_path))["energy"]
    assert len(paths) > len(counted), "nothing that could be counted twice"
    assert energy["node_joules"] == pytest.approx(sum(joules[one] for one in counted))
    assert energy["source"].startswith(source)


def test_power_meters_are_counted_once(tmp_path):
    """310 W of the module, which contain those of its parts."""
    energy = shown(machine("arm-server").play(tmp_path))["energy"]
    assert energy["mean_watts"] == pytest.approx(310)
    assert energy["source"].startswith("hwmon")


@pytest.mark.parametrize(
    "name, counted",
    [
        ("intel-2s", ["eno1", "eno2"]),
        ("net-server", ["eno1", "eno2", "ens5f0np0"]),
        ("net-container", ["eth0"]),
        ("net-odd", ["eth0", "eth1", "ens1", "ib1"]),
    ],
)
def test_traffic_is_counted_once(name, counted, tmp_path):
    m = machine(name)
    text = m.content("proc/net/dev")
    names = re.findall(r"^\|\s*([\w.]+):\s*\d+ +\d+ +\d", text, re.M)
    weight = weights(names)

    def more(match):
        add = weight.get(match[2])
        if add is None:
            return match[0]
        values = [int(word) for word in match[3].split()]
        for place, factor in ((0, 1000), (1, 1), (8, 2000), (9, 2)):
            values[place] += factor * add
        return f"{match[1]}{match[2]}: {' '.join(map(str, values))}\n"

    m.move({"proc/net/dev": re.sub(r"^(\|\s*)([\w.]+):([ \d]+)\n", more, text, flags=re.M)})
    network = shown(m.play(tmp_path))["network"]
    total = sum(weight[name] for name in counted)
    expected = {"rx_bytes": 1000 * total, "tx_bytes": 2000 * total, "rx_packets": total, "tx_packets": 2 * total}
    assert len(names) > len(counted), "nothing that could be counted twice"
    assert network == expected


@pytest.mark.parametrize("name, octets", [("intel-2s", 4), ("net-server", 4)])
def test_data_of_ports_is_words_and_packets_are_packets(name, octets, tmp_path):
    m = machine(name)
    changed = {}
    ports = weights(sorted({path.split("/counters")[0] for path in m.files(r"sys/class/infiniband/\S+/port_rcv_data")}))
    for port, weight in ports.items():
        for file, add in (("rcv_data", 100), ("xmit_data", 300), ("rcv_packets", 7), ("xmit_packets", 9)):
            for path in m.files(rf"{re.escape(port)}/counters/port_{file}"):
                changed[path] = f"|{int(m.content(path)[1:]) + add * weight}\n"
    m.move(changed)
    says = shown(m.play(tmp_path))
    active = [port for port in ports if "ACTIVE" in m.content(f"{port}/state")]
    total = sum(ports[port] for port in active)
    assert active
    assert says["interconnect"] == {
        "rx_bytes": octets * 100 * total,
        "tx_bytes": octets * 300 * total,
        "rx_packets": 7 * total,
        "tx_packets": 9 * total,
    }
    assert says["network"]["rx_bytes"] == 0


@pytest.mark.parametrize(
    "name, counted",
    [
        ("disk-server", ["nvme0n1", "dm-1", "sda", "sdb", "nvme2n1", "nvme3c1n1", "cciss/c0d0"]),
        ("disk-old", ["sda", "sdaa", "xvdf1", "mmcblk0", "mmcblk0boot0", "nvme0n1"]),
    ],
)
def test_disks_are_counted_once(name, counted, tmp_path):
    m = machine(name)
    text = m.content("proc/diskstats")
    line = re.compile(r"^(\|\s*\d+ +\d+ )([\w/-]+)((?: \d+)+)\n", re.M)
    # What has never worked is no disk until it does: it is left alone.
    weight = weights([match[2] for match in line.finditer(text) if match[3].split()[0] != "0"])

    def more(match):
        values = [int(word) for word in match[3].split()]
        values[2] += weight.get(match[2], 0)
        values[6] += 2 * weight.get(match[2], 0)
        return f"{match[1]}{match[2]} {' '.join(map(str, values))}\n"

    m.move({"proc/diskstats": line.sub(more, text)})
    disk = shown(m.play(tmp_path))["disk"]
    total = 512 * sum(weight[name] for name in counted)
    assert disk == {"read_bytes": total, "write_bytes": 2 * total}


# ---- control groups ----


@pytest.mark.parametrize(
    "name, path, peak",
    [
        ("container-v2", "/kubepods.slice/kubepods-pod12.slice/cri-containerd-ab34.scope", 1100000000),
        ("slurm-v2", "/system.slice/slurmstepd.scope/job_4711/step_0/user/task_1", 13 * 2**30),
        ("slurm26-v2", "/system.slice/slurmstepd.scope/sFZ3A2KQ0M8W00/step_0/user/task_1", 18 * 2**30),
        ("slurm-v1", "/slurm_node1/uid_1000/job_2/step_0/task_0", 4 * 2**30),
        ("oar", "/oar/alice_12", None),
        ("pbs", "/pbs_jobs.service/jobid/3[1].head", 3 * 2**30),
    ],
)
def test_the_group_of_the_job(name, path, peak, tmp_path):
    """Where no controller counts memory for the job's group there is no peak, and no other group's instead."""
    cgroup = shown(machine(name).play(tmp_path))["cgroup"]
    assert (cgroup["path"], cgroup["peak_bytes"]) == (path, peak)
    assert cgroup["oom_kills"] in (0, None)
