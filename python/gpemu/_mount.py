# SPDX-License-Identifier: MIT
"""A mount of gpemu-fs for the time of a `with`."""
from __future__ import annotations

import errno
import json
import os
import shutil
import signal
import socket
import struct
import subprocess
import tempfile
import time
import warnings
import weakref
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Dict, List, Mapping

from gpemu._library import Error, NotFound, program, word
from gpemu._options import MountOptions, takes

if TYPE_CHECKING:
    from typing_extensions import Unpack

# A wait for gpemu-fs looks so often whether it still lives. arbitrary
_LOOK_S = 0.05
# gpemu-fs unmounts at once unless the machine hangs. arbitrary
_END_S = 30
# struct ucred of unix(7): pid, uid, gid
_CREDENTIALS = struct.Struct("=iII")
# options without a value
_FLAGS = {"replace", "verbose"}


def arguments(options: Mapping[str, Any], flags=frozenset()) -> List[str]:
    """Options as a program of gpemu takes them; a list is one of each."""
    words = []
    for key, value in options.items():
        name = "--" + key.replace("_", "-")
        if key in flags and isinstance(value, bool):
            words += [name] if value else []
        elif isinstance(value, (list, tuple)):
            words += [part for item in value for part in (name, word(item))]
        elif value is not None:
            words += [name, word(value)]
    return words


def _end(process: subprocess.Popen, path: str, own: bool, pid: int) -> None:
    """Unmount, and wait for the end of gpemu-fs."""
    if os.getpid() != pid:
        return
    try:
        process.send_signal(signal.SIGTERM)
        process.wait(_END_S)
    except BaseException:
        process.kill()
        process.wait()
        raise
    finally:
        if _failed(process) and shutil.which("fusermount3"):
            subprocess.run(["fusermount3", "-u", "-z", path],
                           stderr=subprocess.DEVNULL, check=False)
        if own:
            os.rmdir(path)


def _failed(process: subprocess.Popen) -> bool:
    return process.returncode not in (None, 0, -signal.SIGTERM)


