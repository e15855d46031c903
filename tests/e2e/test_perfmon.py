"""The JSON of SKA's perfmon. Its lists are read here as its own code reads them (a row for each host and time stamp, made of
what stands at the same place of all lists), judged by its schema, and every value is compared with `tacho show --series`."""

import json
import math
import os
import shutil
from collections import defaultdict
from pathlib import Path

import pytest
from exported import ROOT, columns_of, damaged, export, need_export, reader, recordings, same  # noqa: F401 (a fixture)
from recorder import children, run, start, until
from test_gpu import FAKES, FAST, MIB, Driver, end

# Names of lists, what `tacho show` calls it, and how many of theirs one of ours is. What is added stands together.
CPU = {
    "cpu_time": ("tree.cpu", 1),
    "cpu_percent": ("tree.cores", 100),
    "cpu_percent_sys": ("cpu.busy", 100),
    "memory_percent": ("tree.rss.of_node", 100),
    "memory_bw": ("membw.read_rate", 1),
    "num_threads": ("proc.threads", 1),
    "num_fds": ("proc.fds", 1),
    "memory_info.rss": ("proc.mem.rss", 1),
    "memory_info.vms": ("proc.mem.vms", 1),
    "memory_info.shared": ("proc.mem.shared", 1),
    "memory_full_info.uss": ("proc.mem.uss_now", 1),
    "memory_full_info.swap": ("proc.mem.swap", 1),
    "io_counters.read_count": ("proc.io.read_calls tree.gone.read_calls", 1),
    "io_counters.write_count": ("proc.io.write_calls tree.gone.write_calls", 1),
    "io_counters.read_bytes": ("proc.io.read_bytes tree.gone.read_bytes", 1),
    "io_counters.write_bytes": ("proc.io.write_bytes tree.gone.write_bytes", 1),
    "net_io_counters.bytes_sent": ("net.tx.bytes", 1),
    "net_io_counters.bytes_recv": ("net.rx.bytes", 1),
    "net_io_counters.packets_sent": ("net.tx.packets", 1),
    "net_io_counters.packets_recv": ("net.rx.packets", 1),
    "ib_io_counters.port_xmit_data": ("ib.tx.bytes", 1),
    "ib_io_counters.port_xmit_packets": ("ib.tx.packets", 1),
    "ib_io_counters.port_rcv_data": ("ib.rx.bytes", 1),
    "ib_io_counters.port_rcv_packets": ("ib.rx.packets", 1),
}
RAPL = {f"rapl_powercap.{domain}-{n}": ("energy.used", 1e6) for domain in ("package", "core", "uncore", "dram") for n in range(8)}
REAL = {"cpu_time", "cpu_percent", "cpu_percent_sys", "memory_percent", "memory_bw"}
EVENTS = {
    "hardware_events.cycles": "perf.cycles",
    "hardware_events.instructions": "perf.instructions",
    "hardware_events.cache-misses": "perf.cache_misses",
    "hardware_events.cache-references": "perf.cache_references",
    "hardware_events.branches": "perf.branches",
    "hardware_events.branch-misses": "perf.branch_misses",
    "software_events.context-switches": "perf.context_switches",
    "software_events.cpu-migrations": "perf.migrations",
}
DERIVED = {
    "L2.derv_l2_bandwidth": ("perf.l2_bandwidth", 1e-6),
    "L2.derv_l2_load_bandwidth": ("perf.l2_load_bandwidth", 1e-6),
    "L2cache.derv_l2_miss_ratio": ("perf.l2_miss_ratio", 1),
    "L3.derv_l3_bandwidth": ("perf.l3_bandwidth", 1e-6),
    "FLOPS_SP.derv_flops_sp": ("perf.flops_sp", 1e-6),
    "FLOPS_DP.derv_flops_dp": ("perf.flops_dp", 1e-6),
}
GROUPS = ["hardware_events", "software_events", "L2", "L2cache", "L3", "L3cache", "FLOPS_SP", "FLOPS_DP"]
GPU = {
    "clock_info.graphics": ("gpu.clock.graphics", 1e-6),
    "clock_info.sm": ("gpu.clock.sm", 1e-6),
    "clock_info.memory": ("gpu.clock.memory", 1e-6),
    "ecc_errors.sp": ("gpu.ecc.corrected", 1),
    "ecc_errors.dp": ("gpu.ecc.uncorrected", 1),
    "memory_used.gpu_memory": ("gpu.memory.used", 1),
    "memory_used.bar1_memory": ("gpu.bar1.used", 1),
    "utilization_rates.gpu": ("gpu.util", 100),
    "utilization_rates.memory": ("gpu.mem_util", 100),
    "encoder_util": ("gpu.encoder", 100),
    "decoder_util": ("gpu.decoder", 100),
    "temperature": ("gpu.temperature", 1),
    "fan_speed": ("gpu.fan", 100),
    "num_procs": ("gpu.processes", 1),
    "power_usage": ("gpu.power", 1000),
    "violation": ("gpu.throttle.power gpu.throttle.thermal", 1e9),
    "pci_thgpt.send": ("gpu.pcie.tx", 1e-3),
    "pci_thgpt.recv": ("gpu.pcie.rx", 1e-3),
}


