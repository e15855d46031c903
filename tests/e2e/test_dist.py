"""What is released (tools/dist): runs with old C libraries and other processors, and is the same bytes each time.

`./dev test` makes it before the tests, with the builds."""

import json
import os
import re
import shutil
import subprocess
import tarfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
DIST = ROOT / ".dev" / "dist-test"
BULLSEYE = ROOT / ".dev" / "bullseye"
ARM_LIBC = "/usr/aarch64-linux-gnu"
TARGETS = ("x86_64", "aarch64", "x86_64-static")
OLDEST = (2, 17)
# sh -c INSIDE ROOT DIRECTORY COMMAND...: with a /proc that goes with the mount namespace.
INSIDE = '''mount -t proc proc "$0/proc" && exec chroot "$0" sh -c 'cd "$0" && exec "$@"' "$@" '''

if not (DIST / "made").exists():
    pytest.skip("tools/dist has made nothing: ./dev test does so where it reaches PyPI and crates.io", allow_module_level=True)


def archive(target, place="one"):
    (path,) = (DIST / place).glob(f"tacho-*-linux-{target}.tar.gz")
    return path


@pytest.fixture(scope="module")
def unpacked(tmp_path_factory):
    """A directory for each target, as a user unpacks it."""
    place = tmp_path_factory.mktemp("dist")
    found = {}
    for target in TARGETS:
        with tarfile.open(archive(target)) as tar:
            tar.extractall(place)
        found[target] = place / archive(target).name.removesuffix(".tar.gz")
    return found


def binaries(directory):
    return [path for path in sorted(directory.rglob("*")) if path.is_file() and path.read_bytes()[:4] == b"\x7fELF"]


def call(*words):
    """What the command prints; it must not fail."""
    return subprocess.run(words, check=True, capture_output=True, text=True).stdout


def readelf(option, path):
    return call("readelf", "-W", option, path)


@pytest.mark.parametrize("target", ["x86_64", "aarch64"])
def test_no_younger_c_library_is_needed(unpacked, target):
    found = binaries(unpacked[target])
    assert {"tacho", "tacho-export", "libtacho-nvtx.so"} <= {path.name for path in found}
    for path in found:
        versions = {tuple(map(int, v.split("."))) for v in re.findall(r"Name: GLIBC_([0-9.]+)", readelf("-V", path))}
        assert versions and max(versions)[:2] <= OLDEST, (path.name, max(versions))
        needed = set(re.findall(r"NEEDED.*\[(.*)\]", readelf("-d", path)))
        assert needed <= {"libc.so.6", "libpthread.so.0", "libdl.so.2", "libm.so.6", "librt.so.1", "ld-linux-x86-64.so.2",
                          "ld-linux-aarch64.so.1"}, path.name


def test_the_static_build_needs_nothing(unpacked):
    found = binaries(unpacked["x86_64-static"])
    assert {path.name for path in found} == {"tacho", "tacho-export"}
    for path in found:
        assert "INTERP" not in readelf("-l", path) and "NEEDED" not in readelf("-d", path)


def test_the_static_build_says_what_it_cannot_load(unpacked):
    told = call(unpacked["x86_64-static"] / "bin" / "tacho", "doctor")
    assert re.search(r"libraries +absent +this is the static build", told), told
    assert "libraries " not in call(unpacked["x86_64"] / "bin" / "tacho", "doctor")


def smoke(place, wrap=()):
    """Records, shows and exports with the tacho in bin/ of the working directory `place`; what the summary says."""

    def tacho(*words, status=0):
        done = subprocess.run([*wrap, *words], cwd=place, capture_output=True, text=True, env=dict(os.environ, LC_ALL="C"))
        assert done.returncode == status, (words, done.stdout, done.stderr)
        return done.stdout

    tacho("bin/tacho", "run", "-q", "--interval", "50ms", "-o", "a.tacho", "--", "sh", "-c", "sleep 0.3; exit 7", status=7)
    tacho("bin/tacho", "export", "--to", "csv,sqlite", "-o", "out", "a.tacho")
    tacho("bin/tacho", "run", "-q", "-o", "b.tacho", "--", "sh", "-c", "kill -TERM $$", status=-15)
    assert "SIGTERM" in tacho("bin/tacho", "show", "b.tacho")
    return json.loads(tacho("bin/tacho", "show", "--json", "a.tacho"))


