# SPDX-License-Identifier: MIT
"""Ground truth of storage: a device, and gpemu-fs with the device's profile.

Part of tests/bench/truth, which has the options. A device is a folder and, if
named, what stands between it and the reader:

    PATH            the folder's own device
    throttled:PATH  with the kernel's limits of a cgroup: 4,000 reads and 100 MB
                    a second (io.max, or blkio.throttle.*)
    bindfs:PATH     through a bindfs mount, which forwards O_DIRECT
    sshfs:PATH      through sshfs without its caches of names, over a link of 1 ms
                    and 100 MB a second each way
    NAME:PATH       through a gpemu-fs mount with the storage profile NAME

Each point is measured on the device, on the emulation and on the device again:
how far the device is off itself bounds what an emulation can reach.
"""
import contextlib
import datetime
import json
import os
import pathlib
import platform
import random
import shutil
import statistics
import subprocess
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("GPEMU_BUILD", ROOT / "build")).resolve()
PER_S, MB_PER_S = 4000, 100  # of throttled; arbitrary, below most disks
LINK_MS = 1  # each way to the server of sshfs; arbitrary, of one that is near
SFTP_SERVER = "/usr/lib/openssh/sftp-server"  # of Debian's openssh-sftp-server
FILES = 4000  # of ImageNet's sizes, 440 MB
GOALS = {"rate": 5, "p50": 10, "p99": 25, "epoch": 5}  # percent
SIZES = ("4 KiB", "128 KiB", "file")
DEPTHS = (1, 8, 64)
BUSY = 0.15  # a core that others kept busy for more: disturbed
EPOCHS = {
    "sync, 1 worker": ("--loader", "sync", "--workers", "1"),
    "async, 32 reads": ("--loader", "async", "--workers", "1", "--queue-depth", "32"),
}


def points():
    """Name of each, and the arguments of its measurement."""
    for size in SIZES:
        for depth in DEPTHS:
            yield f"{size}, depth {depth}", (size, depth)
    for name, loader in EPOCHS.items():
        yield f"epoch, {name}", loader


def forget():
    """Names, inodes and pages that the kernel remembers."""
    os.sync()
    pathlib.Path("/proc/sys/vm/drop_caches").write_text("3")


# --- devices ----------------------------------------------------------------


class Device:
    """Where the files are, and how a program that reads them is started."""

    def __init__(self, kind, folder):
        self.kind, self.folder = kind, folder
        self.group = None

    def run(self, command, **more):
        enter = None
        if self.group:
            tasks = self.group / "cgroup.procs"
            enter = lambda: tasks.write_text(str(os.getpid()))  # noqa: E731
        return subprocess.run(
            list(map(str, command)), check=True, preexec_fn=enter, **more
        )

    def interrupt(self, command, seconds):
        """Run it; SIGINT after so many seconds, if any. Did it end?"""
        try:
            self.run(["timeout", "--signal=INT", seconds, *command])
        except subprocess.CalledProcessError as e:
            if e.returncode == 124:
                return False
            raise
        return True


@contextlib.contextmanager
def throttled(path):
    """A cgroup in which reads of the path's disk are limited."""
    number = os.stat(path).st_dev
    number = f"{os.major(number)}:{os.minor(number)}"
    v1 = pathlib.Path("/sys/fs/cgroup/blkio")
    group = (v1 if v1.is_dir() else v1.parent) / f"gpemu-truth-{os.getpid()}"
    group.mkdir()
    try:
        if v1.is_dir():
            limits = {"iops": PER_S, "bps": MB_PER_S * 10**6}
            for what, most in limits.items():
                (group / f"blkio.throttle.read_{what}_device").write_text(
                    f"{number} {most}"
                )
        else:
            (v1.parent / "cgroup.subtree_control").write_text("+io")
            (group / "io.max").write_text(
                f"{number} riops={PER_S} rbps={MB_PER_S * 10**6}"
            )
        yield group
    finally:
        group.rmdir()


@contextlib.contextmanager
def mounted(o, command, at, **pipes):
    """The command in the foreground; the time it uses counts as ours."""
    at.mkdir(exist_ok=True)
    server = subprocess.Popen(list(map(str, [*command, "-f", at])), **pipes)
    o.servers.append(server.pid)
    try:
        while not at.is_mount():
            if server.poll() is not None:
                raise SystemExit(f"truth: {command[0]} ended")
            time.sleep(0.02)
        yield at
    finally:
        server.terminate()  # it unmounts
        server.wait()
        o.servers.remove(server.pid)


