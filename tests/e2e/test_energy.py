"""Energy at its real paths: counters made of files are laid over /sys/class, and a job runs while they count."""

import json
import os
import subprocess
import tempfile
import time
from pathlib import Path

import pytest

from recorder import TACHO, by_instance, record, run, show, until

TESTS = Path(__file__).resolve().parent.parent
WITH_SYS_CLASS = TESTS / "fakes" / "with-sys-class"
FILMS = TESTS / "films"
PACKAGE_RANGE, DRAM_RANGE = 262143328850, 65712999613
JOULE = 1000000


class Zone:
    """A zone of powercap: a folder below its parent, and a link to it in the folder of the class, as the kernel has them."""

    def __init__(self, sys_class, zone, name, energy, energy_range):
        self.range = energy_range
        nested = "/".join(zone[:end] for end in self._ends(zone))
        self.folder = sys_class / "powercap" / ".devices" / nested
        self.folder.mkdir(parents=True)
        (sys_class / "powercap" / zone).symlink_to(f".devices/{nested}")
        (self.folder / "name").write_text(f"{name}\n")
        (self.folder / "max_energy_range_uj").write_text(f"{energy_range}\n")
        self.file = self.folder / "energy_uj"
        self.energy = energy
        self.file.write_text(self._text())
        self.file.chmod(0o400)

    @staticmethod
    def _ends(zone):
        """intel-rapl:0:1 lies in intel-rapl:0."""
        colons = [at for at, letter in enumerate(zone) if letter == ":"]
        return colons[1:] + [len(zone)]

    def _text(self):
        return f"{self.energy % self.range:012}\n"

    def use(self, microjoules):
        """Counts on, in place: a reader sees the number before or the one after."""
        self.energy += microjoules
        fd = os.open(self.file, os.O_WRONLY)
        try:
            os.pwrite(fd, self._text().encode(), 0)
        finally:
            os.close(fd)


@pytest.fixture
def server(tmp_path):
    """Two packages with memory: package 0 and its memory are about to pass their ranges."""
    if os.geteuid() != 0:
        pytest.skip("laying files over /sys/class needs root")
    sys_class = tmp_path / "sys-class"
    zones = {
        "package-0": Zone(sys_class, "intel-rapl:0", "package-0", PACKAGE_RANGE - 120 * JOULE, PACKAGE_RANGE),
        "dram-0": Zone(sys_class, "intel-rapl:0:0", "dram", DRAM_RANGE - 35 * JOULE, DRAM_RANGE),
        "package-1": Zone(sys_class, "intel-rapl:1", "package-1", 1000 * JOULE, PACKAGE_RANGE),
        "dram-1": Zone(sys_class, "intel-rapl:1:0", "dram", 2000 * JOULE, DRAM_RANGE),
        "psys": Zone(sys_class, "intel-rapl:2", "psys", 5000 * JOULE, PACKAGE_RANGE),
    }
    trial = subprocess.run([WITH_SYS_CLASS, sys_class, "true"], stderr=subprocess.PIPE, text=True)
    if trial.returncode != 0:
        pytest.skip(f"no overlay over /sys/class here: {trial.stderr.strip()}")
    return sys_class, zones


def live_energy(recording):
    """What the recording says so far, while it is being written; None before it says anything."""
    done = run("show", "--json", recording)
    if done.returncode != 0:
        return None
    return json.loads(done.stdout)["energy"]


def test_the_energy_of_a_job(server, tmp_path):
    sys_class, zones = server
    recording = tmp_path / "run.tacho"
    command = [WITH_SYS_CLASS, sys_class, TACHO, "run", "-q", "-i", "20ms", "-o", recording, "--", "cat"]
    job = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL)
    try:
        energy = until(lambda: (e := live_energy(recording)) and e["node_joules"] is not None and e, "a first reading")
        assert energy["source"] == "rapl: package-0, dram-0, package-1, dram-1"
        for _ in range(10):
            for name, joules in (("package-0", 40), ("dram-0", 7), ("package-1", 30), ("dram-1", 5), ("psys", 100)):
                zones[name].use(joules * JOULE)
            time.sleep(0.03)
        until(lambda: live_energy(recording)["node_joules"] == 820, "all of it is recorded")
    finally:
        job.stdin.close()
        assert job.wait() == 0
    # Both of package 0 have passed their ranges; psys contains the packages and is not added to them.
    says = show(recording)
    assert says["energy"]["node_joules"] == 820
    used = by_instance("energy.used", recording)
    assert used["psys"][-1] - used["psys"][0] == pytest.approx(1000)
    assert used["package-0"][-1] - used["package-0"][0] == pytest.approx(400)
    assert all(before <= after for before, after in zip(used["dram-0"], used["dram-0"][1:]))