@pytest.mark.parametrize("target", ["x86_64", "x86_64-static"])
def test_it_works_here(unpacked, tmp_path, target):
    shutil.copytree(unpacked[target], tmp_path / "t")
    summary = smoke(tmp_path / "t")
    assert summary["exit"]["code"] == 7
    # The tree's own build reads it the same way.
    here = json.loads(call(os.environ["TACHO"], "show", "--json", tmp_path / "t" / "a.tacho"))
    assert here == {**summary, "path": str(tmp_path / "t" / "a.tacho")}


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can change the root directory")
@pytest.mark.skipif(not (BULLSEYE / "bin" / "sh").exists(), reason="there is no Debian 11 to try it in: debootstrap could not make one")
def test_it_works_in_debian_11(unpacked, tmp_path):
    place = BULLSEYE / "opt" / f"tacho-{os.getpid()}"
    shutil.copytree(unpacked["x86_64"], place)
    try:
        summary = smoke(place, ["unshare", "--mount", "sh", "-c", INSIDE, str(BULLSEYE), "/" + str(place.relative_to(BULLSEYE))])
        assert summary["exit"]["code"] == 7 and summary["memory"]
    finally:
        shutil.rmtree(place)


@pytest.mark.skipif(not shutil.which("qemu-aarch64-static") or not os.path.isdir(ARM_LIBC), reason="lacks qemu-user-static or libc6-arm64-cross")
def test_it_works_on_another_processor(unpacked, tmp_path):
    recording = tmp_path / "a.tacho"
    call(os.environ["TACHO"], "run", "-q", "-o", recording, "--", "true")
    place = unpacked["aarch64"]
    arm = ["qemu-aarch64-static", "-L", ARM_LIBC]
    for words in (["bin/tacho", "show", "--json", recording], ["bin/tacho-export", "--to", "json", "-o", "-", recording]):
        there = subprocess.run([*arm, *words], cwd=place, capture_output=True, text=True)
        here = subprocess.run([ROOT / "build" / words[0].removeprefix("bin/"), *words[1:]], capture_output=True, text=True)
        assert there.returncode == 0, there.stderr
        assert there.stdout == here.stdout
    done = subprocess.run([*arm, "bin/tacho", "run", "-o", tmp_path / "b.tacho", "--", "sh", "-c", "exit 7"], cwd=place)
    assert done.returncode == 7


def test_all_that_belongs_to_it_is_there(unpacked):
    for target in TARGETS:
        share = unpacked[target] / "share"
        assert (share / "man" / "man1" / "tacho-run.1").read_text().splitlines()[1].startswith(".TH TACHO-RUN")
        for completion in ("bash-completion/completions/tacho", "zsh/site-functions/_tacho", "fish/vendor_completions.d/tacho.fish"):
            assert (share / completion).stat().st_size > 1000
        parts = json.loads((share / "doc" / "tacho" / "sbom.cyclonedx.json").read_text())
        assert parts["bomFormat"] == "CycloneDX" and parts["metadata"]["component"]["name"] == "tacho"
        names = {part["name"] for part in parts["components"]}
        assert names == {"libzstd", "zlib", "sqlite3"}
        for part in parts["components"]:
            assert part["version"] and part["licenses"] and part["hashes"]
            assert part["name"] == "sqlite3" or (share / "doc" / "tacho" / f"LICENSE.{part['name']}").stat().st_size
        assert (share / "doc" / "tacho" / "LICENSE").read_text() == (ROOT / "LICENSE").read_text()


def test_nothing_of_the_machine_that_built_it_is_in_it(unpacked):
    for target in TARGETS:
        for path in unpacked[target].rglob("*"):
            assert not path.is_file() or str(ROOT).encode() not in path.read_bytes(), path


def test_the_same_tree_gives_the_same_bytes():
    one, other = archive("x86_64-static"), archive("x86_64-static", "two")
    assert one.read_bytes() == other.read_bytes()