# ---- recordings that the other formats do not need ----


def film_of_counters(path, growth=10**9, processor=()):
    """A processor that counts everything, more with each second; of its events some are in four groups. The film's own
    processor is replaced by another (vendor, family, model)."""
    text = (ROOT / "tests" / "machines" / "counters.txt").read_text()
    for key, was, becomes in zip(("vendor_id", "cpu family", "model"), ("GenuineIntel", "6", "85"), processor):
        assert text.count(f"{key}\t: {was}\n") + text.count(f"{key}\t\t: {was}\n") == 1, key
        text = text.replace(f"{key}\t: {was}\n", f"{key}\t: {becomes}\n").replace(f"{key}\t\t: {was}\n", f"{key}\t\t: {becomes}\n")
    text = "\n".join(line for line in text.splitlines() if not line.startswith("counter"))
    text += "\nfile proc/self/stat\n|1 (tacho) R 0 1 1 0 -1 4194304 0 0 0 0 0 0 0 0 20 0 1 0 50 0 0\n"
    task = [(kind, config) for kind, configs in ((0, (0, 1, 2, 3, 4, 5)), (1, (1, 2, 3, 4)), (4, ("*",))) for config in configs]
    for second in range(5):
        text += f"frame {second}\n" if second else ""
        for n, (kind, config) in enumerate(task):
            text += f"counter {kind} {config} * -1 {(n + 1) * growth * second} {second * 10**9} {second * 10**9}\n"
        for kind in (20, 21):
            text += f"counter {kind} * -1 0 {second * 10**6} {second * 10**9} {second * 10**9}\n"
    path.write_text(text)
    return path


@pytest.fixture(scope="module")
def counted(tmp_path_factory):
    folder = tmp_path_factory.mktemp("counted")
    done = run("debug", "play", film_of_counters(folder / "film.txt"), folder / "counted.tacho", "1s",
               "+perf,FLOPS_SP,FLOPS_DP,L2,L3,MEM", 700)
    assert done.returncode == 0, done.stderr
    return folder / "counted.tacho"


NVML = """\
count 2
0.name NVIDIA FAKE-100
0.uuid GPU-00000000
0.util 40
0.memutil 10
0.mem_total 42949672960
0.mem_used 1073741824
0.bar1_total 268435456
0.bar1_used 3145728
0.power 150250
0.temp 55
0.clock0 1395
0.clock1 1410
0.clock2 1215
0.fan 31
0.enc 7
0.dec 3
0.ecc_0 12
0.ecc_1 2
0.pcie_tx 101000
0.pcie_rx 202000
0.viol_0 3000000000
0.viol_1 500000000
1.name NVIDIA FAKE-200
1.uuid GPU-11111111
1.util 0
1.memutil 0
1.mem_total 85899345920
1.mem_used 0
1.power 60000
1.temp 30
"""
NVML_SAYS = {"clock_info.graphics": 1395, "clock_info.sm": 1410, "clock_info.memory": 1215, "ecc_errors.sp": 12, "ecc_errors.dp": 2,
             "memory_used.gpu_memory": 1 << 30, "memory_used.bar1_memory": 3 * MIB, "utilization_rates.gpu": 40,
             "utilization_rates.memory": 10, "encoder_util": 7, "decoder_util": 3, "temperature": 55, "fan_speed": 31,
             "num_procs": 1, "power_usage": 150250, "violation": 3500000000, "pci_thgpt.send": 101000, "pci_thgpt.recv": 202000}


