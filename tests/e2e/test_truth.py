"""One truth: a quantity that several views show has one value in all of them, to the digits shown."""

import csv
import html
import io
import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from recorder import BURNERS, TACHO, lasting, record, run, shown, start, until

try:
    from pyarrow import parquet
except ImportError:
    parquet = None

MIB = 1 << 20
UNITS = {"W": 1, "%": 0.01, "us": 1e-6, "ms": 1e-3, "s": 1, "KiB": 1 << 10, "MiB": MIB, "GiB": 1 << 30, "GHz": 1e9, "B": 1, "": 1}
NUMBER = rf"[~≥≤]?\d[\d,]*(?:\.\d+)?(?:e-\d+)? ?(?:{'|'.join(UNITS)})(?![\w.])"

FAKE_GPU = """\
count 1
0.name NVIDIA FAKE-100
0.uuid GPU-00000000
0.util {util}
0.memutil 10
0.mem_total 42949672960
0.mem_used {used}
0.power 150000
"""


class Said:
    """A number as people read it: any value that is written like that is the same."""

    def __init__(self, text):
        number, power, unit = re.fullmatch(r"[~≥≤]?([\d.,]+)(e-\d+)? ?(.*)", text).groups()
        value, scale = float(number.replace(",", "")), UNITS[unit] * float(f"1{power or ''}")
        half = 0.51 * 10.0 ** -len(number.partition(".")[2])
        self.text, self.low, self.high = text, (value - half) * scale, (value + half) * scale

    def is_same(self, value):
        return self.low <= value <= self.high

    def __repr__(self):
        return self.text


def one_value(quantity, by_view):
    """The first view is for programs and has all digits."""
    (first, truth), *others = [(view, value) for view, value in by_view.items() if value is not None]
    for view, value in others:
        if isinstance(value, Said):
            assert value.is_same(truth), f"{quantity}: {first} {truth}, {view} {value}: {by_view}"
        else:
            assert value == pytest.approx(truth, rel=1e-5, abs=1e-6), f"{quantity}: {first} {truth}, {view} {value}: {by_view}"
    assert others, f"{quantity} is in one view only: {by_view}"


def find(pattern, text):
    """The number that stands where the pattern has `#`; None where there is none."""
    found = re.search(pattern.replace("#", f"({NUMBER})"), text)
    return found and Said(found[1])


def ok(*words, **kwargs):
    done = run(*words, **kwargs)
    assert done.returncode == 0, done.stderr.decode(errors="replace")
    return done.stdout.decode()


