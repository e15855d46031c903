"""Disks and file systems on the real machine: what is recorded is what the kernel's own files say."""

import csv
import io
import os
import shutil
import subprocess
from contextlib import contextmanager
from pathlib import Path

import pytest

from recorder import dump, run, show, start, until

FILMS = Path(__file__).resolve().parent.parent / "films"
MIB = 1 << 20

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root may mount and set up loop devices")


def series(recording, metrics, *options):
    """Lines of a series as dictionaries; none while there is nothing to read yet."""
    done = run("show", "--series", metrics, "--csv", *options, recording)
    return list(csv.DictReader(io.StringIO(done.stdout.decode()))) if done.returncode == 0 else []


def of_instance(recording, metric, instance):
    """Values of one instance, in the order of time."""
    lines = series(recording, metric, "--per", "instance")
    return [int(float(line[metric])) for line in lines if line["instance"] == instance and line[metric] not in ("", "-")]


def instances(recording):
    """What was said of each instance, by its name."""
    found = [dict(record["pairs"]) for record in dump(recording) if record["type"] == "instance"]
    return {pairs["name"]: pairs for pairs in found}


def disk_of(path):
    """The whole disk that a path lies on, or None."""
    dev = os.stat(path).st_dev
    device = Path(f"/sys/dev/block/{os.major(dev)}:{os.minor(dev)}").resolve()
    if not device.exists():
        return None
    return device.parent.name if (device / "partition").exists() else device.name


def counters(disk):
    """Bytes read and written, as /proc/diskstats has them."""
    for line in Path("/proc/diskstats").read_text().splitlines():
        words = line.split()
        if words[2] == disk:
            return int(words[5]) * 512, int(words[9]) * 512
    return None


@contextmanager
def recorded(output, script, *words):
    """A shell job under the recorder, told to go on by lines on its standard input."""
    with start("run", "-o", output, "-q", "--", "sh", "-c", script, "job", *map(str, words),
               stdin=subprocess.PIPE) as tacho:
        def go():
            tacho.stdin.write(b"go\n")
            tacho.stdin.flush()

        try:
            yield go
            tacho.stdin.close()
            assert tacho.wait() == 0
        finally:
            if tacho.poll() is None:
                tacho.kill()


def test_a_disk_is_counted_as_the_kernel_counts_it(tmp_path):
    disk = disk_of(tmp_path)
    if disk is None or counters(disk) is None:
        pytest.skip("the folder for tests is not on a disk")
    output = tmp_path / "r.tacho"
    before = counters(disk)
    script = 'read x; dd if=/dev/zero of="$1" bs=1M count=24 conv=fsync 2>/dev/null'
    with recorded(output, script, tmp_path / "written") as go:
        until(lambda: of_instance(output, "disk.write.bytes", disk), "the first tick is recorded")
        go()
    after = counters(disk)
    for column, metric in enumerate(("disk.read.bytes", "disk.write.bytes")):
        values = of_instance(output, metric, disk)
        assert before[column] <= values[0] <= values[-1] <= after[column]
    assert values[-1] - values[0] >= 24 * MIB
    if "apart" not in instances(output)[disk]:
        assert show(output)["disk"]["write_bytes"] >= 24 * MIB


@needs_root
def test_a_loop_device_stands_apart(tmp_path):
    if not shutil.which("losetup"):
        pytest.skip("there is no losetup")
    image = tmp_path / "image"
    image.write_bytes(bytes(8 * MIB))
    made = subprocess.run(["losetup", "--find", "--show", image], capture_output=True, text=True)
    if made.returncode:
        pytest.skip(f"no loop device can be made: {made.stderr.strip()}")
    device = made.stdout.strip()
    loop = Path(device).name
    try:
        output = tmp_path / "r.tacho"
        before = counters(loop)[0]
        with recorded(output, 'read x; dd if="$1" of=/dev/null bs=1M iflag=direct 2>/dev/null; sync', device) as go:
            until(lambda: series(output, "disk.read.bytes"), "the first tick is recorded")
            go()
        after = counters(loop)[0]
    finally:
        subprocess.run(["losetup", "--detach", device], check=True)
    values = of_instance(output, "disk.read.bytes", loop)
    assert values and before <= values[0] <= values[-1] <= after
    assert after >= before + 8 * MIB
    assert values[-1] >= before + 8 * MIB
    about = instances(output)
    assert "apart" in about[loop]
    each = series(output, "disk.read.bytes", "--per", "instance")
    last = each[-1]["time_s"]
    counted = [int(float(line["disk.read.bytes"])) for line in each
               if line["time_s"] == last and "apart" not in about[line["instance"]]]
    total = series(output, "disk.read.bytes")[-1]
    assert float(total["time_s"]) == float(last)
    assert int(float(total["disk.read.bytes"])) == sum(counted)


