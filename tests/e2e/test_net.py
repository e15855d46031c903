"""Traffic: real interfaces in real network namespaces, compared with the interfaces' own counters, and films."""

import os
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from recorder import PATIENCE_S, TACHO, dump, need_mounts, run, show, state, until

FILMS = Path(__file__).resolve().parent.parent / "films"
PAYLOAD = 3_000_000


def need(*tools):
    """Namespaces are made by root with iproute2 and util-linux."""
    if os.geteuid() != 0:
        pytest.skip("not root: network namespaces cannot be made")
    for tool in tools:
        if not shutil.which(tool):
            pytest.skip(f"{tool} is not installed")
    done = subprocess.run(["unshare", "--net", "true"], stderr=subprocess.PIPE)
    if done.returncode:
        pytest.skip(f"network namespaces cannot be made here: {done.stderr.decode(errors='replace').strip()}")


class Namespace:
    """A network namespace that lives as long as the process that holds it."""

    def __init__(self):
        self.holder = subprocess.Popen(["unshare", "--net", "sleep", "infinity"])
        own = os.readlink("/proc/self/ns/net")
        until(lambda: os.readlink(f"/proc/{self.holder.pid}/ns/net") != own, "the namespace is there")
        # Nothing but what the tests send.
        self.run("sh", "-c", "echo 1 >/proc/sys/net/ipv6/conf/default/disable_ipv6; ip link set lo up")

    def enter(self, *words):
        return ["nsenter", "-t", str(self.holder.pid), "-n", *map(str, words)]

    def run(self, *words):
        return subprocess.run(self.enter(*words), check=True, stdout=subprocess.PIPE).stdout.decode()

    def counters(self):
        """Received and sent bytes and packets by interface."""
        lines = self.run("cat", "/proc/net/dev").splitlines()[2:]
        return {name.strip(): numbers_of(rest) for name, rest in (line.split(":") for line in lines)}

    def close(self):
        self.holder.kill()
        self.holder.wait()


def numbers_of(words):
    words = list(map(int, words.split()))
    return {"rx_bytes": words[0], "rx_packets": words[1], "tx_bytes": words[8], "tx_packets": words[9]}


@pytest.fixture
def pair():
    """Two namespaces with a wire between them: `eth0` in each, 10.77.0.1 and 10.77.0.2."""
    need("ip", "nsenter", "unshare")
    here, there = Namespace(), Namespace()
    try:
        wire(here, there, "eth0", "10.77.0")
        yield here, there
    finally:
        here.close()
        there.close()


def wire(here, there, name, network):
    done = subprocess.run(
        here.enter("ip", "link", "add", name, "type", "veth", "peer", "name", name, "netns", there.holder.pid),
        stderr=subprocess.PIPE,
    )
    if done.returncode:
        pytest.skip(f"this kernel makes no veth: {done.stderr.decode(errors='replace').strip()}")
    for number, side in enumerate((here, there), 1):
        side.run("ip", "address", "add", f"{network}.{number}/24", "dev", name)
        side.run("ip", "link", "set", name, "up")