class Views:
    """Everything that is said of one recording."""

    def __init__(self, recording, folder, drawn=False):
        """With all that is drawn: that takes a second."""
        self.summary = json.loads(ok("show", "--json", recording))
        self.text = re.sub(r"\s*\n {11}(?=\S)", " ", ok("show", recording))
        self.processes = {row["pid"]: row for row in json.loads(ok("show", "-p", "--json", recording))["processes"]}
        self.process_csv = {int(row["pid"]): row for row in csv.DictReader(io.StringIO(ok("show", "-p", "--csv", recording)))}
        self.process_text = ok("show", "-p", "--sort", "rss", recording)
        self.stats = {}
        for level in ("run", "process", "group"):
            self.stats |= json.loads(ok("show", "--stats", "--by", level, "--json", recording))
        self.stats_text = ok("show", "--stats", recording)
        (self.listed,) = json.loads(ok("ls", "--json", recording))["recordings"]
        self.list_text = ok("ls", recording)
        self.compared = json.loads(ok("compare", "-f", "json", recording, recording))["figures"]
        self.compared_text = ok("compare", "--all", recording, recording)
        self.page = json.loads(ok("report", "-f", "json", "-o", "-", recording))
        self.markdown = ok("report", "-f", "md", "-o", "-", recording)
        # Of a run of one tick there is no rate to draw.
        self.plots = {metric: run("plot", "--to", "100%", recording, metric).stdout.decode() for metric in ("tree.cores", "proc.mem.rss")}
        self.same_window = ok("report", "-f", "md", "-o", "-", "--from", "0", "--to", "100%", recording) == self.markdown
        self.html = self.pdf = ""
        if drawn:
            ok("report", "-f", "html,md,pdf", "-o", folder, recording)
            self.markdown = (folder / "resource_report.md").read_text()
            self.html = (folder / "report.html").read_text()
            self.pdf = self.read_pdf(*folder.glob("*.pdf"))
        self.panels = {panel["id"]: panel for panel in self.page["panels"]}
        ok("export", "--to", "csv,json,parquet", "-d", "summary,processes", "-o", folder / "out", recording)
        self.exported = self.read_exports(folder / "out")

    def read_pdf(self, path):
        if not shutil.which("pdftotext"):
            return ""
        return subprocess.run(["pdftotext", "-layout", path, "-"], stdout=subprocess.PIPE, check=True).stdout.decode()

    def read_exports(self, folder):
        """Of each format the summary by name and the processes by pid."""
        read = {}
        with open(folder / "summary.csv") as summary, open(folder / "processes.csv") as processes:
            rows = [{key.split(" ")[0]: value for key, value in row.items()} for row in csv.DictReader(processes)]
            read["csv"] = {row["name"]: row["value"] for row in csv.DictReader(summary)}, rows
        (path,) = folder.glob("*.json")
        tables = json.loads(path.read_text())["tables"]
        rows = {name: [dict(zip([f["name"] for f in table["fields"]], row)) for row in table["rows"]] for name, table in tables.items()}
        read["json"] = {row["name"]: row["value"] for row in rows["summary"]}, rows["processes"]
        if parquet:
            rows = [parquet.read_table(folder / f"{name}.parquet").to_pylist() for name in ("summary", "processes")]
            read["parquet"] = {row["name"]: row["value"] for row in rows[0]}, rows[1]
        return {
            format: ({n: float(v) for n, v in summary.items() if v not in ("", None)}, {int(row["pid"]): row for row in processes})
            for format, (summary, processes) in read.items()
        }

    def figure(self, path, summary=None):
        value = summary or self.summary
        for key in path.split("."):
            value = value[key]
        return value

    def stat(self, name):
        return self.stats["run"][name]

    def page_stat(self, name):
        columns = [column["name"] for column in self.page["stats"]["columns"]]
        return self.page["stats"]["run"][0]["values"][columns.index(name)] if name in columns else None

    def documents(self, pattern):
        """What the reports for people say."""
        page = html.unescape(re.sub(r"<[^>]*>", " ", self.html))
        return {"md": find(pattern, self.markdown), "pdf": find(pattern, self.pdf), "html": find(pattern, page)}

    def everywhere(self, path, stat=None):
        """Of one figure: those views that give all figures."""
        return {
            "show --json": self.figure(path),
            "page": self.figure(path, self.page["summary"]),
            "compare": self.compared[path]["sets"][0]["mean"] if path in self.compared else None,
            "compare text": find(rf"(?m)^  {re.escape(path)} +#", self.compared_text),
            **{f"export {format}": summary[path] for format, (summary, _) in self.exported.items()},
            "--stats": self.stat(stat) if stat else None,
            "page's statistics": self.page_stat(stat) if stat else None,
        }


def panel_numbers(views, panel, line, mean, most):
    """A panel's title and its legend."""
    if panel not in views.panels:
        return
    panel = views.panels[panel]
    drawn = next((each for each in panel["lines"] if line in (None, each["name"])), None)
    if not drawn:
        return
    title = panel["subtitle"] or ""
    own = title if len(panel["lines"]) == 1 or line is None else "".join(re.findall(rf"{re.escape(line)}: [^·]*", title))
    kind = panel["id"]
    if mean is not None:
        one_value(f"mean of {kind}", {"summary": mean, "legend": drawn["average"], "title": find("mean #", own)})
    if most is not None:
        one_value(f"max of {kind}", {"summary": most, "legend": drawn["most"], "title": find("max #", own)})