def gpu_ticks(recording):
    """Rows of GPU 0 in which all that the driver says has come, as far as there is a recording."""
    done = run("export", "--to", "jsonl", "-d", "gpu", "-o", "-", recording)
    rows = [json.loads(line) for line in done.stdout.splitlines()] if done.returncode == 0 else []
    return [row for row in rows if row["instance"] == "nvidia-0" and row.get("gpu.pcie.rx") is not None and row["gpu.processes"]]


@pytest.fixture(scope="module")
def driven(tmp_path_factory):
    """A job with two GPUs, as a fake of NVIDIA's library has them."""
    if not (FAKES / "libnvidia-ml.so.1").exists():
        pytest.skip(f"{FAKES} is not built")
    folder = tmp_path_factory.mktemp("driven")
    driver = Driver(folder, NVML)
    recording = folder / "driven.tacho"
    tacho = start("run", "-o", recording, *FAST, "--", "sleep", "1000", env=driver.environment())
    try:
        job = until(lambda: children(tacho.pid), "the job runs")[0]
        driver.say(NVML + f"0.proc {job} {100 * MIB} 30 5 0 0\n")
        need_export(run("export", "--formats"))
        until(lambda: len(gpu_ticks(recording)) >= 2, "all is known of the GPU")
    finally:
        end(tacho)
    return recording


# ---- as perfmon reads ----


def load(folder, name):
    """One of the files; names twice in an object would hide each other."""

    def once(pairs):
        assert len({key for key, _ in pairs}) == len(pairs), [key for key, _ in pairs]
        return dict(pairs)

    return json.loads((folder / f"{name}.json").read_text(), object_pairs_hook=once, parse_constant=pytest.fail)


def lists_of(host):
    """Name or group.name -> list."""
    out = {}
    for name, value in host.items():
        if name in ("parent_proc_md", "child_proc_md"):
            continue
        for inner, values in value.items() if isinstance(value, dict) else [(None, value)]:
            assert isinstance(values, list), name
            out[name if inner is None else f"{name}.{inner}"] = values
    return out


def as_rows(content):
    """What its data frame is made of: a row for each host and time stamp, columns in the order in which they are met."""
    header, rows = ["Host"], []
    for host in content["host_names"]:
        lists = lists_of(content[host])
        stamps = lists["time_stamps"]
        for name in lists:
            if name not in header:
                header.append(name)
        for at in range(len(stamps)):
            rows.append([host, *(values[at] for values in lists.values())])
    return header, rows


def check_schema(content, known, whole):
    """Types, lengths and names, as its schema and its readers have them."""
    assert list(content)[:2] == ["host_names", "sampling_frequency"]
    assert set(content) == {"host_names", "sampling_frequency", *content["host_names"]}
    assert content["sampling_frequency"] is None or content["sampling_frequency"] > 0
    names = None
    for host in content["host_names"]:
        lists = lists_of(content[host])
        assert set(lists) - {"time_stamps"} <= set(known), set(lists) - set(known)
        names = names or list(lists)
        assert list(lists) == names, "its reader takes values by their place: all hosts have the same lists"
        for name, values in lists.items():
            assert len(values) == len(lists["time_stamps"]), name
            kinds = (int,) if name in whole else (int, float)
            assert all(value is None or type(value) in kinds for value in values), (name, values)
        assert all(type(stamp) in (int, float) for stamp in lists["time_stamps"])
    for name in set(names or ()) - {"time_stamps"}:
        assert any(value is not None for host in content["host_names"] for value in lists_of(content[host])[name]), \
            f"nobody knows {name}: it should not be there"
    header, rows = as_rows(content)
    assert all(len(row) == len(header) for row in rows)
    return header, rows


