#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Traffic of a KV cache that is offloaded to a folder: users in conversations of
several turns, which they take together: nobody is a turn ahead. In each turn the
keys and values of all turns before are needed (decode), and those of the new
tokens are made (prefill). Entries live in memory of a given size; the least
recently used ones go to files, are synced, and stay there. The options have the
names of MLPerf Storage's KV cache benchmark; no code is from there.

    kv_cache.py FOLDER RECORD [KEY=VALUE...]

scale: the part of each entry's bytes that is moved (gpemu-fs --writable-scale);
time_scale: wall seconds of an emulated one.
"""
import collections
import json
import os
import sys
import threading
import time

# Source: MLPerf Storage, kv_cache_benchmark/kv_cache/models.py: layers, heads of
# keys and values, numbers of each, twice 2 bytes
TOKEN = {'llama3.1-8b': 32 * 8 * 128 * 4, 'llama3.1-70b-instruct': 80 * 8 * 128 * 4,
         'mistral-7b': 32 * 8 * 128 * 4, 'llama2-7b': 32 * 32 * 128 * 4}
DEFAULTS = {'model': 'llama3.1-8b', 'num_users': 4, 'turns': 6, 'tokens': 2048,
            'cpu_mem_gb': 0., 'scale': 1., 'time_scale': 1.}


class Tiers:
    """Memory of `room` bytes above a folder."""

    def __init__(self, folder, room, entry):
        self.folder, self.room, self.entry = folder, room, entry
        self.memory = collections.OrderedDict()
        self.spilling = set()
        self.lock = threading.Condition()
        self.count = collections.Counter()
        self.reads = []

    def path(self, key):
        return f'{self.folder}/kv-{key[0]}-{key[1]}'

    def spill(self, key):
        fd = os.open(self.path(key), os.O_WRONLY | os.O_CREAT, 0o644)
        left = memoryview(bytes(self.entry))
        while left:
            left = left[os.write(fd, left):]
        os.fsync(fd)
        # a later read is one of the storage
        os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
        os.close(fd)
        with self.lock:
            self.count['write_bytes'] += self.entry
            self.spilling.remove(key)
            self.lock.notify_all()

    def put(self, key):
        with self.lock:
            self.memory[key] = True
            over = []
            while len(self.memory) * self.entry > self.room:
                over.append(self.memory.popitem(last=False)[0])
            self.spilling.update(over)
        for victim in over:
            self.spill(victim)

    def get(self, key):
        with self.lock:
            self.count['hits' if key in self.memory else 'misses'] += 1
            if key in self.memory:
                self.memory.move_to_end(key)
                return
            # another user's thread may be writing it
            self.lock.wait_for(lambda: key not in self.spilling)
        begin = time.monotonic()
        with open(self.path(key), 'rb', buffering=0) as f:
            while f.read(1 << 20):
                pass
            os.posix_fadvise(f.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
        took = time.monotonic() - begin
        with self.lock:
            self.count['read_bytes'] += self.entry
            self.reads.append(took)


def user(tiers, number, turns, together):
    for turn in range(turns):
        # else a user whose entries are in memory is done before others begin
        together.wait()
        for before in range(turn):
            tiers.get((number, before))
        tiers.put((number, turn))


def main():
    options = dict(DEFAULTS)
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    for word in sys.argv[3:]:
        key, _, value = word.partition('=')
        if key not in options:
            sys.exit(f'{key}: unknown (known: {" ".join(options)})')
        options[key] = type(DEFAULTS[key])(value)
    entry = int(TOKEN[options['model']] * options['tokens'] * options['scale'])
    room = options['cpu_mem_gb'] * 1e9 * options['scale']
    tiers = Tiers(sys.argv[1], room, entry)
    together = threading.Barrier(options['num_users'])
    threads = [threading.Thread(target=user, args=(tiers, i, options['turns'], together))
               for i in range(options['num_users'])]
    begin = time.monotonic()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    scale = options['time_scale']
    count = tiers.count
    record = {
        'seconds': (time.monotonic() - begin) / scale,
        'entry_bytes': entry / options['scale'],
        'hits': count['hits'], 'misses': count['misses'],
        'read_bytes': count['read_bytes'] / options['scale'],
        'write_bytes': count['write_bytes'] / options['scale'],
        'read_p95_s': sorted(tiers.reads)[len(tiers.reads) * 95 // 100] / scale
        if tiers.reads else 0,
        'tokens': options['num_users'] * options['turns'] * options['tokens'],
    }
    with open(sys.argv[2], 'w') as f:
        json.dump(record, f)


main()