# ---- recordings ----


def make_spike(path):
    """More memory between two samples than at any: the first of them is at 50 ms, the next at the end."""
    record([BURNERS / "spike", "150", "0.25"], "-q", "-i", "2s", output=path)


def make_threads(path):
    record([BURNERS / "threads", "3", "0.3"], "-q", "-i", "100ms", output=path)


def make_short(path):
    record([BURNERS / "threads", "2", "0.06"], "-q", "-i", "1s", output=path)


def make_family(path):
    """A parent with a child that is larger, and what it reads and writes."""
    script = f"{BURNERS / 'write'} {path}.data 3000000 0.15; {BURNERS / 'mem'} private 60 0.3; sleep 0.2; :"
    record(["sh", "-c", script], "-q", "-i", "100ms", output=path)


def make_attached(path):
    with subprocess.Popen([BURNERS / "mem", "private", "40", "-"], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL) as job:
        recorder = start("attach", "-q", "-i", "100ms", "--flush", "50ms", "-o", path, str(job.pid))
        until(lambda: (shown(path).get("ticks", {}).get("taken") or 0) > 3, "it is recorded")
        job.stdin.close()
        job.wait()
        assert recorder.wait() in (0, 130)


def make_groups(path):
    """Two tools, one of which lives for a part of the run."""
    script = '(exec -a alpha "$0" 0.5) & (sleep 0.2; exec -a beta "$0" 0.3) & wait; sleep 0.2'
    record(["bash", "-c", script, BURNERS / "cpu"], "-q", "-i", "100ms", "--also", "match:^(alpha|beta)", output=path)


RECORDINGS = {"spike": make_spike, "threads": make_threads, "short": make_short, "family": make_family, "attached": make_attached}


@pytest.fixture(scope="module")
def views(tmp_path_factory):
    made = {}

    def get(name, make=None):
        if name not in made:
            folder = tmp_path_factory.mktemp(name)
            (make or RECORDINGS[name])(folder / "job.tacho")
            made[name] = Views(folder / "job.tacho", folder / "report", drawn=name == "spike")
        return made[name]

    return get


# ---- the run ----


@pytest.mark.parametrize("name", RECORDINGS)
def test_a_run_has_one_value_of_each(name, views):
    v = views(name)
    s = v.summary
    one_value("wall time", {
        **v.everywhere("wall_s", "duration_s"), "ls": v.listed["duration_s"], "show": find("wall #", v.text),
        "md": find(r"Time \| #", v.markdown),
    })
    one_value("CPU time", {
        **v.everywhere("cpu.total_s", "cpu_s"), "ls": v.listed["cpu_s"], "show": find("cpu +#", v.text), **v.documents("# CPU time"),
    })
    one_value("user", {**v.everywhere("cpu.user_s", "user_s"), "show": find(r"\(user #", v.text)})
    one_value("system", {**v.everywhere("cpu.system_s", "system_s"), "show": find(r", sys #\)", v.text)})
    one_value("mean cores", {
        **v.everywhere("cpu.mean_cores", "cores_mean"), "ls": v.listed["cores_mean"], "show": find("# cores mean", v.text),
        **v.documents(r"# of \d+ cores"),
    })
    one_value("peak cores", {
        **v.everywhere("cpu.peak_cores", "cores_peak"), "show": find("mean, # peak", v.text), **v.documents("CPU time, peak #"),
    })
    one_value("peak memory", {
        **v.everywhere("memory.peak_bytes", "memory_peak_bytes"), "ls": v.listed["memory_peak_bytes"],
        "ls text": find(r"(?m)^\S+ \S+ +\S+ +\S+ +#", v.list_text), "show": find("memory +peak #", v.text),
        "md": find(r"Memory, peak \| ≥?#", v.markdown), "statistics": find("memory peak +#", v.stats_text),
    })
    for view in ("rss", "pss", "uss"):
        if s["memory"][f"peak_{view}_bytes"] is not None:
            one_value(f"peak {view}", v.everywhere(f"memory.peak_{view}_bytes", f"{view}_peak_bytes"))
    one_value("one process", v.everywhere("memory.max_process_rss_bytes", "rss_one_peak_bytes"))
    for path, stat in {
        "processes.seen": "instances", "processes.peak": "processes_peak", "threads.peak": "threads_peak", "fds.peak": "fds_peak",
        "io.read_bytes": "read_bytes", "io.write_bytes": "write_bytes", "io.read_chars": "read_chars", "io.write_chars": "write_chars",
        "faults.major": "major_faults",
    }.items():
        if v.figure(path) is not None:
            one_value(path, v.everywhere(path, stat))
    for path in ("io.read_calls", "io.write_calls", "faults.minor", "switches.voluntary"):
        if v.figure(path) is not None:
            one_value(path, v.everywhere(path))
    one_value("at once", {"show --json": s["processes"]["peak"], "show": find("# at once", v.text), **v.documents("# at once")})
    one_value("threads", {"show --json": s["threads"]["peak"], "show": find("# threads?", v.text), **v.documents("at once, # thread")})