def check_processes(host):
    """Descriptions of the job's own processes by PID, and of all others as texts."""
    assert isinstance(host["parent_proc_md"], dict) and isinstance(host["child_proc_md"], list)
    for pid, about in host["parent_proc_md"].items():
        assert about["pid"] == int(pid) and {"name", "exe", "cmdline"} <= set(about)
    assert all(isinstance(text, str) and text.startswith("pid=") for text in host["child_proc_md"])


def data_frame(folder, metric):
    """What perfmon's CreateDataFrame makes of a file, by the source in its documentation. A column for each name, in the order of
    its table of names, for which we take the first host's own (its cpu and GPU tables only give them titles), and for groups of
    counters the names in .perf_event_list.json. Lists are cut or filled to the time stamps. What a host lacks is passed over,
    with the rest of its group, and a name that is met again gets its values in the row, but no second title."""
    pandas = reader("pandas")
    content = load(folder, metric)
    if not content["host_names"]:
        return pandas.DataFrame()
    host = content[content["host_names"][0]]
    names = {name: name if isinstance(value, list) else {inner: inner for inner in value}
             for name, value in host.items() if name not in ("parent_proc_md", "child_proc_md")}
    if metric == "perf_metrics":
        events = json.loads((folder / ".perf_event_list.json").read_text())
        names = {"time_stamps": "time_stamps", **{group: {name: name for name in events[group]} for group in GROUPS}}
    titles, rows = ["Host"], []
    for name in content["host_names"]:
        host = content[name]
        own = [[name] for _ in host["time_stamps"]]

        def put(title, values, own=own):
            if title not in titles:
                titles.append(title)
            for at, row in enumerate(own):
                row.append(values[at] if at < len(values) else math.nan)

        for key, title in names.items():
            try:
                for inner, inner_title in title.items() if isinstance(title, dict) else ():
                    put(inner_title, host[key][inner])
                if not isinstance(title, dict):
                    put(title, host[key])
            except KeyError:
                pass
        rows += own
    return pandas.DataFrame(rows, columns=titles)


# ---- what show says ----


def metrics_of(recording):
    return {field["name"] for fields in columns_of(recording).values() for field in fields if "kind" in field}


def asked(recording, wanted, options):
    """Metrics of different instances are asked for one after the other."""
    done = run("show", "--json", "--series", ",".join(wanted), *options, recording)
    if done.returncode == 0:
        return json.loads(done.stdout)["recordings"]
    if len(wanted) == 1:
        return []
    middle = len(wanted) // 2
    return asked(recording, wanted[:middle], options) + asked(recording, wanted[middle:], options)


def said(recording, wanted, *options):
    """Host -> (time, instance) -> a dict of metrics, as `tacho show --series` has them; nodes may not have the same ones."""
    out = defaultdict(dict)
    for node in sorted(recording.iterdir()) if recording.is_dir() else [recording]:
        there = sorted(set(wanted) & metrics_of(node))
        for one in asked(node, there, options) if there else ():
            keys = one["columns"].index("instance") + 1 if "instance" in one["columns"] else 1
            for point in one["points"]:
                key = (point[0], point[2] if keys > 1 else None)
                out[one["host"]].setdefault(key, {}).update(zip(one["columns"][keys:], point[keys:]))
    return out


def value_of(row, metrics, factor, whole):
    """Of one tick; None where something is not known."""
    parts = [row.get(metric) for metric in metrics.split()]
    if None in parts:
        return None
    value = sum(part * factor for part in parts)
    return round(value) if whole and value is not None else value


def is_near(found, truth):
    if found is None or truth is None:
        return found is truth
    return found == truth or math.isclose(found, truth, rel_tol=1e-12)


def compare(lists, mapping, ticks, seen):
    for name, (metrics, factor) in mapping.items():
        truth = [value_of(row, metrics, factor, name not in REAL and "derv" not in name) for row in ticks]
        if name not in lists:
            assert all(value is None for value in truth) or name.startswith(("ib_", "net_", "memory_bw")), (name, truth)
            continue
        found = lists[name]
        assert len(found) == len(truth), name
        assert all(map(is_near, found, truth)), (name, found, truth)
        if any(value is not None for value in found):
            seen.add(name)


