"""The command line as people, shells and man meet it. What each option does is tested with its command."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pexpect
import pytest

from recorder import PATIENCE_S, TACHO, run

ROOT = Path(__file__).resolve().parents[2]
DESCRIPTION = json.loads(run("--describe=json").stdout)
COMMANDS = {command["name"]: command for command in DESCRIPTION["commands"]}
RECORDERS = {"run", "attach", "job"}


def text(*words, **kwargs):
    done = run(*words, **kwargs)
    assert done.returncode == 0, done.stderr.decode()
    assert done.stderr == b""
    return done.stdout.decode()


def complaint(*words, status=2, **kwargs):
    """What a refusal says: nothing on standard output, one line on the other."""
    done = run(*words, **kwargs)
    assert done.returncode == status, (done.stdout, done.stderr)
    assert done.stdout == b""
    lines = done.stderr.decode().splitlines()
    assert len(lines) == 1, lines
    return lines[0]


def program(path, script):
    path.write_text("#!/bin/sh\n" + script)
    path.chmod(0o755)
    return path


# ---- the first word ----


def test_version():
    assert re.fullmatch(r"tacho \d+\.\d+\.\d+\n", text("--version"))
    assert text("-V") == text("--version")


def test_overview_is_help_when_asked_for_and_an_error_when_not():
    overview = text("--help")
    assert text("-h") == overview
    assert text("help") == overview
    for name in COMMANDS:
        assert re.search(rf"^  {name} ", overview, re.M)
    done = run()
    assert (done.returncode, done.stdout) == (2, b"")
    assert done.stderr.decode() == overview


def test_all_commands_are_there():
    assert list(COMMANDS) == ["run", "attach", "job", "phase", "mark", "show", "top", "log", "annotate", "ls", "report", "plot", "compare", "export", "push", "serve", "check", "metrics", "doctor", "help"]


@pytest.mark.parametrize(
    "word, words",
    [
        ("shwo", "tacho: there is no command 'shwo'; did you mean 'show'?"),
        ("metric", "tacho: there is no command 'metric'; did you mean 'metrics'?"),
        ("RUN", "tacho: there is no command 'RUN'; `tacho help` lists them"),
        ("", "tacho: there is no command ''; `tacho help` lists them"),
        ("xargs", "tacho: there is no command 'xargs'; to record that program: tacho run -- xargs"),
        ("a\033[31mb", "tacho: there is no command 'a\\x1b[31mb'; `tacho help` lists them"),
        ("--bogus", "tacho: there is no option '--bogus' before the command; options follow it: tacho COMMAND --bogus"),
        ("../tacho", "tacho: there is no command '../tacho'; `tacho help` lists them"),
    ],
)
def test_unknown_words(word, words, tmp_path):
    assert complaint(word, cwd=tmp_path) == words
    if not word.startswith("-"):
        assert complaint("help", "--", word, cwd=tmp_path) == words


def test_two_dashes_run_a_program(tmp_path):
    done = run("--", "sh", "-c", "echo $0 $1; exit 7", "a", "--help", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (7, b"a --help\n")


# ---- commands of their own ----


def test_external_command_in_path(tmp_path):
    program(tmp_path / "tacho-greet", 'echo "$@"; exit 5\n')
    env = dict(os.environ, PATH=f"/nowhere::{tmp_path}:{os.environ['PATH']}")
    done = run("greet", "--help", "a b", env=env)
    assert (done.returncode, done.stdout, done.stderr) == (5, b"--help a b\n", b"")
    assert run("help", "greet", env=env).stdout == b"--help\n"


def test_external_command_beside_the_executable_comes_first(tmp_path):
    beside, path = tmp_path / "beside", tmp_path / "path"
    beside.mkdir()
    path.mkdir()
    tacho = shutil.copy(TACHO, beside / "tacho")
    program(beside / "tacho-greet", "echo beside\n")
    program(path / "tacho-greet", "echo path\n")
    program(beside / "tacho-metrics", "echo external\n")
    env = dict(os.environ, PATH=f"{path}:{os.environ['PATH']}")
    assert subprocess.run([tacho, "greet"], env=env, stdout=subprocess.PIPE).stdout == b"beside\n"
    (tmp_path / "link").symlink_to(tacho)
    assert subprocess.run([tmp_path / "link", "greet"], env=env, stdout=subprocess.PIPE).stdout == b"beside\n"
    assert b"external" not in subprocess.run([tacho, "metrics"], env=env, stdout=subprocess.PIPE).stdout


def test_what_is_no_external_command(tmp_path):
    program(tmp_path / "tacho-plain", "echo no\n").chmod(0o644)
    (tmp_path / "tacho-folder").mkdir()
    program(tmp_path / "tacho-here", "echo no\n")
    env = dict(os.environ, PATH=f"{tmp_path}:/usr/bin")
    for word in ("plain", "folder"):
        assert "there is no command" in complaint(word, env=env)
    env["PATH"] = ":/usr/bin:"  # empty parts: the current directory
    assert "there is no command" in complaint("here", env=env, cwd=tmp_path)
    (tmp_path / "tacho-broken").write_text("#!/no/such/interpreter\n")
    (tmp_path / "tacho-broken").chmod(0o755)
    env["PATH"] = str(tmp_path)
    assert "cannot run" in complaint("broken", env=env, status=126)


# ---- help ----


@pytest.mark.parametrize("name", COMMANDS)
def test_help_of_a_command(name):
    page = text(name, "--help")
    assert page.startswith(f"Usage: tacho {name} ")
    assert text(name, "-h") == page
    manual = text("help", name)
    assert manual.startswith(f"Usage: tacho {name} ")
    for option in COMMANDS[name]["options"]:
        assert f"--{option['name']}" in page or f"--no-{option['name']}" in page
        if option["variable"]:
            assert f"Environment: {option['variable']}\n" in manual
    for line in (page + manual).splitlines():
        assert len(line) <= 80, line


@pytest.mark.parametrize("columns", [60, 200])
def test_help_fits_the_terminal(columns):
    shell = pexpect.spawn(TACHO, ["help", "run"], dimensions=(50, columns), timeout=PATIENCE_S, encoding="utf-8")
    lines = shell.read().splitlines()
    shell.close()
    widest = max(len(line) for line in lines if not line.startswith("  $"))
    assert widest <= columns
    assert widest > (80 if columns > 100 else 50)


@pytest.mark.parametrize("name", COMMANDS)
def test_wrong_use(name):
    status = 125 if name in RECORDERS else 2
    assert "there is no option '--bogus'" in complaint(name, "--bogus", status=status)


# ---- precedence, as a whole program sees it ----


def config(tmp_path, monkeypatch, words):
    (tmp_path / "tacho").mkdir(exist_ok=True)
    (tmp_path / "tacho" / "config").write_text(words)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))


def test_settings_come_from_four_places(tmp_path, monkeypatch):
    def is_json(*words):
        return run("metrics", "load", *words).stdout.startswith(b"{")

    assert not is_json()
    config(tmp_path, monkeypatch, "json = yes\n")
    assert is_json()
    monkeypatch.setenv("TACHO_JSON", "no")
    assert not is_json()
    assert is_json("--json")
    monkeypatch.setenv("TACHO_JSON", "yes")
    assert not is_json("--no-json")


def test_bad_settings_say_where(tmp_path, monkeypatch):
    monkeypatch.setenv("TACHO_JSON", "maybe")
    assert complaint("metrics") == "tacho: TACHO_JSON in the environment: --json takes yes or no, not 'maybe'"
    assert text("metrics", "--help").startswith("Usage")
    monkeypatch.delenv("TACHO_JSON")
    config(tmp_path, monkeypatch, "\njson = maybe\n")
    assert complaint("metrics") == f"tacho: {tmp_path}/tacho/config:2: --json takes yes or no, not 'maybe'"
    config(tmp_path, monkeypatch, "jsn = yes\n")
    done = run("metrics", "--names")
    assert done.returncode == 0
    assert done.stderr.decode() == (
        f"tacho: warning: {tmp_path}/tacho/config:1: there is no setting 'jsn'; did you mean 'json'?\n"
    )


# ---- standard output ----


@pytest.mark.parametrize("words", [["--version"], ["--help"], ["--describe=json"], ["metrics"], ["help", "--man"]])
def test_a_full_disk_is_an_error(words):
    with open("/dev/full", "w") as full:
        done = run(*words, stdout=full)
    assert done.returncode == 1
    assert done.stderr == b"tacho: cannot write to standard output: No space left on device\n"


@pytest.mark.parametrize("words", [["--version"], ["metrics"]])
def test_a_closed_pipe_is_none(words):
    read, write = os.pipe()
    os.close(read)
    # Python ignores SIGPIPE, and so would the child: it meets EPIPE.
    done = run(*words, stdout=write, restore_signals=False)
    os.close(write)
    assert (done.returncode, done.stderr) == (0, b"")


def test_closed_standard_descriptors(tmp_path):
    done = subprocess.run(["sh", "-c", f'exec "{TACHO}" metrics >&-'], stderr=subprocess.PIPE, cwd=tmp_path)
    assert done.returncode == 1
    assert done.stderr == b"tacho: cannot write to standard output: Bad file descriptor\n"


@pytest.mark.parametrize("closed", ["0<&-", "1>&-", "2>&-", "0<&- 1>&- 2>&-"])
def test_a_job_with_closed_descriptors_finds_them_closed(closed, tmp_path):
    """And no file of ours takes their numbers, so that no message ends up in it."""
    look = "import os; print(*os.listdir('/proc/self/fd'), file=open('seen', 'w')); " + (
        "open('ours', 'w').write(chr(10).join(os.readlink(f'/proc/{os.getppid()}/fd/{n}') for n in range(3)))"
    )

    def seen(command):
        subprocess.run(["sh", "-c", f"exec {command} {closed}"], cwd=tmp_path, stdin=subprocess.DEVNULL)
        return (tmp_path / "seen").read_text()

    job = f'{sys.executable} -c "{look}"'
    plain = seen(job)
    (tmp_path / "seen").unlink()
    assert seen(f'"{TACHO}" run -o x.tacho -- {job}') == plain
    ours = (tmp_path / "ours").read_text().splitlines()
    assert [ours[int(redirection[0])] for redirection in closed.split()] == ["/dev/null"] * len(closed.split())
    assert run("check", tmp_path / "x.tacho").returncode == 0


# ---- tacho metrics ----


def test_metrics_as_text_json_and_names_agree():
    names = text("metrics", "--names").split()
    recorded = text("metrics", "--names", "--no-derived").split()
    whole = json.loads(text("metrics", "--json"))
    listed, derived = whole["collectors"], whole["derived"]
    assert [metric["name"] for collector in listed for metric in collector["metrics"]] == recorded
    assert [metric["name"] for metric in derived] == names[len(recorded) :]
    assert len(set(names)) == len(names)
    table = text("metrics")
    assert re.findall(r"^  ([a-z0-9_.]+) ", table, re.M) == names
    assert all(len(line) <= 80 for line in table.splitlines())
    # Every sentence is cut in the table and whole with -v.
    verbose = re.sub(r"\s+", " ", text("metrics", "-v"))
    for metric in [*(metric for collector in listed for metric in collector["metrics"]), *derived]:
        assert metric["help"].endswith(".")
        assert metric["help"] in verbose
    for metric in derived:
        assert re.sub(r"\s+", " ", f"= {metric['expression']}") in verbose


def test_metrics_are_filtered():
    everything = text("metrics", "--names").split()
    for word in ("mem", "load", "cpu"):
        some = text("metrics", "--names", word).split()
        assert some and len(some) < len(everything)
    assert text("metrics", "--names", "load").split() == [name for name in everything if name.startswith("load.")]
    both = text("metrics", "--names", "load", "paging").split()
    assert both == [name for name in everything if name.startswith(("load.", "paging."))]
    assert "nosuchthing" in complaint("metrics", "nosuchthing", status=1)


def test_metrics_say_what_this_machine_has():
    listed = {c["name"]: c for c in json.loads(text("metrics", "--json"))["collectors"]}
    assert listed["memory"]["available"] is True
    assert listed["pressure"]["available"] is Path("/proc/pressure/cpu").exists()
    # Kernels differ in these: one of them is missing nearly everywhere.
    memory = {metric["name"]: metric for metric in listed["memory"]["metrics"]}
    keys = {"mem.zswap": "Zswap", "mem.corrupted": "HardwareCorrupted", "mem.hugetlb": "Hugetlb", "mem.free": "MemFree"}
    for name, key in keys.items():
        there = bool(re.search(f"^{key}:", Path("/proc/meminfo").read_text(), re.M))
        assert memory[name]["available"] is there
        assert (memory[name]["reason"] is None) is there
        assert bool(re.search(rf"^  {name} .* absent ", text("metrics", name), re.M)) is not there
    for collector in listed.values():
        assert collector["available"] or collector["reason"]


def test_the_page_of_metrics_is_what_the_binary_prints():
    page = ROOT / "docs" / "metrics.md"
    assert page.read_text() == text("metrics", "--markdown"), f"write it again: tacho metrics --markdown > {page}"


@pytest.mark.parametrize(
    "term, no_color, bold", [("xterm", "", True), ("xterm", "1", False), ("dumb", "", False), ("", "", False)]
)
def test_color_is_for_terminals_that_want_it(term, no_color, bold):
    env = dict(os.environ, TERM=term, NO_COLOR=no_color)
    terminal = pexpect.spawn(TACHO, ["metrics", "load"], env=env, timeout=PATIENCE_S)
    assert (b"\033[" in terminal.read()) is bold
    terminal.close()
    assert b"\033[" not in run("metrics", "load", env=env).stdout


@pytest.mark.parametrize("columns", [50, 80, 200])
def test_metrics_fit_the_terminal(columns):
    terminal = pexpect.spawn(TACHO, ["metrics"], dimensions=(50, columns), timeout=PATIENCE_S, encoding="utf-8")
    lines = terminal.read().splitlines()
    terminal.close()
    assert max(map(len, lines)) <= columns
    if columns == 200:
        assert max(map(len, lines)) > 120


# ---- description ----


def test_description_is_complete():
    assert DESCRIPTION["name"] == "tacho"
    assert f"tacho {DESCRIPTION['version']}\n" == text("--version")
    options = {option["name"]: option for option in COMMANDS["run"]["options"]}
    assert options["interval"] | {"help": "", "detail": ""} == {
        "name": "interval",
        "short": "i",
        "type": "interval",
        "value": "TIME",
        "min": 0.001,
        "max": 86400,
        "preset": "1s",
        "repeatable": False,
        "variable": "TACHO_INTERVAL",
        "help": "",
        "detail": "",
    }
    assert options["wait"]["choices"] == ["root", "tree"]
    assert options["force"]["variable"] is None
    assert COMMANDS["run"]["stop_at_operand"] is True


# ---- what is installed ----


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    directory = tmp_path_factory.mktemp("installed")
    build = Path(TACHO).parent
    subprocess.run(
        ["meson", "install", "--no-rebuild", "-C", build, "--destdir", directory],
        check=True,
        stdout=subprocess.DEVNULL,
        env=dict(os.environ, PATH="/usr/bin:/bin"),
    )
    return directory / "usr" / "local"


def test_installation_has_everything(installed):
    pages = {path.name for path in installed.glob("share/man/man1/*")}
    assert pages == {"tacho.1"} | {f"tacho-{name}.1" for name in COMMANDS}
    assert subprocess.run([installed / "bin" / "tacho", "--version"]).returncode == 0
    for path in (
        "share/bash-completion/completions/tacho",
        "share/zsh/site-functions/_tacho",
        "share/fish/vendor_completions.d/tacho.fish",
    ):
        assert (installed / path).stat().st_size > 1000


@pytest.mark.parametrize("name", [None, *COMMANDS])
def test_man_page(installed, name):
    page = installed / "share" / "man" / "man1" / (f"tacho-{name}.1" if name else "tacho.1")
    lint = subprocess.run(["mandoc", "-T", "lint", "-W", "warning", page], stdout=subprocess.PIPE, text=True)
    assert (lint.returncode, lint.stdout) == (0, "")
    env = dict(os.environ, LC_ALL="C.UTF-8", MANWIDTH="80", MAN_KEEP_FORMATTING="")
    shown = subprocess.run(["man", "--warnings", "-l", page], stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=env)
    assert (shown.returncode, shown.stderr) == (0, b"")
    words = shown.stdout.decode()
    assert words.splitlines()[0].startswith(f"TACHO-{name.upper()}(1)" if name else "TACHO(1)")
    for option in COMMANDS[name]["options"] if name else []:
        assert f"--{option['name']}" in words or f"--no-{option['name']}" in words
    if name:
        usage = text(name, "--help").splitlines()[0].removeprefix("Usage: ")
        assert usage in re.sub(r"\s+", " ", words)


# ---- completions, by the shells themselves ----


def bash_completes(*words, setup=""):
    """What bash would offer for the last word."""
    script = f"""
        {setup}
        source <("{TACHO}" help --completion bash) || exit
        shopt -s progcomp
        COMP_WORDS=("$@") COMP_CWORD=$(($# - 1)) COMP_LINE="$*" COMP_POINT=${{#COMP_LINE}}
        [[ $(complete -p tacho) == *"-F _tacho tacho" ]] || exit
        _tacho tacho "${{COMP_WORDS[COMP_CWORD]}}" "${{COMP_WORDS[COMP_CWORD-1]}}"
        printf '%s\\n' "${{COMPREPLY[@]}}"
    """
    done = subprocess.run(
        ["bash", "--norc", "-c", script, "bash", *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert done.stderr == ""
    return [line for line in done.stdout.splitlines() if line]


def fish_completes(line):
    script = f"source ('{TACHO}' help --completion fish | psub); complete -C $argv[1]"
    done = subprocess.run(
        ["fish", "--no-config", "-c", script, line], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert done.stderr == ""
    return [entry.split("\t")[0] for entry in done.stdout.splitlines()]


def test_bash_completes_commands_and_options():
    assert bash_completes("tacho", "ru") == ["run"]
    assert bash_completes("tacho", "") == [*COMMANDS, "--help", "--version", "--describe=json"]
    assert bash_completes("tacho", "run", "--interv") == ["--interval"]
    assert bash_completes("tacho", "run", "--no-s") == ["--no-summary"]
    assert bash_completes("tacho", "run", "-i", "5", "--for") == ["--force"]
    assert bash_completes("tacho", "run", "--wait", "=", "t") == ["tree"]
    assert bash_completes("tacho", "run", "--wait", "=") == ["root", "tree"]
    assert bash_completes("tacho", "run", "--wait", "r") == ["root"]
    assert bash_completes("tacho", "help", "at") == ["attach"]
    assert bash_completes("tacho", "phase", "") == ["begin", "end"] and bash_completes("tacho", "phase", "--st") == ["--strict"]
    assert bash_completes("tacho", "phase", "begin", "") == [] and "xargs" in bash_completes("tacho", "phase", "load", "--", "xarg")
    offered = set(bash_completes("tacho", "run", "--"))
    assert {f"--{o['name']}" for o in COMMANDS["run"]["options"]} - offered == {"--summary"}


def test_bash_completes_the_recorded_program():
    assert "xargs" in bash_completes("tacho", "run", "xarg")
    assert "xargs" in bash_completes("tacho", "run", "-q", "xarg")
    assert "xargs" in bash_completes("tacho", "run", "-q", "--", "xarg")
    assert "xargs" in bash_completes("tacho", "--", "xarg")
    assert bash_completes("tacho", "run", "ls", "/usr/shar") == ["/usr/share"]
    # Options are now those of the program.
    assert bash_completes("tacho", "run", "-i", "5", "ls", "--interv") == []


def test_bash_completes_the_recorded_program_with_its_own_completion():
    setup = "source /usr/share/bash-completion/bash_completion"
    if not Path("/usr/share/bash-completion/bash_completion").exists():
        pytest.skip("no bash-completion here")
    own = "_prog() { COMPREPLY=(--own); }; complete -F _prog prog"
    assert bash_completes("tacho", "run", "-i", "5", "prog", "--o", setup=f"{setup}; {own}") == ["--own"]
    assert bash_completes("tacho", "--", "prog", "--o", setup=f"{setup}; {own}") == ["--own"]


def test_bash_completes_metrics_and_files(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", f"{Path(TACHO).parent}:{os.environ['PATH']}")
    names = text("metrics", "--names", "load.").split()
    assert bash_completes("tacho", "metrics", "load.") == names
    assert bash_completes("tacho", "run", "-m", "load.") == names
    assert bash_completes("tacho", "metrics", "tree.co") == ["tree.cores"]
    assert bash_completes("tacho", "run", "-m", "tree.co") == []  # derived: not recorded
    assert bash_completes("tacho", "run", "-m", "-pss,+load.1m") == ["-pss,+load.1m"]
    for name in ("a b.tacho", "other.txt"):
        (tmp_path / name).touch()
    (tmp_path / "runs").mkdir()
    monkeypatch.chdir(tmp_path)
    assert bash_completes("tacho", "show", "") == ["a b.tacho", "runs"]
    assert sorted(bash_completes("tacho", "run", "-o", "")) == ["a b.tacho", "other.txt", "runs"]


def test_fish_completes(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", f"{Path(TACHO).parent}:{os.environ['PATH']}")
    assert fish_completes("tacho ru") == ["run"]
    assert fish_completes("tacho run --interv") == ["--interval"]
    assert fish_completes("tacho run --no-s") == ["--no-summary"]
    assert fish_completes("tacho run --wait=") == ["--wait=root", "--wait=tree"]
    assert fish_completes("tacho run --wait r") == ["root"]
    assert fish_completes("tacho help att") == ["attach"]
    assert fish_completes("tacho phase ") == ["begin", "end"] and fish_completes("tacho phase begin x") == []
    assert "xargs" in fish_completes("tacho phase load -- xarg")
    assert "xargs" in fish_completes("tacho run xarg")
    assert "xargs" in fish_completes("tacho run -i 5 -q -- xarg")
    assert "xargs" in fish_completes("tacho -- xarg")
    assert "--interval" not in fish_completes("tacho run ls --interv")
    assert fish_completes("tacho metrics tree.co") == ["tree.cores"]
    assert "tree.cores" not in fish_completes("tacho run -m tree.co")
    assert fish_completes("tacho metrics load.") == text("metrics", "--names", "load.").split()
    assert "pss,+load.1m" in fish_completes("tacho run -m pss,+load.1")
    assert set(COMMANDS) <= set(fish_completes("tacho "))


def test_zsh_completes(tmp_path):
    """In a real, interactive zsh, key by key."""
    functions = tmp_path / "functions"
    functions.mkdir()
    (functions / "_tacho").write_text(text("help", "--completion", "zsh"))
    env = dict(os.environ, PATH=f"{Path(TACHO).parent}:{os.environ['PATH']}", TERM="dumb", ZDOTDIR=str(tmp_path))
    shell = pexpect.spawn("zsh", ["-f"], env=env, timeout=PATIENCE_S, encoding="utf-8", dimensions=(50, 200))
    setup = (
        f"unset zle_bracketed_paste; fpath=({functions} $fpath); autoload -Uz compinit; "
        f"compinit -u -d {tmp_path}/dump; PS1= RPS1=; "
        # Shows the line as completed, between marks, without running it.
        "show() { zle expand-or-complete; print -r -- \"<<$BUFFER>>\"; BUFFER= }; zle -N show; bindkey '^X' show; "
        "print -r rea''dy"
    )
    shell.sendline(setup)
    shell.expect("\nready\r\n")
    for typed, completed in (
        ("tacho ru", "tacho run "),
        ("tacho run --interv", "tacho run --interval="),
        ("tacho run --no-s", "tacho run --no-summary "),
        ("tacho run --wait=t", "tacho run --wait=tree "),
        ("tacho run -i 5 --forc", "tacho run -i 5 --force "),
        ("tacho help atta", "tacho help attach "),
        ("tacho metrics load.run", "tacho metrics load.running "),
        ("tacho metrics tree.co", "tacho metrics tree.cores "),
        ("tacho run -m tree.co", "tacho run -m tree.co"),
        ("tacho run -m -pss,+load.run", "tacho run -m -pss,+load.running "),
        ("tacho run -q -- /bin/ech", "tacho run -q -- /bin/echo "),
        ("tacho -- /bin/ech", "tacho -- /bin/echo "),
        ("tacho phase be", "tacho phase begin "),
        ("tacho phase load -- /bin/ech", "tacho phase load -- /bin/echo "),
    ):
        shell.send(typed + "\x18")
        shell.expect("<<(.*?)>>")
        assert shell.match[1] == completed
    shell.close(force=True)


@pytest.mark.parametrize(
    "shell, words", [("bash", ["bash", "-n"]), ("zsh", ["zsh", "-n"]), ("fish", ["fish", "--no-execute"])]
)
def test_completions_are_valid_scripts(shell, words, tmp_path):
    script = tmp_path / "script"
    script.write_text(text("help", "--completion", shell))
    done = subprocess.run([*words, script], stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    assert (done.returncode, done.stdout) == (0, b"")
    assert complaint("help", "--completion", "csh") == "tacho: --completion takes bash, zsh or fish, not 'csh'"


def test_the_words_that_an_option_takes_are_told():
    assert "One of date, duration, memory," in run("help", "ls").stdout.decode()
    assert "One of" not in run("help", "run").stdout.decode().split("--wait root|tree")[1].split("Default")[0]