@pytest.mark.parametrize("name", RECORDINGS)
def test_titles_and_legends_are_those_of_the_run(name, views):
    v = views(name)
    mean, most = v.summary["cpu"]["mean_cores"], v.summary["cpu"]["peak_cores"]
    panel_numbers(v, "cpu", None, mean, most)
    if "processes-cpu" in v.panels:
        title = v.panels["processes-cpu"]["subtitle"]
        one_value("mean of processes", {"summary": mean, "title": find("mean #", title)})
        one_value("max of processes", {"summary": most, "title": find("max #", title)})
    for view, line in {"rss": "RSS, summed", "pss": "PSS", "uss": "USS"}.items():
        for panel in ("memory", "memory-views"):
            if v.stat(f"{view}_mean_bytes") is not None:
                panel_numbers(v, panel, line, v.stat(f"{view}_mean_bytes"), v.stat(f"{view}_peak_bytes"))
    assert v.same_window, "a window of all of it changes the report"
    if v.plots["tree.cores"]:
        one_value("mean of plot", {"summary": mean, "plot": find("mean #", v.plots["tree.cores"])})
        one_value("max of plot", {"summary": most, "plot": find("max #", v.plots["tree.cores"])})
    one_value("max of RSS", {"--stats": v.stat("rss_peak_bytes"), "plot": find("max #", v.plots["proc.mem.rss"])})
    panel_numbers(v, "process-count", "processes", None, v.summary["processes"]["peak"])
    panel_numbers(v, "process-count", "threads", None, v.summary["threads"]["peak"])
    panel_numbers(v, "tool-cpu-time", "the job", None, v.summary["cpu"]["total_s"])
    for panel in v.page["panels"]:
        if panel["subtitle"]:
            assert panel["subtitle"] in v.markdown or not v.html
            if len(panel["lines"]) == 1 and panel["form"] != "stacked":  # of these the title tells the sum
                panel_numbers(v, panel["id"], None, panel["lines"][0]["average"], panel["lines"][0]["most"])