def hosts_of(content):
    """By the name that show has for them."""
    return {host: content[host] for host in content["host_names"]}


seen = set()  # lists that were compared, and had values
ran = set()  # recordings that they were of


def check(folder, recording):
    content = load(folder, "cpu_metrics")
    check_schema(content, {**CPU, **RAPL}, (set(CPU) | set(RAPL)) - REAL)
    truth = said(recording, [name for names, _ in CPU.values() for name in names.split()])
    meters = said(recording, ["energy.used"], "--per", "instance")
    assert set(hosts_of(content)) == set(truth)
    for host, values in hosts_of(content).items():
        check_processes(values)
        lists, ticks = lists_of(values), truth[host]
        stamps = lists["time_stamps"]
        assert [stamp - stamps[0] for stamp in stamps] == pytest.approx([at - min(ticks)[0] for at, _ in sorted(ticks)], abs=1e-5)
        compare(lists, CPU, [ticks[key] for key in sorted(ticks)], seen)
        for meter in {instance for _, instance in meters.get(host, {})}:
            compare(lists, {f"rapl_powercap.{meter}": RAPL[f"rapl_powercap.{meter}"]},
                    [meters[host].get((at, meter), {}) for at, _ in sorted(ticks)], seen)
    check_counters(folder, recording)
    check_gpus(folder, recording)
    ran.add(recording.stem)
    return content


def growth(levels):
    """Of a counter, tick by tick; not known at the first."""
    return [None if a is None or b is None else b - a for a, b in zip([None, *levels], levels)]


def check_counters(folder, recording):
    content = load(folder, "perf_metrics")
    events = {name for name in metrics_of(recording) if name.startswith("perf.") and not name.endswith((".rate", ".running"))}
    inner = {f"{group}.{event[len('perf.'):]}": event for group in GROUPS[2:] for event in events}
    names = {**EVENTS, **inner}
    check_schema(content, {**names, **DERIVED}, set(names))
    truth = said(recording, [*names.values(), *(metric for metric, _ in DERIVED.values())])
    for host, values in hosts_of(content).items():
        assert [name for name, value in values.items() if isinstance(value, dict)] == GROUPS
        ticks = [truth[host][key] for key in sorted(truth[host])]
        lists = lists_of(values)
        compare(lists, DERIVED, ticks, seen)
        for name, event in names.items():
            expected = growth([row.get(event) for row in ticks])
            if name in lists:
                assert all(map(same, lists[name], expected)), (name, lists[name], expected)
                seen.add(name)
            elif name in EVENTS:
                assert all(value is None for value in expected), (name, expected)


def check_gpus(folder, recording):
    truth = said(recording, [name for names, _ in GPU.values() for name in names.split()], "--per", "instance")
    gpus = {(host, instance) for host, ticks in truth.items() for (_, instance), row in ticks.items()
            if instance.startswith("nvidia-") and any(value is not None for value in row.values())}
    assert (folder / "nv_gpu_metrics.json").exists() == bool(gpus)
    if not gpus:
        return
    content = load(folder, "nv_gpu_metrics")
    check_schema(content, GPU, set(GPU))
    assert set(content["host_names"]) == {f"gpu-{instance[len('nvidia-'):]}.{host}" for host, instance in gpus}
    for host, instance in gpus:
        lists = lists_of(hosts_of(content)[f"gpu-{instance[len('nvidia-'):]}.{host}"])
        ticks = [row for (_, who), row in sorted(truth[host].items(), key=lambda item: item[0][0]) if who == instance]
        for name, (metrics, factor) in GPU.items():
            expected = [value_of(row, metrics, factor, True) for row in ticks]
            if name in lists:
                assert lists[name] == expected, name
                seen.add(name)
            else:
                assert not any(value is not None for value in expected), name


# ---- tests ----

NAMES = ["run", "gpus", "infiniband", "energy", "tree", "hostile", "one_tick", "no_tick", "unfinished", "damaged", "nodes", "long"]


