# SPDX-License-Identifier: Apache-2.0
"""Orrery for another CPU, compiled here for AArch64 and run under QEMU: its fast kernels compute the bits of this
machine's in every case of the judge, and trainings have the same digests.

Takes the Debian packages g++-aarch64-linux-gnu and qemu-user; the libraries of that architecture are unpacked into
a folder of their own. Arguments: the build tree of this machine.
"""
import os
import pathlib
import shutil
import subprocess
import sys

SOURCE = pathlib.Path(__file__).resolve().parents[2]
NATIVE = pathlib.Path(sys.argv[1]).resolve()
FOLDER = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache") / "orrery/aarch64"
ROOT, BUILD = FOLDER / "root", NATIVE / "aarch64"
TARGET = "aarch64-linux-gnu"
LIBRARIES = ["liblua5.4-dev", "libspdlog-dev", "libxxhash-dev", "libsodium-dev", "zlib1g-dev", "libpng-dev",
             "libjpeg62-turbo-dev", "libhwloc-dev", "libedit-dev"]
BITS = "tests/conformance/bits_of_cases"
LIBM = {"pointwise_f64_unary40"}  # what the C library computes, whose last bit is its own
HEADERS = ["boost", "nlohmann", "CLI", "dtl"]  # alike for all architectures
TRAININGS = [["examples/mlp.lua", "steps=20"], ["examples/gpt.lua", "steps=3", "sample=0"],
             ["examples/resnet.lua", "steps=1"], ["examples/lstm.lua", "steps=1", "sample=0"]]


def run(*command, **more):
    done = subprocess.run([str(word) for word in command], text=True, capture_output=True, **more)
    if done.returncode:
        said = done.stdout[-2000:] + done.stderr[-2000:]
        sys.exit(f"{' '.join(map(str, command))}: exit code {done.returncode}\n{said}")
    return done.stdout


def unpack_libraries():
    """A root of the other architecture, by an apt whose state is its own."""
    if (ROOT / "usr/include/boost").exists():
        return
    apt = FOLDER / "apt"
    for part in ("state/lists/partial", "cache/archives/partial"):
        (apt / part).mkdir(parents=True, exist_ok=True)
    (apt / "status").touch()
    options = ["-q", "-y", "-o", "APT::Architecture=arm64", "-o", "APT::Architectures=arm64",
               "-o", f"Dir::State={apt}/state", "-o", f"Dir::State::status={apt}/status",
               "-o", f"Dir::Cache={apt}/cache", "-o", "APT::Sandbox::User=root"]
    run("apt-get", *options, "update")
    run("apt-get", *options, "--no-install-recommends", "--download-only", "install", *LIBRARIES)
    ROOT.mkdir(exist_ok=True)
    for package in sorted((apt / "cache/archives").glob("*.deb")):
        run("dpkg-deb", "-x", package, ROOT)
    for name in HEADERS:
        (ROOT / "usr/include" / name).symlink_to(f"/usr/include/{name}")


def cross_file():
    path = FOLDER / "cross.ini"
    cached = "'ccache', " if shutil.which("ccache") else ""
    path.write_text(f"""[binaries]
c = ['{TARGET}-gcc', '--sysroot={ROOT}']
cpp = [{cached}'{TARGET}-g++', '--sysroot={ROOT}']
ar = '{TARGET}-ar'
strip = '{TARGET}-strip'
pkgconfig = 'pkg-config'
exe_wrapper = ['qemu-aarch64', '-L', '{ROOT}']
[properties]
sys_root = '{ROOT}'
pkg_config_libdir = ['{ROOT}/usr/lib/{TARGET}/pkgconfig', '/usr/share/pkgconfig']
boost_includedir = '{ROOT}/usr/include'
boost_librarydir = '{ROOT}/usr/lib/{TARGET}'
[host_machine]
system = 'linux'
cpu_family = 'aarch64'
cpu = 'aarch64'
endian = 'little'
""")
    return path


def build():
    if not (BUILD / "build.ninja").exists():
        # Kernels are optimized all the same; the rest need not be fast.
        run("meson", "setup", BUILD, SOURCE, "--cross-file", cross_file(), "-Dtests=false", "-Dgpu_archs=",
            "-Dwerror=true", "-Doptimization=0")
    run("ninja", "-C", BUILD, "one_host", BITS)
    run("ninja", "-C", NATIVE, "one_host", BITS)


def both(program, *words):
    """What the program prints there and here."""
    settings = {"ORRERY_NO_DIR": "1", "ORRERY_PIN": "none", "ORRERY_THREADS": "2"}
    for tree, emulator in ((BUILD, ["qemu-aarch64", "-L", ROOT]), (NATIVE, [])):
        yield run(*emulator, tree / program, *words, cwd=SOURCE,
                  env=os.environ | settings | {"ORRERY_PLUGIN_PATH": f"{tree}/kernels/cpu"})


def compare_cases():
    there, here = ([line for line in text.splitlines() if line.split()[0] not in LIBM] for text in both(BITS, "cpu"))
    for line, other in zip(there, here):
        if line != other:
            sys.exit(f"under AArch64: {line}\nhere:          {other}")
    if len(there) != len(here):
        sys.exit(f"{len(there)} cases under AArch64, {len(here)} here")
    print(f"{len(here)} cases have the same bits", flush=True)


def digest(text):
    return [line for line in text.splitlines() if line.startswith("digest")]


def main():
    if not shutil.which(f"{TARGET}-g++") or not shutil.which("qemu-aarch64"):
        print("the packages g++-aarch64-linux-gnu and qemu-user are not installed")
        sys.exit(77)
    FOLDER.mkdir(parents=True, exist_ok=True)
    unpack_libraries()
    build()
    compare_cases()
    for words in TRAININGS:
        there, here = map(digest, both("orrery", "run", *words))
        if not here or there != here:
            sys.exit(f"{' '.join(words)}: {there} under AArch64, {here} here")
        print(f"{' '.join(words)}: {here[0]} on both", flush=True)


main()