@pytest.mark.parametrize("name", RECORDINGS)
def test_a_process_has_one_value_of_each(name, views):
    v = views(name)
    columns = [column["name"] for column in v.page["processes"]["columns"]]
    on_page = {row[columns.index("pid")]: dict(zip(columns, row)) for row in v.page["processes"]["rows"]}
    in_stats = {row["pid"]: row for row in v.stats["processes"]}
    assert set(on_page) == set(v.processes) == set(in_stats)
    for pid, row in v.processes.items():
        (line,) = re.findall(rf"(?m)^ +{pid} .*", v.process_text)
        cell = dict(zip(v.process_text.split(), re.split(r"  +", line.strip())))
        for key, (stat, export, heading) in {
            "wall_s": ("duration_s", "wall", "WALL"), "cpu_s": ("cpu_s", "cpu", "CPU"), "user_s": ("user_s", "user", "USER"),
            "peak_rss_bytes": ("rss_peak_bytes", "rss_peak", "RSS"), "hwm_bytes": (None, "hwm", None),
            "peak_pss_bytes": ("pss_peak_bytes", "pss_peak", "PSS"), "peak_uss_bytes": ("uss_peak_bytes", "uss_peak", None),
            "read_chars": ("read_chars", "read_chars", "READ"), "write_chars": ("write_chars", "write_chars", "WROTE"),
            "read_bytes": ("read_bytes", "read_bytes", None), "peak_threads": ("threads_peak", "threads_peak", "THR"),
        }.items():
            if row[key] is None:
                continue
            written = cell[heading] if heading else None
            one_value(f"{key} of {row['name']}", {
                "show -p --json": row[key], "csv": float(v.process_csv[pid][key]), "text": Said(written) if written else None,
                "--stats": in_stats[pid][stat] if stat else None, "page": on_page[pid][stat] if stat else None,
                **{f"export {format}": float(rows[pid][export]) for format, (_, rows) in v.exported.items()},
            })
    # The largest is the largest that the summary knows, and comes first.
    order = [int(pid) for pid in re.findall(r"(?m)^ *(\d+) ", v.process_text)]
    most = [v.processes[pid]["peak_rss_bytes"] or 0 for pid in order]
    assert most == sorted(most, reverse=True)
    known = [row["peak_rss_bytes"] for row in v.processes.values() if row["peak_rss_bytes"] is not None]
    assert max(known) == v.summary["memory"]["max_process_rss_bytes"] == v.summary["memory"]["max_process_hwm_bytes"]


# ---- what each of them is for ----


def test_a_spike_between_two_samples_is_the_peak_everywhere(views):
    v = views("spike")
    (process,) = v.processes.values()
    assert v.summary["memory"]["peak_bytes"] > 150 * MIB > 10 * v.summary["memory"]["peak_rss_bytes"]
    assert process["peak_rss_bytes"] == v.summary["memory"]["peak_bytes"]
    assert process["peak_rss_between_samples"]
    assert v.listed["memory_view"] == "hwm"
    for panel in ("memory", "processes-memory"):
        subtitle = v.panels[panel]["subtitle"]
        assert find("one process had #, between samples", subtitle).is_same(v.summary["memory"]["peak_bytes"]), subtitle
        assert all(peak["text"].startswith("highest sample ") for peak in v.panels[panel]["peaks"])
    assert re.search(r"Memory, peak \| 15\d MiB \(in one process, between samples", v.markdown)


def test_a_parent_has_its_own_high_water_mark(views):
    v = views("family")
    rows = {row["name"]: row for row in v.processes.values()}
    assert rows["sh"]["hwm_bytes"] < 30 * MIB < 60 * MIB < rows["mem"]["hwm_bytes"]
    for _, exported in v.exported.values():
        assert int(exported[rows["sh"]["pid"]]["hwm"]) < 30 * MIB


def test_groups_have_the_same_numbers_in_summary_statistics_and_plots(views):
    v = views("groups", make_groups)
    stats = {row["name"]: row for row in v.stats["groups"]}
    columns = [column["name"] for column in v.page["stats"]["columns"]]
    on_page = {row["name"]: dict(zip(columns, row["values"])) for row in v.page["stats"]["groups"]}
    assert {"alpha", "beta"} <= set(v.summary["groups"])
    for name, group in v.summary["groups"].items():
        for path, stat in {
            "cpu.total_s": "cpu_s", "cpu.user_s": "user_s", "cpu.mean_cores": "cores_mean", "cpu.peak_cores": "cores_peak",
            "memory.peak_bytes": "memory_peak_bytes", "memory.peak_rss_bytes": "rss_peak_bytes", "processes.seen": "instances",
            "processes.peak": "processes_peak", "threads.peak": "threads_peak", "io.read_chars": "read_chars",
        }.items():
            part, key = path.split(".")
            one_value(f"{path} of {name}", {"summary": group[part][key], "--stats": stats[name][stat], "page": on_page[name][stat]})
        for panel, mean, most in (
            ("tool-cpu", group["cpu"]["mean_cores"], group["cpu"]["peak_cores"]),
            ("tool-uss", stats[name]["uss_mean_bytes"], group["memory"]["peak_uss_bytes"]),
            ("tool-instances", None, group["processes"]["peak"]),
            ("tool-cpu-time", None, group["cpu"]["total_s"]),
        ):
            (line,) = [line for line in v.panels[panel]["lines"] if line["group"] == name]
            one_value(f"max of {panel}, {name}", {"summary": most, "legend": line["most"]})
            if mean is not None:
                one_value(f"mean of {panel}, {name}", {"summary": mean, "legend": line["average"]})