@pytest.mark.parametrize("name", NAMES)
def test_every_list_says_what_show_says(tmp_path, recordings, name):
    folder = export(recordings[name], "perfmon-json", tmp_path / "out")
    content = check(folder, recordings[name])
    assert bool(content["host_names"]) == (name not in ("no_tick",)) or name == "damaged"


def test_counters_and_their_groups(tmp_path, counted):
    folder = export(counted, "perfmon-json", tmp_path / "out")
    check(folder, counted)
    # That tool's reader takes the columns of each group from here, and wants every group.
    events = json.loads((folder / ".perf_event_list.json").read_text())
    metrics = json.loads((folder / "perf_metrics.json").read_text())
    assert list(events) == GROUPS
    for host in metrics["host_names"]:
        for group in GROUPS:
            assert list(events[group]) == list(metrics[host][group]), group
    assert events["L2"] and events["FLOPS_DP"]
    host = load(folder, "perf_metrics")[""]
    # Three tasks; the first event grows by a thousand million a second in each, the tenth by ten times as much.
    assert host["hardware_events"]["cycles"] == [None] + [3 * 10**9] * 4
    assert host["software_events"]["cpu-migrations"][1:] == [3 * 10 * 10**9] * 4
    assert set(host["FLOPS_DP"]) == {"derv_flops_dp", "fp_scalar_double", "fp_128_double", "fp_256_double", "fp_512_double"}
    assert host["FLOPS_DP"]["derv_flops_dp"][1:] == [3 * 11 * 15 * 1000] * 4, "million operations a second"
    assert host["L2cache"]["derv_l2_miss_ratio"][1:] == [1] * 4
    assert load(folder, "cpu_metrics")[""]["memory_bw"][1:] == [2 * 64 * 10**6] * 4


@pytest.mark.parametrize("processor", [(), ("AuthenticAMD", 23, 49), ("AuthenticAMD", 25, 97)], ids=["skylake", "zen2", "zen4"])
def test_its_own_reader_takes_the_counters(tmp_path, processor):
    """Also where one event is in two groups of a processor, as misses of L2 are that go to L3."""
    film, recording = film_of_counters(tmp_path / "film.txt", processor=processor), tmp_path / "a.tacho"
    done = run("debug", "play", film, recording, "1s", "+perf,FLOPS_SP,FLOPS_DP,L2,L3", 700)
    assert done.returncode == 0, done.stderr
    folder = export(recording, "perfmon-json", tmp_path / "out")
    frame = data_frame(folder, "perf_metrics")
    lists = lists_of(load(folder, "perf_metrics")[""])
    assert {name.split(".")[0] for name in lists} >= {"hardware_events", "software_events", "L2cache", "L3"}
    assert list(frame.columns) == ["Host", *(name.split(".")[-1] for name in lists)]
    for name, values in lists.items():
        assert all(map(same, frame[name.split(".")[-1]].astype(object).where(frame[name.split(".")[-1]].notna(), None), values)), name


def test_all_that_the_driver_of_a_gpu_says(tmp_path, driven):
    folder = export(driven, "perfmon-json", tmp_path / "out")
    check(folder, driven)
    content = load(folder, "nv_gpu_metrics")
    assert [host.split(".")[0] for host in content["host_names"]] == ["gpu-0", "gpu-1"]
    first, second = (lists_of(content[host]) for host in content["host_names"])
    assert {name: [value for value in first[name] if value is not None][-1] for name in NVML_SAYS} == NVML_SAYS
    assert set(second["fan_speed"]) == {None}, "not known, and there all the same, since another has it"
    assert 0 in second["utilization_rates.gpu"]
    told = load(folder, "meta_data")
    assert [gpu["name"] for gpu in told[told["host_names"][0]]["gpus"]] == ["NVIDIA FAKE-100", "NVIDIA FAKE-200"]


def test_nothing_of_its_schema_went_unseen():
    """Behind the others: each list was there in some of them, with values."""
    if not {*NAMES, "counted", "driven"} <= ran:
        pytest.skip("not all of the others ran")
    expected = {*CPU, *EVENTS, *DERIVED, *GPU, "rapl_powercap.package-0", "rapl_powercap.dram-1"}
    assert expected <= seen, expected - seen