JOB = textwrap.dedent(
    """
    import json, os, re, socket, subprocess, sys, threading, time

    def recorder_has(path):
        fds = f"/proc/{os.getppid()}/fd"
        for fd in os.listdir(fds):
            try:
                if re.fullmatch(path, os.readlink(f"{fds}/{fd}")):
                    return True
            except OSError:
                pass
        return False

    def wait(condition):
        deadline = time.monotonic() + 60
        while not condition():
            if time.monotonic() > deadline:
                sys.exit("never happened")
            time.sleep(0.005)

    def recorder_rests():
        return open(f"/proc/{os.getppid()}/stat").read().rpartition(")")[2].split()[0] == "S"

    def watched():
        # The recorder reads our namespace, and its tick is over: what comes now is counted.
        wait(lambda: recorder_has(f"/proc/{os.getpid()}/net/dev"))
        wait(recorder_rests)

    def ticked():
        # A tick was begun and ended.
        def taken():
            words = [os.environ["TACHO"], "show", "--json", os.environ["TACHO_RECORDING"]]
            return json.loads(subprocess.run(words, stdout=subprocess.PIPE, check=True).stdout)["ticks"]["taken"]
        start = taken()
        wait(lambda: taken() >= start + 2)

    def counters():
        print(open("/proc/net/dev").read().replace("\\n", ";"), flush=True)

    def send(address, amount):
        with socket.create_connection((address, 7777)) as s:
            s.sendall(b"x" * amount)
            s.shutdown(socket.SHUT_WR)
            assert s.recv(100) == b"thanks"

    def to_myself(amount):
        with socket.create_server(("127.0.0.1", 0)) as server:
            def take():
                with server.accept()[0] as s:
                    while s.recv(1 << 16):
                        pass
            thread = threading.Thread(target=take)
            thread.start()
            with socket.create_connection(server.getsockname()) as s:
                s.sendall(b"y" * amount)
            thread.join()
    """
)

SERVER = textwrap.dedent(
    """
    import socket
    with socket.create_server(("0.0.0.0", 7777)) as server:
        print("ready", flush=True)
        while True:
            with server.accept()[0] as s:
                while s.recv(1 << 16):
                    pass
                s.sendall(b"thanks")
    """
)