class Mount(os.PathLike):
    """What gpemu.mount() returns: a path, to be used as one."""

    def __init__(self, source: Any, mountpoint: Any, timeout_s: float,
                 options: Mapping[str, Any]):
        command = [program("fs"), "-f", *arguments(options, _FLAGS), "--",
                   word(source)]
        if _missing(source):
            raise NotFound(f"{word(source)}: {os.strerror(errno.ENOENT)}",
                           errno.ENOENT)
        self._log: IO[bytes] = tempfile.TemporaryFile()
        self._source = word(source)
        self._stats: Dict[str, Any] = {}
        #: where the dataset is
        self.path = Path(mountpoint or tempfile.mkdtemp(prefix="gpemu-"))
        self.path = self.path.absolute()
        try:
            self._start(command, mountpoint is None, timeout_s)
        except BaseException:
            if mountpoint is None and self.path.exists():  # never started
                self.path.rmdir()
            raise

    def __fspath__(self) -> str:
        return str(self.path)

    def __str__(self) -> str:
        return str(self.path)

    def __repr__(self) -> str:
        ended = "" if self._end.alive else ", unmounted"
        return f"<gpemu.Mount of {self._source} at {self.path}{ended}>"

    def __reduce__(self):
        """Another process gets the path; this one unmounts."""
        return Path, (str(self.path),)

    @property
    def stats(self) -> Dict[str, Any]:
        """.gpemu/stats, as gpemu-fs(1) explains; after the end the last one.
        Times are in emulated us, sizes in bytes, as the names say."""
        if self._end.alive:
            self._stats = json.loads((self.path / ".gpemu/stats").read_text())
        return self._stats

    def control(self, command: str) -> None:
        """A command of .gpemu/control, such as "epoch" or "set storage nvme".

        gpemu.Loader and gpemu-train(1) begin the epochs themselves; for other
        loaders call control("epoch").
        """
        try:
            (self.path / ".gpemu/control").write_text(command + "\n")
        except OSError as error:
            reason = self._messages().rpartition("\n")[2]
            raise Error(f"{command}: {reason or error}",
                        error.errno) from None

    def close(self) -> None:
        """Unmount. Open files fail from now on. May be called again."""
        if not self._end.alive:
            return
        try:
            self.stats
        except OSError:
            pass
        self._end()
        if _failed(self._process):
            warnings.warn(f"gpemu-fs ended with {self._process.returncode}: "
                          f"{self._messages()}", RuntimeWarning, stacklevel=2)

    def __enter__(self) -> Mount:
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    def _start(self, command: List[str], own: bool, timeout_s: float) -> None:
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as ready:
            # any user may send to an abstract name
            ready.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
            ready.bind("")  # the kernel chooses an abstract name: unix(7)
            ready.settimeout(_LOOK_S)
            name = "@" + os.fsdecode(ready.getsockname()[1:])
            # a session of its own: Ctrl-C is for this program, which unmounts
            self._process = subprocess.Popen(
                [*command, str(self.path)],
                env=dict(os.environ, NOTIFY_SOCKET=name),
                stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                stderr=self._log, start_new_session=True)
            self._end = weakref.finalize(
                self, _end, self._process, str(self.path), own, os.getpid())
            try:
                self._await(ready, time.monotonic() + timeout_s)
            except BaseException:
                self._end()
                raise

    def _await(self, ready: socket.socket, deadline: float) -> None:
        while True:
            try:
                if _says_ready(ready):
                    return
            except socket.timeout:
                pass
            if self._process.poll() is not None:
                raise Error(self._messages() or "gpemu-fs ended with status "
                            f"{self._process.returncode}")
            if time.monotonic() > deadline:
                raise Error("gpemu-fs was not ready in time")

    def _messages(self) -> str:
        # the file's offset is that of gpemu-fs, too
        size = os.fstat(self._log.fileno()).st_size
        text = os.pread(self._log.fileno(), size, 0)
        return text.decode(errors="replace").strip()


def _says_ready(ready: socket.socket) -> bool:
    """Takes a message. Does this user, or root, say that it is ready?"""
    text, own, _, _ = ready.recvmsg(512, socket.CMSG_SPACE(_CREDENTIALS.size))
    users = [_CREDENTIALS.unpack(data)[1] for level, kind, data in own
             if (level, kind) == (socket.SOL_SOCKET, socket.SCM_CREDENTIALS)]
    return (b"READY=1" in text.splitlines()
            and users in ([0], [os.geteuid()]))


def _missing(source: Any) -> bool:
    """Is it a path, and nothing there? gpemu-fs reports anything else."""
    path = word(source)
    return "\0" not in path and (":" not in path or path[0] in "/.") \
        and not os.path.lexists(path)


@takes(MountOptions, "mount")
def mount(source: Any, mountpoint: Any = None, *, timeout_s: float = 600,
          **options: Unpack[MountOptions]) -> Mount:
    """Serve a dataset behind an emulated storage device and a cache.

        with gpemu.mount("/data/train", storage="hdd", cache_policy="minio",
                         cache_size="35%") as data:
            for batch in gpemu.Loader(data, gpu, batch=64):
                gpu.step(batch)
            print(data.stats["hits"])

    Starts gpemu-fs(1) and waits until the mount is ready, for timeout_s wall
    seconds at most. The end of the `with` unmounts, also after an exception or
    Ctrl-C, and so does the end of the program. If this process is killed, the
    mount stays until `fusermount3 -u` ends it.

    source: a folder, "synth:imagenet", "pack:FILE".
    mountpoint: an empty folder; by default a temporary one.
    options: of gpemu-fs(1), '_' for '-', as the signature lists them; tier may
        be a list. None: the default there.
    """
    return Mount(source, mountpoint, timeout_s, options)