@contextlib.contextmanager
def far_away(o, folder, at):
    """sshfs to a server on this machine, over a link with delay and bandwidth."""
    link = [BUILD / "tests/bench/bench_link", str(LINK_MS), str(MB_PER_S)]
    chain, ends = [], []
    try:
        for command in (link, [SFTP_SERVER], link):
            chain.append(subprocess.Popen(
                command, stdin=ends.pop() if ends else subprocess.PIPE,
                stdout=subprocess.PIPE,
            ))
            o.servers.append(chain[-1].pid)
            if len(chain) > 1:
                chain[-2].stdout.close()
            ends.append(chain[-1].stdout)
        ends.append(chain[0].stdin)
        with mounted(o, ["sshfs", "-o", "passive,dir_cache=no", f"near:{folder}"],
                     at, stdin=ends[0], stdout=ends[1]):
            for end in ends:
                end.close()
            yield at
    finally:
        for p in chain:  # each ends when its input does
            for end in (p.stdin, p.stdout):
                if end:
                    end.close()
        for p in chain:
            p.wait()
            o.servers.remove(p.pid)


def gpemu_fs(o, profile, source, at):
    return mounted(
        o, [BUILD / "gpemu-fs", "-s", profile, "-p", "none", source], at
    )


@contextlib.contextmanager
def device(o, work):
    """The real one, with its files."""
    kind, folder = o.kind, work.disk
    d = Device(kind, folder)
    with contextlib.ExitStack() as stack:
        if kind == "throttled":
            d.group = stack.enter_context(throttled(folder))
        elif kind == "bindfs":
            d.folder = stack.enter_context(
                mounted(o, ["bindfs", "--forward-odirect=4096", folder],
                        work.state / "mnt")
            )
        elif kind == "sshfs":
            d.folder = stack.enter_context(
                far_away(o, folder, work.state / "mnt")
            )
        elif kind:
            d.folder = stack.enter_context(
                gpemu_fs(o, kind, work.ram, work.state / "mnt")
            )
        yield d


# --- measurements -----------------------------------------------------------


def fio(d, size, depth, o, work):
    """IOPS, MB/s, p50 and p99 as a program sees them."""
    command = [
        "fio", "--name=r", "--direct=1", f"--ioengine={o.engine}",
        f"--iodepth={depth}", "--lat_percentiles=1", "--clat_percentiles=0",
        "--thread", "--output-format=json", "--percentile_list=50:99",
    ]
    if size == "file":
        log = work.state / "iolog"
        write_iolog(d.folder / "files", log)
        command += [f"--read_iolog={log}", "--replay_no_stall=1"]
    else:
        command += [
            f"--filename={d.folder / 'data'}", "--rw=randread",
            f"--bs={size.replace(' KiB', 'k')}", f"--size={o.data_bytes}",
            f"--runtime={int(o.point_seconds * 1000)}ms", "--time_based",
            "--ramp_time=300ms",
        ]
    forget()
    text = d.run(command, stdout=subprocess.PIPE, text=True, cwd=work.state).stdout
    read = json.loads(text[text.index("{"):])["jobs"][0]["read"]
    ns = read["lat_ns"]["percentile"]
    return {
        "per_s": round(read["total_ios"] / read["runtime"] * 1e3, 2),
        "mb_per_s": round(read["io_bytes"] / read["runtime"] / 1e3, 3),
        "p50_us": ns["50.000000"] / 1e3,
        "p99_us": ns["99.000000"] / 1e3,
    }