def test_nodes_that_have_not_the_same(tmp_path, recordings):
    both = tmp_path / "both"
    both.mkdir()
    shutil.copy(recordings["energy"], both / "a.tacho")
    shutil.copy(recordings["gpus"], both / "b.tacho")
    content = check(export(both, "perfmon-json", tmp_path / "out"), both)
    assert set(content["host_names"]) == {"", "n1"}
    assert set(content["n1"]["rapl_powercap"]["package-0"]) == {None}
    assert set(content[""]["memory_bw"]) == {None}


def test_counts_do_not_reach_from_one_recording_into_the_next(tmp_path):
    film = film_of_counters(tmp_path / "film.txt", growth=0)
    twice = tmp_path / "twice"
    twice.mkdir()
    assert run("debug", "play", film, twice / "a.tacho", "1s", "+perf", 700).returncode == 0
    shutil.copy(twice / "a.tacho", twice / "b.tacho")
    content = load(export(twice, "perfmon-json", tmp_path / "out"), "perf_metrics")
    assert content["host_names"] == ["", "-2"]
    for host in content["host_names"]:
        assert content[host]["hardware_events"]["cycles"] == [None, 0, 0, 0, 0]


@pytest.mark.parametrize("name", ["gpus", "unfinished"])
def test_recordings_of_one_host_stay_apart(tmp_path, recordings, name):
    """Each has a key of its own, in the order of the recordings, the same one in all files."""
    thrice = tmp_path / "thrice"
    thrice.mkdir()
    for copy in ("a.tacho", "b.tacho", "c.tacho"):
        shutil.copy(recordings[name], thrice / copy)
    once = export(recordings[name], "perfmon-json", tmp_path / "once")
    folder = export(thrice, "perfmon-json", tmp_path / "out")
    assert load(once, "meta_data")["host_names"] == ["n1"]
    assert load(folder, "meta_data")["host_names"] == ["n1", "n1-2", "n1-3"]
    about = load(folder, "meta_data")
    assert about["n1"] == about["n1-2"] == about["n1-3"] == load(once, "meta_data")["n1"]
    for file in ("cpu_metrics", "perf_metrics", "nv_gpu_metrics")[: 3 if name == "gpus" else 2]:
        one, three = load(once, file), load(folder, file)
        assert sorted(three["host_names"]) == sorted(host + nth for host in one["host_names"] for nth in ("", "-2", "-3"))
        for host in one["host_names"]:
            assert one[host] == three[host] == three[f"{host}-2"] == three[f"{host}-3"]


def test_a_host_that_is_called_like_the_second_of_another(tmp_path):
    tool = Path(os.environ["TACHO"]).parent / "tests" / "unit" / "query_tool"
    if not tool.exists():
        pytest.skip(f"{tool} is not built")
    folder = tmp_path / "run"
    folder.mkdir()
    for n, host in enumerate(["n", "n", "n-2", "n", "host_names", "host_names"]):
        os.spawnl(os.P_WAIT, tool, "query_tool", folder / f"{n}.tacho", host, "1")
    out = export(folder, "perfmon-json", tmp_path / "out")
    for name in ("cpu_metrics", "meta_data"):
        assert load(out, name)["host_names"] == ["n", "n-3", "n-2", "n-4", "host_names.", "host_names-2"]


def test_hosts_whose_names_are_keys(tmp_path):
    tool = Path(os.environ["TACHO"]).parent / "tests" / "unit" / "query_tool"
    if not tool.exists():
        pytest.skip(f"{tool} is not built")
    folder = tmp_path / "run"
    folder.mkdir()
    for n, host in enumerate(["host_names", "host_names.", "time_stamps", "sampling_frequency"]):
        os.spawnl(os.P_WAIT, tool, "query_tool", folder / f"{n}.tacho", host, "1")
    out = export(folder, "perfmon-json", tmp_path / "out")
    expected = ["host_names.", "host_names..", "time_stamps", "sampling_frequency."]
    for name in ("cpu_metrics", "perf_metrics", "meta_data"):
        assert load(out, name)["host_names"] == expected
    assert load(out, "nv_gpu_metrics")["host_names"] == [f"gpu-0.{host}" for host in expected]