def as_nobody(*words):
    return ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups", *map(str, words)]


@pytest.fixture
def nobodys_folder():
    """pytest's own folders are closed to others."""
    with tempfile.TemporaryDirectory() as folder:
        os.chown(folder, 65534, 65534)
        yield Path(folder)


def test_an_ordinary_user_is_told_what_to_do(server, nobodys_folder):
    sys_class, _ = server
    place = nobodys_folder
    trial = subprocess.run(as_nobody(TACHO, "--version"), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    if trial.returncode != 0:
        pytest.skip(f"an ordinary user cannot run {TACHO}: {trial.stderr.strip()}")

    recording = place / "run.tacho"
    command = [WITH_SYS_CLASS, sys_class, *as_nobody(TACHO, "run", "-q", "-o", recording, "--", "sleep", "0.2")]
    subprocess.run(command, check=True, cwd=place)
    says = show(recording)
    assert says["energy"]["node_joules"] is None
    reason = says["unavailable"]["energy.node_joules"]
    assert "root" in reason
    assert "chmod a+r /sys/class/powercap/*/energy_uj" in reason

    command = [WITH_SYS_CLASS, sys_class, *as_nobody(TACHO, "metrics", "-v")]
    listed = subprocess.run(command, check=True, cwd=place, stdout=subprocess.PIPE, text=True).stdout
    assert "only root may read the energy counters" in " ".join(listed.split())
    command = [WITH_SYS_CLASS, sys_class, *as_nobody(TACHO, "doctor", "--json", "--no-cost")]
    doctor = subprocess.run(command, cwd=place, stdout=subprocess.PIPE, text=True).stdout
    found = [entry for entry in json.loads(doctor) if entry["metric"] == "energy.used"]
    assert [entry["state"] for entry in found] == ["denied"]
    assert "chmod a+r /sys/class/powercap/*/energy_uj" in found[0]["remedy"]


@pytest.mark.parametrize("film, joules", [("rapl-wrap", 6 * 220), ("rapl-reset", 591)])
def test_films_of_counters(tmp_path, film, joules):
    """Ranges that are passed and counters that start anew; core-0 is part of package-0."""
    recording = tmp_path / "film.tacho"
    done = run("debug", "play", FILMS / f"{film}.txt", recording, "1s", 100)
    assert done.returncode == 0, done.stderr
    energy = show(recording)["energy"]
    assert energy["node_joules"] == pytest.approx(joules)
    assert energy["source"] == "rapl: package-0, dram-0, package-1, dram-1"


def test_frequencies_of_this_machine(tmp_path):
    """Each CPU that is online has a frequency, from whatever source there is."""
    listed = json.loads(run("metrics", "--json").stdout)
    here = [m for s in listed["collectors"] if s["name"] == "frequency" for m in s["metrics"] if m["name"] == "freq.current"]
    if here[0].get("available") is False:
        pytest.skip(f"no frequency here: {here[0]}")
    done = record(["sleep", "0.1"], "-q", output=tmp_path / "run.tacho")
    assert done.returncode == 0, done.stderr
    values = by_instance("freq.current", tmp_path / "run.tacho")
    online = Path("/sys/devices/system/cpu/online").read_text()
    cpus = set()
    for part in online.strip().split(","):
        first, _, last = part.partition("-")
        cpus |= {f"cpu{n}" for n in range(int(first), int(last or first) + 1)}
    assert set(values) == cpus
    assert all(1e6 < value < 1e11 for cpu in values.values() for value in cpu)