@contextmanager
def mounted(point, *options):
    point.mkdir()
    done = subprocess.run(["mount", "-t", "tmpfs", *options, "tacho-test", point], capture_output=True, text=True)
    if done.returncode:
        pytest.skip(f"nothing can be mounted: {done.stderr.strip()}")
    try:
        yield point
    finally:
        subprocess.run(["umount", point], check=True)


@needs_root
def test_the_file_system_a_job_writes_to(tmp_path):
    """Nothing but an open file says that the job uses it; what is written is what is no longer available."""
    with mounted(tmp_path / "odd name", "-o", "size=64m") as point:
        output = tmp_path / "r.tacho"
        script = 'exec 3>"$1/file"; read x; head -c 16777216 /dev/zero >&3; read y'
        with recorded(output, script, point) as go:
            def available():
                return of_instance(output, "fs.available", str(point))

            until(available, "the file system is found")
            go()
            until(lambda: available()[-1] < available()[0], "its space is read again")
            # The reading may have fallen into the writing; the one after it has not.
            until(lambda: available()[-1] == available()[0] - 16 * MIB, "all of it is written")
            state = os.statvfs(point)
            assert available()[-1] == state.f_bavail * state.f_frsize
            assert of_instance(output, "fs.total", str(point))[-1] == 64 * MIB
            assert of_instance(output, "fs.inodes", str(point))[-1] == state.f_files
            go()
    about = instances(output)[str(point)]
    assert about["type"] == "tmpfs" and about["device"] == "tacho-test" and "inside" not in about


@needs_root
def test_the_file_system_of_a_container(tmp_path):
    """A mount that only a member of the job sees."""
    point = tmp_path / "inside"
    point.mkdir()
    inner = 'mount -t tmpfs -o size=32m tacho-test "$1" && exec 3>"$1/file" && head -c 4194304 /dev/zero >&3 && read x'
    if subprocess.run(["unshare", "-m", "true"], capture_output=True).returncode:
        pytest.skip("no mount namespace can be made")
    output = tmp_path / "r.tacho"
    with recorded(output, f"unshare -m sh -c '{inner}' sh \"$1\"; true", point) as go:
        until(lambda: 28 * MIB in of_instance(output, "fs.available", str(point)), "the mount is found")
        go()
    assert of_instance(output, "fs.total", str(point))[-1] == 32 * MIB
    assert "inside" in instances(output)[str(point)]
    assert str(point) not in Path("/proc/self/mountinfo").read_text()


def test_a_disk_is_pulled_and_another_has_its_name(tmp_path):
    """What lies on other disks is not added to them; two disks of one name are two instances."""
    output = tmp_path / "film.tacho"
    done = run("debug", "play", FILMS / "disk-pulled.txt", output, "1s", 100)
    assert done.returncode == 0, done.stderr
    total = {round(float(line["time_s"])): line["disk.read.bytes"] for line in series(output, "disk.read.bytes")}
    assert float(total[0]) == (8000 + 8000) * 512
    assert float(total[1]) == 8080 * 512
    assert float(total[2]) == (8160 + 56) * 512
    assert float(total[5]) == (104 + 64) * 512
    rate = {round(float(line["time_s"])): line["disk.read.rate.per_second"] for line in series(output, "disk.read.rate")}
    assert float(rate[1]) == pytest.approx(80 * 512)
    assert float(rate[2]) == pytest.approx(80 * 512)
    assert show(output)["disk"]["read_bytes"] == (80 + 80 + 80 + 8) * 512, "neither md0, loop0 nor the reset"
    busy = {round(float(line["time_s"])): line["disk.busy_ratio"] for line in series(output, "disk.busy_ratio")}
    assert float(busy[1]) == pytest.approx(0.002)


def test_file_systems_and_clients_of_films(tmp_path):
    output = tmp_path / "film.tacho"
    done = run("debug", "play", FILMS / "storage-client.txt", output, "1s", 100)
    assert done.returncode == 0, done.stderr
    assert of_instance(output, "nfs.read.bytes", "/home") == [1000] * 5 + [17, 17]
    assert of_instance(output, "lustre.read.bytes", "work") == [40960] * 5
    about = instances(output)
    assert about["/home"]["device"] == "server:/home" and {"work", "late"} <= set(about)
