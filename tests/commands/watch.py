"""Kills programs at chosen moments: after a time, or at a change in the folder that they write into.

Changes come from inotify, so a program is hit some ten microseconds after the change, whatever its phase, and nothing is added to it: no
tracer, no preloaded library.
"""

import ctypes
import os
import pathlib
import re
import select
import signal
import struct
import subprocess
import time

LIBC = ctypes.CDLL(None, use_errno=True)
CLOSE_WRITE, MOVED_FROM, MOVED_TO, CREATE, DELETE, IS_DIR, ONLYDIR = 0x8, 0x40, 0x80, 0x100, 0x200, 0x40000000, 0x01000000
NAMES = {CLOSE_WRITE: "written", MOVED_FROM: "moved away", MOVED_TO: "moved in", CREATE: "made", DELETE: "removed"}


class FolderWatch:
    """Changes below a folder that need not exist yet; its parent must."""

    def __init__(self, folder):
        self.folder = pathlib.Path(folder)
        self.fd = LIBC.inotify_init1(os.O_CLOEXEC | os.O_NONBLOCK)
        if self.fd < 0:
            raise OSError(ctypes.get_errno(), "inotify_init1")
        self.watched = {}
        self.add(self.folder.parent)
        self.add_tree(self.folder)

    def close(self):
        os.close(self.fd)

    def add(self, folder):
        mask = CLOSE_WRITE | MOVED_FROM | MOVED_TO | CREATE | DELETE | ONLYDIR
        watch = LIBC.inotify_add_watch(self.fd, os.fsencode(folder), ctypes.c_uint32(mask))
        if watch >= 0:
            self.watched[watch] = pathlib.Path(folder)

    def add_tree(self, folder):
        """A folder may have got folders of its own before it was watched."""
        self.add(folder)
        if folder.is_dir():
            for entry in os.scandir(folder):
                if entry.is_dir(follow_symlinks=False):
                    self.add_tree(pathlib.Path(entry.path))

    def changes(self, timeout, also=()):
        """Labels of the changes since the last call: ("made", "shard-N.partial"), numbers and digests taken out of the names. Waits for
        one, or for one of the descriptors `also`."""
        if self.fd not in select.select([self.fd, *also], [], [], max(0, timeout))[0]:
            return []
        try:
            data = os.read(self.fd, 1 << 16)
        except BlockingIOError:
            return []
        found, at = [], 0
        while at < len(data):
            watch, mask, _, length = struct.unpack_from("iIII", data, at)
            name = data[at + 16 : at + 16 + length].split(b"\0")[0]
            at += 16 + length
            if watch not in self.watched:
                continue
            path = self.watched[watch] / os.fsdecode(name)
            if path != self.folder and self.folder not in path.parents:
                continue
            if mask & IS_DIR and mask & (CREATE | MOVED_TO):
                self.add_tree(path)
            where = "." if path == self.folder else str(path.relative_to(self.folder))
            for bit, what in NAMES.items():
                if mask & bit:
                    found.append((what, normal(where)))
        return found


def normal(path):
    """Names without what differs between two runs."""
    return re.sub(r"[0-9a-f]{6,}|[0-9]+", "N", path)


def start(argv, **options):
    return subprocess.Popen([str(a) for a in argv], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **options)


def record(argv, folder, **options):
    """Runs a program to its end. Gives (status, seconds, labels of all changes in order)."""
    watch = FolderWatch(folder)
    try:
        begun, labels = time.monotonic(), []
        process = start(argv, **options)
        ended = os.pidfd_open(process.pid)
        while not select.select([ended], [], [], 0)[0]:
            labels += watch.changes(1, [ended])
        seconds = time.monotonic() - begun
        labels += watch.changes(0)
        os.close(ended)
        process.communicate()
        return process.returncode, seconds, labels
    finally:
        watch.close()


def kill(process):
    """True where it was still running."""
    process.send_signal(signal.SIGKILL)
    process.communicate()
    return process.returncode == -signal.SIGKILL


def kill_after(argv, seconds, **options):
    process = start(argv, **options)
    time.sleep(seconds)
    return kill(process)


def wait_for(process, watch, label, occurrence=1, limit=60):
    """Until the so-manieth change of this label, or the end of the process. True for the first."""
    ended, until = os.pidfd_open(process.pid), time.monotonic() + limit
    try:
        while not select.select([ended], [], [], 0)[0] and time.monotonic() < until:
            occurrence -= watch.changes(1, [ended]).count(label)
            if occurrence <= 0:
                return True
        return False
    finally:
        os.close(ended)


def kill_at(argv, folder, label, occurrence=1, delay=0.0, **options):
    """Kills at the so-manieth change of this label. True where it was still running then."""
    watch = FolderWatch(folder)
    try:
        process = start(argv, **options)
        wait_for(process, watch, label, occurrence)
        if delay:
            time.sleep(delay)
        return kill(process)
    finally:
        watch.close()