def write_iolog(folder, path):
    """All files in random order, each one read of its whole blocks."""
    files = sorted(p for p in folder.glob("*/*") if p.is_file())
    random.Random(1).shuffle(files)
    files = [(p, p.stat().st_size // 4096 * 4096) for p in files]
    files = [(p, size) for p, size in files if size]
    lines = ["fio version 2 iolog", *(f"{p} add" for p, _ in files)]
    for p, size in files:
        lines += [f"{p} open", f"{p} read 0 {size}", f"{p} close"]
    path.write_text("\n".join(lines) + "\n")


def epoch(d, loader, work):
    """Seconds of one; the loader never waits for the GPU."""
    record = work.state / "epoch.json"
    forget()
    d.run(
        [BUILD / "gpemu-train", "--data", d.folder / "files", "--prep", "none",
         "--direct", "on", "--pin", "off", "-b", 64, "--model", "alexnet",
         "--gpu", "a100", "--time-scale", 0.001, "--progress", "off",
         "--ceiling", "off", "--index", "off", "--json", record, *loader],
        stdout=subprocess.DEVNULL,
    )
    found = json.loads(record.read_text())["epochs"][0]
    return {"seconds": round(found["wall_seconds"], 4)}


def measure_points(d, name, o, work):
    """Each point, unless a run before has it."""
    for point, arguments in points():
        if work.has(name, point):
            continue
        if o.until and time.monotonic() > o.until:
            raise TimeoutError
        with o.watch(o.servers) as watch:
            if point.startswith("epoch"):
                result = epoch(d, arguments, work)
            else:
                result = fio(d, *arguments, o, work)
        result["others_busy"] = round(watch.busy, 3)
        work.keep(name, point, result)
        print(f"{name:9} {point:24}", *(f"{v:11.6g}" for v in result.values()),
              flush=True)


def measure_profile(d, o, work):
    """gpemu-profile measure; what a stop left is in its state file."""
    if work.profile.exists():
        return
    writable = o.kind in ("", "throttled", "bindfs", "sshfs")
    left = max(1, o.until - time.monotonic()) if o.until else 0
    done = d.interrupt(
        [BUILD / "gpemu-profile", "measure", "--storage",
         d.folder if writable else d.folder / "data", "--space", o.data_bytes,
         "--seconds", o.point_seconds, "--output", work.profile,
         "--json", work.state / "fit.json"],
        left,
    )
    if not done:
        raise TimeoutError


# --- one device's work, which a later call continues -------------------------


class Work:
    def __init__(self, o):
        self.state = pathlib.Path(o.work)
        self.state.mkdir(parents=True, exist_ok=True)
        self.profile = self.state / "device.yaml"
        name = f"gpemu-truth-{o.space}-{o.files}"
        self.disk = pathlib.Path(o.path).resolve() / name
        self.ram = pathlib.Path("/dev/shm") / name
        self.file = self.state / "points.json"
        self.found = json.loads(self.file.read_text()) if self.file.exists() else {}
        # what was disturbed in an earlier call is measured again
        for results in self.found.values():
            for point in [p for p, r in results.items() if r["others_busy"] > BUSY]:
                del results[point]

    def has(self, name, point):
        return point in self.found.get(name, {})

    def keep(self, name, point, result):
        self.found.setdefault(name, {})[point] = result
        self.file.write_text(json.dumps(self.found))

    def make(self, o):
        """The files, on the device and in memory."""
        if not (self.ram / "files").exists():
            self.ram.mkdir(exist_ok=True)
            subprocess.run(
                [BUILD / "gpemu-data", "make", "--dataset", "imagenet", "--content",
                 "random", "--files", str(o.files), "--classes", "40",
                 self.ram / "files"],
                check=True, stdout=subprocess.DEVNULL,
            )
            with open(self.ram / "data", "wb") as f:
                for _ in range(o.data_bytes >> 20):
                    f.write(os.urandom(1 << 20))
        if not self.disk.exists():
            shutil.copytree(self.ram, self.disk)
            os.sync()

    def remove(self):
        for folder in (self.ram, self.disk):
            shutil.rmtree(folder, ignore_errors=True)


def bench(o):
    kind, colon, path = o.storage.rpartition(":")
    o.kind, o.path = (kind if colon else ""), path
    o.data_bytes = o.space << 20
    o.until = time.monotonic() + o.stop_after if o.stop_after else 0
    o.servers = []
    own = None
    if not o.work:
        own = tempfile.TemporaryDirectory(prefix="truth.")
        o.work = own.name
    work = Work(o)
    done = False
    try:
        work.make(o)
        done = steps(o, work)
    finally:
        if done or own:
            work.remove()
    if done and o.output:
        text = json.dumps(record(o, work), indent=1) + "\n"
        pathlib.Path(o.output).write_text(text)


def steps(o, work):
    try:
        with device(o, work) as d:
            measure_profile(d, o, work)
            measure_points(d, "before", o, work)
        at = work.state / "emulated"
        with gpemu_fs(o, work.profile, work.ram, at) as folder:
            measure_points(Device("", folder), "emulated", o, work)
        with device(o, work) as d:
            measure_points(d, "after", o, work)
    except TimeoutError:
        print("truth: not done; the same command continues")
        return False
    return True


def record(o, work):
    found = work.found
    # what the model gives for the measured points, without a mount
    fits = {
        p["point"].replace("4.00", "4"): p
        for p in json.loads((work.state / "fit.json").read_text())["points"]
    }
    return {
        "kind": "storage",
        "device": o.title or o.storage,
        "date": str(datetime.date.today()),
        "software": f"Linux {platform.release()}, fio with {o.engine}",
        **o.where(),
        "points": [
            {"point": name,
             **{k: found[k][name] for k in ("before", "emulated", "after")},
             **({"fit": fits[f"random {name}"]} if f"random {name}" in fits else {})}
            for name, _ in points()
        ],
    }


# --- the page ----------------------------------------------------------------


def values(point, key):
    return [point[k][key] for k in ("before", "after", "emulated")]


def errors(point):
    """Of each number: its goal's name, what the device and the emulation had,
    and the error in percent, signed: + too slow."""
    if "seconds" in point["before"]:
        keys = {"epoch": "seconds"}
    else:
        keys = {"rate": "per_s", "p50": "p50_us", "p99": "p99_us"}
    for goal, key in keys.items():
        before, after, emulated = values(point, key)
        real = (before + after) / 2
        over = real / emulated if goal == "rate" else emulated / real
        yield goal, (before, after), emulated, 100 * (over - 1)


def repeats(goal, own, *_):
    """Is the second measurement of the device within the goal of the first?"""
    over = own[0] / own[1] if goal == "rate" else own[1] / own[0]
    return abs(100 * (over - 1)) <= GOALS[goal]


def within(goal, own, emulated, error):
    """Within the goal; or no further from the device than that from itself."""
    return abs(error) <= GOALS[goal], min(own) <= emulated <= max(own)


def show(value, key):
    if key == "epoch":
        return f"{value:.3g} s"
    if key == "rate":
        return f"{value:,.0f}"
    return f"{value:.3g} us" if value < 1000 else f"{value / 1e3:.3g} ms"


def cells(entry):
    goal, own, emulated, error = entry
    good, inside = within(*entry)
    text = f"{error:+.1f} %"
    if not good:
        text = f"{text} (in its range)" if inside else f"**{text}**"
    return [f"{show(own[0], goal)}, {show(own[1], goal)}", show(emulated, goal), text]


def disturbed(point):
    return any(point[k]["others_busy"] > BUSY for k in ("before", "emulated", "after"))


def table(record):
    yield ("| read | a second, twice | emulated | error | p50 | emulated | error "
           "| p99 | emulated | error |")
    yield "|---|" + "---:|" * 9
    for point in record["points"]:
        row = [point["point"] + " (disturbed)" * disturbed(point)]
        for entry in errors(point):
            row += cells(entry)
        yield "| " + " | ".join(row + [""] * (10 - len(row))) + " |"


def summary(record):
    judged = [within(*e) for p in record["points"] for e in errors(p)]
    good = sum(g for g, _ in judged)
    inside = sum(i and not g for g, i in judged)
    itself = sum(repeats(*e) for p in record["points"] for e in errors(p))
    own = [100 * abs(a / b - 1) for p in record["points"]
           for goal, (a, b), *_ in errors(p) if goal in ("rate", "epoch")]
    return (
        f"{good} of {len(judged)} numbers are within the goals, {inside} more between "
        f"the device's own two; of the device's second measurement against its first, "
        f"{itself} are. The device's rates and epochs differ by "
        f"{statistics.median(own):.1f} % from themselves (median; at most "
        f"{max(own):.0f} %)."
    )


def series(records):
    return [
        (r["device"], [
            ((p["before"]["per_s"] + p["after"]["per_s"]) / 2, p["emulated"]["per_s"])
            for p in r["points"] if "per_s" in p["before"]
        ])
        for r in records
    ]


def page(records):
    """The lines of the page about storage."""
    if not records:
        return []
    out = [
        "", "# Storage", "",
        "A device, and a gpemu-fs mount of a copy in memory with the profile that",
        "`gpemu-profile measure --storage` made of the device: the same fio with",
        "O_DIRECT, and the same epoch of gpemu-train, names and pages forgotten before",
        "each. The device is measured before and after the emulation: an emulation",
        "cannot be closer to it than it is to itself, so how many of the second's",
        "numbers are within the goals of the first's is the yardstick. The error is that",
        "of the time, from the mean of the two: + too slow, - too fast.", "",
        f"Goals: reads a second and epochs {GOALS['rate']} %, p50 {GOALS['p50']} %, p99 "
        f"{GOALS['p99']} %. Beyond them an error is",
        "bold, or marked if the emulated number is between the device's own two.",
        "`tests/bench/truth --storage DEVICE -o profiles/truth/NAME.json` adds a device.",
        "", "![Real against emulated reads](figures/ground-truth-storage.svg)",
    ]
    for r in records:
        out += [
            "", f"## {r['device']}", "",
            f"{r['date']}, {r['gpemu']}; {r['software']}; {r['host']}.",
            summary(r), "", *table(r),
        ]
        if r.get("why"):
            out += ["", r["why"]]
    return out