def test_a_recording_with_a_hole(tmp_path, recordings):
    whole = recordings["long"]
    broken = damaged(tmp_path / "broken.tacho", whole)
    content = check(export(broken, "perfmon-json", tmp_path / "out"), broken)
    all_of_it = load(export(whole, "perfmon-json", tmp_path / "whole"), "cpu_metrics")
    assert 0 < len(content["node01"]["time_stamps"]) < len(all_of_it["node01"]["time_stamps"])


def test_choices_are_kept(tmp_path, recordings):
    folder = export(recordings["long"], "perfmon-json", tmp_path / "out", "-m", "proc.mem.rss,tree.cpu", "--from", "5s", "--until", "10s")
    host = load(folder, "cpu_metrics")["node01"]
    assert set(lists_of(host)) == {"time_stamps", "memory_info.rss", "cpu_time"}
    ticks = [(at, row["proc.mem.rss"]) for (at, _), row in said(recordings["long"], ["proc.mem.rss"])["node01"].items()]
    assert host["memory_info"]["rss"] == [rss for at, rss in ticks if 5 <= at <= 10]
    done = need_export(run("export", "--to", "perfmon-json", "-d", "filesystem", "-o", tmp_path / "no", recordings["run"]))
    assert done.returncode == 1 and b"made of tables that are not there, or not chosen: tree, cpu," in done.stderr
    assert not (tmp_path / "no").exists()
    folder = export(recordings["long"], "perfmon-json", tmp_path / "slow", "--every", "10s")
    content = load(folder, "cpu_metrics")
    assert content["sampling_frequency"] == 10
    stamps = content["node01"]["time_stamps"]
    assert [stamp - stamps[0] for stamp in stamps] == [0, 10, 20]


def test_processes_are_told_of(tmp_path, recordings):
    content = load(export(recordings["tree"], "perfmon-json", tmp_path / "out"), "cpu_metrics")
    host = content[""]
    assert list(host["parent_proc_md"]) == ["100"] and host["parent_proc_md"]["100"]["cmdline"] == "'a b) (c' :-v"
    done = run("export", "--to", "json", "-d", "processes", "-o", "-", recordings["tree"])
    table = json.loads(done.stdout)["tables"]["processes"]
    names = [field["name"] for field in table["fields"]]
    others = [dict(zip(names, row)) for row in table["rows"][1:]]
    assert others and host["child_proc_md"] == [
        f"pid={row['pid']}, ppid={row['ppid']}, name='{row['name']}', cmdline='{row['command']}'" for row in others]


def test_hardware_of_the_nodes(tmp_path, recordings):
    told = load(export(recordings["run"], "perfmon-json", tmp_path / "out"), "meta_data")
    (host,) = told["host_names"]
    hardware = json.loads(run("show", "--json", recordings["run"]).stdout)["hardware"]
    assert hardware and {name: told[host][name] for name in hardware} == hardware and told[host]["gpus"] == []
    told = load(export(recordings["nodes"], "perfmon-json", tmp_path / "nodes"), "meta_data")
    assert [len(told[host]["gpus"]) for host in ("n1", "n2")] == [2, 1]
    gpu = told["n1"]["gpus"][1]
    assert (gpu["index"], gpu["name"], gpu["memory_total"]) == (1, "NVIDIA A100-SXM4-40GB", 40 << 30)


def test_pandas_takes_the_columns_for_numbers(tmp_path, recordings):
    """As its data frame: a column that is no number could not be plotted."""
    pandas = reader("pandas")
    for name in ("nodes", "run", "energy"):
        folder = export(recordings[name], "perfmon-json", tmp_path / name)
        for file in ("cpu_metrics", "perf_metrics", "nv_gpu_metrics"):
            if not (folder / f"{file}.json").exists():
                continue
            header, rows = as_rows(load(folder, file))
            frame = pandas.DataFrame(rows, columns=header)
            for column in header[1:]:
                assert pandas.api.types.is_numeric_dtype(frame[column]) or frame.empty, (file, column)
            for _, host in frame.groupby("Host"):
                assert (host["time_stamps"].diff().dropna() > 0).all(), "rates are made by dividing by that"