def record_there(pair, tmp_path, job):
    """Records the job in the first namespace, beside a server in the second. Returns the summary, and what the job
    printed of the interfaces' counters."""
    here, there = pair
    server = subprocess.Popen(there.enter(sys.executable, "-c", SERVER), stdout=subprocess.PIPE)
    try:
        assert server.stdout.readline() == b"ready\n"
        recording = tmp_path / "net.tacho"
        command = here.enter(sys.executable, "-c", JOB + textwrap.dedent(job))
        done = subprocess.run(
            [TACHO, "run", "-o", recording, "-i", "50ms", "--flush", "50ms", "--", *command], stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        assert done.returncode == 0, done.stderr.decode(errors="replace")
    finally:
        server.kill()
        server.wait()
    printed = []
    for line in done.stdout.decode().splitlines():
        entries = (entry.split(":") for entry in line.split(";")[2:] if entry)
        printed.append({name.strip(): numbers_of(rest) for name, rest in entries})
    return recording, printed


def last_value(recording, metric):
    """Of a metric of the node."""
    done = run("show", "--series", metric, "--csv", recording)
    assert done.returncode == 0, done.stderr
    cells = [line.split(",")[-1] for line in done.stdout.decode().splitlines()[1:]]
    return [float(cell) for cell in cells if cell][-1]


def instances(recording):
    """Names of the interfaces with the reason why they are not added up, if any."""
    dumped = dump(recording)
    schema = next(record for record in dumped if record["type"] == "schema")
    number = [s["name"] for s in schema["sets"]].index("net")
    pairs = [dict(record["pairs"]) for record in dumped if record["type"] == "instance" and record["set"] == number]
    return {pair["name"]: pair.get("apart") for pair in pairs}


def assert_between(network, before, after, later):
    """What was recorded is what the interfaces counted while the job sent. What is under way when the job looks (the last
    acknowledgement, an ARP) may or may not be in."""
    for key in ("rx_bytes", "tx_bytes", "rx_packets", "tx_packets"):
        assert after[key] - before[key] <= network[key] <= later[key] - before[key], key


def test_traffic_in_the_jobs_own_namespace(pair, tmp_path):
    recording, (before, after) = record_there(
        pair, tmp_path, f"watched(); counters(); to_myself({PAYLOAD}); send('10.77.0.2', {PAYLOAD}); counters()"
    )
    network = show(recording)["network"]
    assert after["lo"]["tx_bytes"] - before["lo"]["tx_bytes"] >= PAYLOAD, "the loopback was used"
    assert network["tx_bytes"] >= PAYLOAD
    assert network["tx_bytes"] < 2 * PAYLOAD, "and is not in the total"
    assert_between(network, before["eth0"], after["eth0"], pair[0].counters()["eth0"])
    names = instances(recording)
    assert names["eth0"] is None
    assert names["lo"].startswith("loopback")


def test_datagrams_and_segments_of_the_namespace(pair, tmp_path):
    recording, _ = record_there(
        pair,
        tmp_path,
        """
        wait(lambda: recorder_has(f"/proc/{os.getpid()}/net/snmp"))
        watched()
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
            for i in range(777):
                s.sendto(b"z" * 100, ("10.77.0.2", 9))
        send("10.77.0.2", 100000)
        """,
    )
    # Counters of a new namespace start from zero.
    assert last_value(recording, "udp.tx.datagrams") == 777
    assert last_value(recording, "tcp.opened") == 1
    assert 3 <= last_value(recording, "tcp.tx.segments") < 1000


def test_an_interface_is_renamed_while_it_counts(pair, tmp_path):
    recording, (before, after) = record_there(
        pair,
        tmp_path,
        f"""
        watched()
        counters()
        send("10.77.0.2", {PAYLOAD})
        subprocess.run(["ip", "link", "set", "eth0", "down"], check=True)
        subprocess.run(["ip", "link", "set", "eth0", "name", "lan0"], check=True)
        subprocess.run(["ip", "link", "set", "lan0", "up"], check=True)
        send("10.77.0.2", {PAYLOAD})
        counters()
        """,
    )
    network = show(recording)["network"]
    assert network["tx_bytes"] >= 2 * PAYLOAD
    assert_between(network, before["eth0"], after["lan0"], pair[0].counters()["lan0"])


def test_an_interface_comes_and_one_goes(pair, tmp_path):
    here, there = pair
    wire(here, there, "eth1", "10.78.0")
    recording, (before, after) = record_there(
        pair,
        tmp_path,
        f"""
        watched()
        counters()
        send("10.77.0.2", {PAYLOAD})
        send("10.78.0.2", {PAYLOAD})
        counters()
        ticked()
        subprocess.run(["ip", "link", "del", "eth1"], check=True)
        subprocess.run("ip link add new0 type veth peer name new1".split(), check=True)
        ticked()
        """,
    )
    sent = sum(after[name]["tx_bytes"] - before[name]["tx_bytes"] for name in ("eth0", "eth1"))
    assert sent >= 2 * PAYLOAD
    assert sent <= show(recording)["network"]["tx_bytes"] < sent + PAYLOAD / 10
    assert set(instances(recording)) >= {"lo", "eth0", "eth1", "new0", "new1"}


def test_the_recorder_inside_the_namespace(pair, tmp_path):
    """All of it in a namespace without hardware, whose sysfs is mounted: the bridge is not added to its port."""
    here, there = pair
    for words in (
        "ip link add br0 type bridge",
        "ip address del 10.77.0.1/24 dev eth0",
        "ip address add 10.77.0.1/24 dev br0",
        "ip link set eth0 master br0",
        "ip link set br0 up",
    ):
        try:
            here.run(*words.split())
        except subprocess.CalledProcessError:
            pytest.skip(f"this kernel cannot: {words}")
    need_mounts()
    server = subprocess.Popen(there.enter(sys.executable, "-c", SERVER), stdout=subprocess.PIPE)
    try:
        assert server.stdout.readline() == b"ready\n"
        recording = tmp_path / "net.tacho"
        job = JOB + f"wait(recorder_rests); send('10.77.0.2', {PAYLOAD})"
        inside = ["unshare", "-m", "sh", "-c", 'mount -t sysfs sysfs /sys && exec "$@"', "sh"]
        # Asked for by name it is opened at once: the job may be short.
        command = [TACHO, "run", "-o", recording, "-i", "50ms", "-m", "+net", "--", sys.executable, "-c", job]
        done = subprocess.run(here.enter(*inside, *command), stderr=subprocess.PIPE)
        assert done.returncode == 0, done.stderr.decode(errors="replace")
    finally:
        server.kill()
        server.wait()
    names = instances(recording)
    assert names["eth0"] is None
    assert "made of other" in names["br0"]
    assert PAYLOAD <= show(recording)["network"]["tx_bytes"] < 2 * PAYLOAD


FAMILY = textwrap.dedent(
    """
    def file_exists(name):
        return lambda: os.path.exists(os.path.join(sys.argv[1], name))

    if os.fork() == 0:
        wait(file_exists("go"))
        send("10.77.0.2", int(sys.argv[2]))
        wait(file_exists("over"))
        os._exit(0)
    print("here", flush=True)
    wait(file_exists("end"))
    """
)


def test_the_process_that_led_to_the_namespace_ends(pair, tmp_path):
    """Files that are open answer for their namespace when the process by which it was found is gone."""
    here, there = pair
    server = subprocess.Popen(there.enter(sys.executable, "-c", SERVER), stdout=subprocess.PIPE)
    words = [sys.executable, "-c", JOB + FAMILY, tmp_path, PAYLOAD]
    process = subprocess.Popen(here.enter(*words), stdout=subprocess.PIPE)
    recording = tmp_path / "net.tacho"
    try:
        assert server.stdout.readline() == b"ready\n"
        assert process.stdout.readline() == b"here\n"
        tacho = subprocess.Popen([TACHO, "attach", "-o", recording, "-i", "50ms", str(process.pid)])
        until(lambda: reads(tacho.pid, f"/proc/{process.pid}/net/dev"), "the recorder reads the namespace")
        until(lambda: state(tacho.pid) == "S", "its tick is over")
        before = here.counters()["eth0"]
        (tmp_path / "end").touch()
        process.wait()
        (tmp_path / "go").touch()
        until(lambda: here.counters()["eth0"]["tx_bytes"] - before["tx_bytes"] >= PAYLOAD, "all is sent")
        after = here.counters()["eth0"]
        (tmp_path / "over").touch()
        assert tacho.wait(PATIENCE_S) == 0
    finally:
        for each in (server, process):
            each.kill()
            each.wait()
    assert_between(show(recording)["network"], before, after, here.counters()["eth0"])


def reads(pid, path):
    """Has the process this file open?"""
    for fd in Path(f"/proc/{pid}/fd").iterdir():
        try:
            if os.readlink(fd) == path:
                return True
        except OSError:
            pass
    return False


def play(film, tmp_path):
    recording = tmp_path / "film.tacho"
    done = run("debug", "play", FILMS / film, recording, "1s", 100)
    assert done.returncode == 0, done.stderr
    return recording


def test_the_film_of_renamed_interfaces(tmp_path):
    """Nothing is lost and nothing counted twice through renaming, resets, a wrap, a gap and a line that stood twice."""
    network = show(play("net-renamed.txt", tmp_path))["network"]
    eth0, lan0, exchanged = 500_000, 1_700_200 - 1_500_000, 100
    eth1, eth2, named_lan0 = 200 + 500, 200, 100
    assert network["rx_bytes"] == eth0 + lan0 + exchanged + eth1 + eth2 + named_lan0


def test_the_film_of_ports(tmp_path):
    """Octets, not units; a full counter is silence with a reason, not a number."""
    recording = play("ib-ports.txt", tmp_path)
    first, second, old = 2000, 100, 294
    reloaded, back = 10 + 10, 10
    assert show(recording)["interconnect"]["rx_bytes"] == 4 * (first + second + old + reloaded + back)
    said = [dict(record["pairs"]) for record in dump(recording) if record.get("kind") == "unavailable"]
    assert [pairs["why"] for pairs in said if pairs["metric"] == "ib.rx.bytes"] == ["port mlx4_0/1: its 32-bit counter is full"]