def test_the_tree_is_all_that_is_watched_in_curves_and_summary(tmp_path):
    """A process beside the command is outside the control group that was made for it, which tells the command's CPU time alone."""
    path = tmp_path / "job.tacho"
    other = subprocess.Popen([BURNERS / "cpu", "60"], stdout=subprocess.DEVNULL)
    try:
        with lasting(["cat"], "-i", "100ms", "--also", str(other.pid), output=path):
            until(lambda: (shown(path).get("cpu", {}).get("total_s") or 0) > 0.3, "the other process is recorded")
    finally:
        other.kill()
        other.wait()
    summary = json.loads(ok("show", "--json", path))
    assert summary["groups"][str(other.pid)]["cpu"]["total_s"] > 0.2
    used = ok("show", "--series", "tree.cpu", "--csv", path).split(",")[-1]
    assert float(used) == pytest.approx(summary["cpu"]["total_s"], rel=0.05), "the curve is of the same processes as the summary"
    one_value("mean of tree.cores", {"summary": summary["cpu"]["mean_cores"], "plot": find("mean #", ok("plot", "tree.cores", path))})


def test_tools_within_the_command_do_not_make_the_curve_of_the_whole_less_exact():
    """Its control group has counted them all."""
    tools = Path(__file__).resolve().parent.parent / "golden/stats/tools.tacho"
    rows = list(csv.DictReader(ok("show", "--series", "tree.cpu", "--csv", tools).splitlines()))
    assert float(rows[-1]["tree.cpu"]) == json.loads(ok("show", "--json", tools))["cpu"]["total_s"]


def test_gpus_have_the_same_numbers_in_summary_statistics_and_plots(tmp_path):
    values, path = tmp_path / "values", tmp_path / "job.tacho"
    fake = Path(TACHO).parent / "tests" / "fakes" / "libnvidia-ml.so.1"
    values.write_text(FAKE_GPU.format(util=40, used=1 << 30))
    env = dict(os.environ, TACHO_NVML=str(fake), FAKE_NVML=str(values))

    def gpu():
        return (shown(path).get("gpus") or [{}])[0]

    with lasting(["cat"], "-i", "100ms", output=path, env=env):
        until(lambda: gpu().get("util_max_percent") == 40, "the GPU is read")
        new = tmp_path / "new"
        new.write_text(FAKE_GPU.format(util=90, used=3 << 30))
        new.rename(values)
        until(lambda: gpu().get("util_max_percent") == 90, "the GPU is read again")
    v = Views(path, tmp_path / "report")
    (card,) = v.summary["gpus"]
    for panel, mean, most, scale in (
        ("gpu-util", "util_mean_percent", "util_max_percent", 0.01),
        ("gpu-memory", None, "memory_peak_bytes", 1),
        ("gpu-power", "power_mean_w", "power_max_w", 1),
    ):
        panel_numbers(v, panel, None, mean and card[mean] * scale, card[most] * scale)
    if v.stat("gpu_util_mean") is not None:  # they are of those that are the job's
        one_value("use of GPUs", {"summary": card["util_mean_percent"] / 100, "--stats": v.stat("gpu_util_mean"), "page": v.page_stat("gpu_util_mean")})
        one_value("memory of GPUs", {"summary": card["memory_peak_bytes"], "--stats": v.stat("gpu_memory_peak_bytes")})
