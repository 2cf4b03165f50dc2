# SPDX-License-Identifier: MIT
"""A loader and its trainer, without a framework: workers that read files, each from
its own queue of batches, and a process that takes the batches in turn.

    reader.py FOLDER [--workers N] [--epochs N] [--batch N] [--prepare-ms X]
                     [--step-ms X] [--shuffle]

Prints the seconds of each epoch."""
import argparse
import multiprocessing
import os
import random
import time


def work(todo, done, prepare_s, spin):
    for paths in iter(todo.get, None):
        for path in paths:
            with open(path, "rb") as file:
                file.read()
            end = time.perf_counter() + prepare_s
            if not spin:
                time.sleep(prepare_s)
            while time.perf_counter() < end:
                pass
        done.put(len(paths))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("folder")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--batch", type=int, default=4)
    parser.add_argument("--prepare-ms", type=float, default=5)
    parser.add_argument("--step-ms", type=float, default=2)
    parser.add_argument("--prefetch", type=int, default=2)
    parser.add_argument("--shuffle", action="store_true")
    parser.add_argument("--spin", action="store_true")
    o = parser.parse_args()
    files = sorted(os.path.join(folder, name)
                   for folder, _, names in os.walk(o.folder) for name in names)
    workers = []
    for _ in range(o.workers):
        todo, done = multiprocessing.Queue(), multiprocessing.Queue()
        process = multiprocessing.Process(
            target=work, args=(todo, done, o.prepare_ms / 1000, o.spin))
        process.start()
        workers.append((process, todo, done))
    for epoch in range(o.epochs):
        if o.shuffle:
            random.Random(epoch).shuffle(files)
        batches = [files[i:i + o.batch] for i in range(0, len(files), o.batch)]
        begin, sent = time.perf_counter(), 0
        for i in range(len(batches)):
            while sent < len(batches) and sent < i + o.prefetch * o.workers:
                workers[sent % o.workers][1].put(batches[sent])
                sent += 1
            workers[i % o.workers][2].get()
            time.sleep(o.step_ms / 1000)
        print(f"{time.perf_counter() - begin:.6f}", flush=True)
    for process, todo, _ in workers:
        todo.put(None)
        process.join()


if __name__ == "__main__":
    main()
