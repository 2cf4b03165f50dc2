# SPDX-License-Identifier: MIT
"""gpemu.Loader: what it delivers, and how long that stays valid."""
import gc
import json
import os
import pickle
import signal
import socket
import subprocess
import sys
import threading
import time
import weakref

import pytest

pytest.importorskip("numpy", reason="numpy is not installed")

import gpemu  # noqa: E402
from conftest import (BUILD, FAST, LENGTH, N_FILES, ROOT,  # noqa: E402
                      content, sequence)

PINS = ["off", "on", "inline", "direct"]


def raw(files, **options):
    """Bytes as they are in the files, in batches of four."""
    return gpemu.Loader(files, **{**FAST, "prep": "none", "batch": 4,
                                  "workers": 2, "index": "off", "pin": "off",
                                  **options})


def images(files, **options):
    """Images of 8 x 8; the files are none, so all are zeros."""
    return raw(files, **{"prep": "decode", "image_size": 8,
                         "bad_samples": "100%,zeros", **options})


def sequences(tokens, **options):
    """Samples of one size, of known values."""
    return raw(tokens, **{"format": f"tokens:sequence_length={LENGTH}",
                          "prep": f"tokens:sequence_length={LENGTH}",
                          **options})


def right(array, i):
    return bytes(memoryview(array)) == content(i)


# --- what it delivers --------------------------------------------------------


@pytest.mark.parametrize("pin", PINS)
def test_each_sample_once(files, pin):
    with raw(files, epochs=2, pin=pin) as loader:
        assert (loader.n_samples, loader.n_classes) == (N_FILES, 2)
        assert (loader.batch_size, len(loader)) == (4, 7)
        for epoch in range(2):
            seen = []
            for batch in loader:
                assert len(batch) == batch.n == len(batch.data)
                for at, i in enumerate(batch.index):
                    assert right(batch.data[at], i)
                    assert batch.labels[at] == (i >= N_FILES // 2)
                    assert batch.paths[at].endswith(f"/{i:02}.jpg")
                assert not batch.errors.any()
                assert batch.step().step_end_ns > 0
                seen += batch.index.tolist()
            assert sorted(seen) == list(range(N_FILES))
            assert loader.epochs[epoch].epoch == epoch
            assert loader.epochs[epoch].steps == 7
        with pytest.raises(gpemu.Error, match="its 2 epochs ended.*epochs=3"):
            next(iter(loader))
        record = loader.record()
        assert record["totals"]["samples"] == 2 * N_FILES


@pytest.mark.parametrize("pin", PINS)
@pytest.mark.parametrize("output", ["fp32", "uint8"])
def test_images(files, pin, output):
    with images(files, pin=pin, prep_output=output) as loader:
        for batch in loader:
            data, labels = batch
            assert data.shape == (batch.n, 3, 8, 8)
            assert data.dtype == ("f4" if output == "fp32" else "u1")
            assert labels is batch.labels and labels.dtype == "i8"
            assert (batch.errors > 0).all()  # not one is a JPEG
            assert not data.any()
            assert data is batch.data
            data[...] = 7  # the memory is the batch's own
            batch.step()
            assert (data == 7).all()


@pytest.mark.parametrize("pin", PINS)
@pytest.mark.parametrize("to", ["numpy", "torch"])
def test_tokens(tokens, pin, to):
    pytest.importorskip(to, reason=f"{to} is not installed")
    with sequences(tokens, pin=pin, to=to) as loader:
        seen = []
        for batch in loader:
            assert tuple(batch.data.shape) == (batch.n, 2, LENGTH)
            assert str(batch.data.dtype).endswith("int64")
            for sample, i in zip(batch.data, batch.index):
                assert sample.tolist() == sequence(i)
            seen += batch.index.tolist()
        assert sorted(seen) == list(range(N_FILES))


@pytest.mark.parametrize("pin", PINS[:-1])
@pytest.mark.parametrize("prep", ["none", "tokens"])
def test_batches_of_ready_samples(files, tokens, pin, prep):
    """They lie anywhere in memory; the last one is kept."""
    make = sequences if prep == "tokens" else raw
    data = tokens if prep == "tokens" else files
    with make(data, pin=pin, batching="ready", epochs=4) as loader:
        seen, kept = [], None
        for _ in range(4):
            for batch in loader:
                now = batch.index, batch.data
                batch.step()
                for index, arrays in filter(None, (kept, now)):
                    for i, array in zip(index, arrays):
                        assert array.tolist() == sequence(i) \
                            if prep == "tokens" else right(array, i)
                kept = now
                seen += batch.index.tolist()
        assert sorted(seen) == sorted(list(range(N_FILES)) * 4)


def test_no_copy(files):
    with images(files) as loader:
        for batch in loader:
            interface = batch.data.__array_interface__
            assert interface["data"][0] == loader._batch[0].data
            assert not batch.data.flags.owndata


def test_emulated_transforms(files):
    with images(files, prep="emulated", time_scale=1e-4) as loader:
        for data, labels in loader:
            assert data.shape == (len(labels), 3, 8, 8)
            assert not data.any() and not data.flags.writeable


def test_zeros_stay_zeros(files):
    torch = pytest.importorskip("torch", reason="torch is not installed")
    with images(files, prep="emulated", time_scale=1e-4, to="torch",
                pin="off") as loader:
        for data, _ in loader:
            assert not data.any()
            with pytest.raises(RuntimeError):
                data += 1
            data[0] += 1


def test_no_bytes():
    with gpemu.Loader(**FAST, loader="null", samples=10, batch=4) as loader:
        found = []
        for batch in loader:
            found.append((batch.n, batch.data, batch.labels))
            batch.step()
        assert found == [(4, None, None), (4, None, None), (2, None, None)]


def test_torch(files):
    torch = pytest.importorskip("torch", reason="torch is not installed")
    with images(files, to="torch", epochs=2) as loader:
        for data, labels in loader:
            assert data.dtype == torch.float32 and labels.dtype == torch.int64
            assert data.data_ptr() == loader._batch[0].data
            loader.step(data)
            data += 1
            assert (data == 1).all()
        for batch in loader:
            assert isinstance(batch.errors, torch.Tensor)
    with images(files, to="torch", prep="emulated", time_scale=1e-4) as loader:
        for data, _ in loader:
            assert tuple(data.shape[1:]) == (3, 8, 8) and not data.any()
    with raw(files, to="torch") as loader:
        for batch in loader:
            assert right(batch.data[0].numpy(), batch.index[0])


# --- how long it stays valid -------------------------------------------------


@pytest.mark.parametrize("pin", PINS)
def test_an_array_holds_its_memory(files, pin):
    """Through later batches, epochs and the end of the loader."""
    loader = raw(files, epochs=3, pin=pin, prefetch=1)
    batches = iter(loader)
    first = next(batches)
    index, views = first.index, [a[:] for a in first.data]
    for batch in batches:
        for at, i in enumerate(batch.index):
            assert right(batch.data[at], i)
        batch.step()
    for at, _ in zip(range(3), loader):
        pass
    loader.close()
    del loader, batches, batch, first
    gc.collect()
    assert all(right(view, i) for view, i in zip(views, index))


def test_two_batches_in_use(files):
    with images(files, epochs=2) as loader:
        batches = iter(loader)
        a, b = next(batches).data, next(batches).data
        a[...], b[...] = 1, 2
        with pytest.raises(BufferError, match="clone"):
            next(batches)
        assert (a == 1).all() and (b == 2).all()
        assert len(loader.epochs) == 1
        del a
        # the other one does not matter
        assert sum(batch.n for batch in loader) == N_FILES


def test_memory_goes_with_the_last_view(files):
    with images(files) as loader:
        batches = iter(loader)
        data = next(batches).data
        memory = weakref.ref(data.base)
        view = data[0, 1:]
        del data
        next(batches)
        assert memory() is not None
        del view
        assert memory() is None


def test_what_is_given_back_cannot_be_read(files):
    with images(files) as loader:
        for batch in loader:
            labels = batch.labels.copy()
            if batch.index[0] % 2:
                batch.step()
            else:
                batch.release()
            for read in (lambda: batch.data, lambda: batch.paths,
                         batch.step, batch.release):
                with pytest.raises(RuntimeError, match="given back"):
                    read()
            assert (batch.labels == labels).all()
            assert "given back" in repr(batch)


def test_no_memory_to_keep(files):
    """Arrays are copies then."""
    with raw(files, pin="on", pin_budget="100K") as loader:
        kept = [(batch.index, batch.data) for batch in loader]
        assert all(right(array, i) for index, data in kept
                   for array, i in zip(data, index))


def test_many_batches_are_kept_and_dropped(files):
    with images(files, epochs=40, batch=2) as loader:
        for _ in range(40):
            for data, _ in loader:
                loader.step(data)
        assert sum(e.steps for e in loader.epochs) == 40 * 13


# --- the order of calls ------------------------------------------------------


def test_without_a_step_there_is_none(files):
    with raw(files, epochs=2) as loader:
        for batch in loader:
            pass
        for at, batch in enumerate(loader):
            if at % 2:
                loader.step()
                with pytest.raises(RuntimeError, match="no batch"):
                    loader.step()
        assert loader.epochs[0].steps == 0
        assert loader.epochs[1].steps == 3


def test_without_a_number_of_epochs_there_is_no_last_one(files):
    """As of a DataLoader."""
    with raw(files) as loader:
        for epoch in range(3):
            seen = [i for batch in loader for i in batch.index.tolist()]
            assert sorted(seen) == list(range(N_FILES))
        assert len(loader.epochs) == len(loader.record()["epochs"]) == 3
        assert f"{N_FILES} samples, 7 batches of 4, 3 epochs done>" \
            in repr(loader)
    assert "closed" in repr(loader)
    with raw(files, epochs=2) as loader:
        assert "0 of 2 epochs" in repr(loader)


@pytest.mark.usefixtures("fuse")
def test_a_mount_hears_of_no_more_epochs_than_are_asked_for(files):
    with gpemu.mount(files) as data, raw(data) as loader:
        for batch in loader:
            pass
        with pytest.raises(gpemu.Error, match="its 1 epoch ended"):
            next(iter(loader))


def test_a_loop_that_is_left_ends_the_epoch(files):
    with raw(files, epochs=3) as loader:
        for batch in loader:
            batch.step()
            break
        with pytest.raises(KeyError):
            for batch in loader:
                raise KeyError
        assert [e.steps for e in loader.epochs] == [1, 0]
        for batch in loader:
            with pytest.raises(gpemu.Error, match="an epoch is running"):
                next(iter(loader))
        assert len(loader.epochs) == 3


def test_a_gpu_of_its_own(files):
    gpu = gpemu.GPU(**FAST)
    with pytest.raises(TypeError, match="model: an option of the GPU"):
        gpemu.Loader(files, gpu, model="vgg16")
    with gpemu.Loader(files, gpu, prep="none", batch=4, index="off") as loader:
        for at, batch in enumerate(loader):
            if at % 3 == 0:
                gpu.step(batch)
            elif at % 3 == 1:
                gpu.step()
            else:
                with pytest.raises(ValueError, match="a batch of 5"):
                    gpu.step(5)
                gpu.step(batch.n)
        assert gpu.now_ns <= loader.now_ns
        assert loader.epochs[0].steps == 7
        assert loader.epochs[0].data_wait_ns >= \
            loader.epochs[0].fetch_stall_ns
    with pytest.raises(ValueError, match="closed"):
        gpu.now_ns


def test_errors_are_the_librarys(files, tmp_path):
    with pytest.raises(gpemu.Error, match="/nonexistent") as caught:
        gpemu.Loader("/nonexistent", **FAST)
    assert caught.value.errno == 2
    with pytest.raises(FileNotFoundError):
        gpemu.Loader("/nonexistent", **FAST)
    with pytest.raises(ValueError, match="numpy"):
        gpemu.Loader(files, to="list")
    with pytest.raises(ValueError, match="null byte"):
        gpemu.Loader(f"{files}\0x", **FAST)
    odd = tmp_path / os.fsdecode(b"\xff")  # no text is in the way
    odd.mkdir()
    (odd / "x").write_bytes(b"x")
    with raw(odd) as loader:
        assert [batch.paths for batch in loader] == [["x"]]


def test_closing(files):
    loader = raw(files)
    for batch in loader:
        loader.close()
        loader.close()
        break
    with pytest.raises(RuntimeError, match="given back"):
        batch.data
    with pytest.raises(ValueError, match="closed"):
        next(iter(loader))
    assert loader.n_samples == N_FILES


def test_a_loader_without_references_ends(files):
    threads = len(os.listdir("/proc/self/task"))
    loader = images(files)
    batches = iter(loader)
    view = next(batches).data[0]
    del loader, batches
    gc.collect()
    assert len(os.listdir("/proc/self/task")) == threads
    assert not view.any()


def test_the_end_of_the_program_closes(files, tmp_path):
    """The log of steps is written, and nothing is said."""
    program = """
import gpemu, sys
loader = gpemu.Loader(sys.argv[1], model="resnet18", time_scale=0.001, batch=4,
                      prep="none", index="off", steps=sys.argv[2])
batches = iter(loader)
held = [next(batches).data for _ in range(2)]
loader.step()
"""
    done = subprocess.run(
        [sys.executable, "-B", "-c", program, files, tmp_path / "steps"],
        capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    assert len((tmp_path / "steps").read_text().splitlines()) == 2


# --- interrupts, processes, threads ------------------------------------------


def sigint_in(seconds):
    timer = threading.Timer(seconds, signal.pthread_kill,
                            (threading.main_thread().ident, signal.SIGINT))
    timer.start()
    return timer


def test_ctrl_c_while_waiting(files):
    # a sample takes seconds
    with images(files, prep="emulated", cores=1, workers=1, loader="sync",
                model_transfer=False, time_scale=1000) as loader:
        timer = sigint_in(0.3)
        with pytest.raises(KeyboardInterrupt):
            for batch in loader:
                pytest.fail("a batch was ready")
        timer.join()
        assert len(loader.epochs) == 1


@pytest.fixture
def busy_gpu(server):
    """A gpemu-gpud whose memory is full; the function tells its jobs."""
    with server.hold(30230):
        server.soon(["idle"])
        yield server.path, server.soon


def test_ctrl_c_while_the_gpu_is_busy(files, busy_gpu):
    path, soon = busy_gpu
    threads = len(os.listdir("/proc/self/task"))
    descriptors = os.listdir("/proc/self/fd")
    timer = sigint_in(0.5)
    begin = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        images(files, gpu_server=path)
    assert time.monotonic() - begin < 1.5
    timer.join()
    # it has left the queue
    soon(["idle"])
    assert len(os.listdir("/proc/self/task")) == threads
    assert os.listdir("/proc/self/fd") == descriptors


def test_a_timer_while_the_gpu_is_busy(files, busy_gpu):
    """Any exception of a handler, not of Ctrl-C alone."""
    def stop(*_):
        raise TimeoutError

    path, soon = busy_gpu
    before = signal.signal(signal.SIGALRM, stop)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.3)
        with pytest.raises(TimeoutError):
            images(files, gpu_server=path)
    finally:
        signal.signal(signal.SIGALRM, before)
    soon(["idle"])


def test_ctrl_c_while_nobody_answers(files, tmp_path):
    """The connection is made in the background; its end closes all."""
    path = tmp_path / "deaf.sock"
    with socket.socket(socket.AF_UNIX) as deaf:
        deaf.bind(str(path))
        deaf.listen()
        timer = sigint_in(0.3)
        begin = time.monotonic()
        with pytest.raises(KeyboardInterrupt):
            images(files, gpu_server=path)
        assert time.monotonic() - begin < 1.8
        timer.join()
        client = deaf.accept()[0]
        client.close()
    end = time.monotonic() + 20
    while any(t.name == "gpemu_start" for t in threading.enumerate()):
        assert time.monotonic() < end
        time.sleep(0.01)


def test_what_runs_on_after_ctrl_c_keeps_its_handle(files, monkeypatch):
    """A listing of a slow folder cannot be interrupted."""
    from gpemu import _library, _loader
    real, returns, closed = _library.library(), threading.Event(), []

    class Slow:
        def __getattr__(self, name):
            return getattr(real, name)

        def gpemu_start(self, *_):
            returns.wait(20)
            return -1

        def gpemu_close(self, handle):
            closed.append(returns.is_set())
            return real.gpemu_close(handle)

    for module in (_library, _loader):
        monkeypatch.setattr(module, "library", Slow)
    timer = sigint_in(0.3)
    with pytest.raises(KeyboardInterrupt):
        raw(files)
    timer.join()
    gc.collect()
    returns.set()
    end = time.monotonic() + 20
    while any(t.name == "gpemu_start" for t in threading.enumerate()):
        assert time.monotonic() < end
        time.sleep(0.01)
    assert closed == [True]


def test_a_fork_cannot_use_it_but_its_arrays(files):
    with raw(files, epochs=2) as loader:
        for batch in loader:
            data, index = batch.data, batch.index
            child = os.fork()
            if child == 0:
                try:
                    loader.step()
                except RuntimeError as error:
                    bad = "after a fork" not in str(error) or \
                        not all(right(a, i) for a, i in zip(data, index))
                    loader.close()
                    del data, batch, loader
                    gc.collect()
                    os._exit(bad)
                os._exit(2)
            assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
            batch.step()
            break
        with pytest.raises(TypeError, match="another process"):
            pickle.dumps(loader)


@pytest.mark.parametrize("to", ["numpy", "torch"])
def test_an_array_of_another_batch_makes_no_step(tokens, to):
    pytest.importorskip(to, reason=f"{to} is not installed")
    with sequences(tokens, to=to) as one, sequences(tokens, to=to) as two:
        first, second = iter(one), iter(two)
        data, other = next(first).data, next(second).data
        assert data.shape == other.shape
        for array in other, other[:, 1], other[1:]:
            with pytest.raises(ValueError):
                one.step(array)
        with pytest.raises(ValueError, match="array of another batch"):
            one.step(other)
        one.step(data)
        two.step(other[:, 0])
        # nor an earlier one of the same loader
        batch = next(first)
        with pytest.raises(ValueError, match="array of another batch"):
            one.step(data)
        # of what was made of an array only the samples count
        one.step(data * 2)
        assert len(batch) == len(data)
        first.close()
        second.close()
        assert [one.epochs[0].steps, two.epochs[0].steps] == [2, 1]


def in_threads(work, n=4):
    """Run it n times at once; what was raised."""
    raised = []

    def run():
        try:
            work()
        except BaseException as error:
            raised.append(error)

    threads = [threading.Thread(target=run) for _ in range(n)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return raised


@pytest.mark.parametrize("options", [
    {}, {"pin": "on"},
    {"prep": "decode", "image_size": 8, "bad_samples": "100%,zeros"}])
def test_threads_share_an_epoch(files, options):
    """What one of them holds stays valid while others go on."""
    with raw(files, **{"batch": 1, "epochs": 20, **options}) as loader:
        for _ in range(20):
            batches = iter(loader)
            seen = [next(batches)]
            barrier = threading.Barrier(4)

            def work():
                barrier.wait()
                mine = []
                for batch in batches:
                    mine.append((batch, len(mine) % 2 and batch.data))
                    time.sleep(0.0001)  # the others are here meanwhile
                seen.extend(batch for batch, data in mine)

            assert in_threads(work) == []
            assert sorted(i for batch in seen for i in batch.index) == \
                list(range(N_FILES))
            for batch in seen:
                (i,), (data,) = batch.index, batch.data
                assert batch.paths[0].endswith(f"{i:02}.jpg")
                assert not data.any() if options.get("prep") else right(data, i)
        assert len(loader.epochs) == 20


def test_threads_that_step_in_turns(files):
    with raw(files) as loader:
        batches, lock, n = iter(loader), threading.Lock(), []

        def work():
            while True:
                with lock:
                    batch = next(batches, None)
                    if batch is None:
                        return
                    data = batch.data
                    batch.step()
                n.extend(batch.index)
                assert all(map(right, data, batch.index))

        assert in_threads(work) == []
        assert sorted(n) == list(range(N_FILES))
        assert loader.epochs[0].steps == 7


def test_an_iterator_ends_its_epoch(files):
    with raw(files, epochs=3) as loader:
        batches = iter(loader)
        assert iter(batches) is batches
        next(batches)
        batches.close()
        batches.close()
        assert len(loader.epochs) == 1
        assert next(batches, None) is None
        for batch in loader:
            break
        assert len(loader.epochs) == 2


def test_closed_by_another_thread(files):
    with images(files, prep="emulated", cores=1, workers=1, loader="sync",
                model_transfer=False, time_scale=1000) as loader:
        timer = threading.Timer(0.2, loader.close)
        timer.start()
        with pytest.raises(ValueError, match="closed"):
            next(iter(loader))
        timer.join()


def test_two_threads_give_a_batch_back(files):
    """One of them does; neither gives back the next batch."""
    with images(files, epochs=20) as loader:
        for _ in range(20):
            for batch in loader:
                def give_back():
                    try:
                        batch.release()
                    except RuntimeError as error:
                        assert "given back" in str(error)

                thread = threading.Thread(target=give_back)
                thread.start()
                give_back()
                thread.join()


def test_a_signal_handler_does_not_close_what_it_interrupts(files):
    def close(*_):
        loader.close()

    before = signal.signal(signal.SIGUSR1, close)
    try:
        with images(files, prep="emulated", cores=1, workers=1, loader="sync",
                    model_transfer=False, time_scale=1000) as loader:
            timer = threading.Timer(
                0.2, signal.pthread_kill,
                (threading.main_thread().ident, signal.SIGUSR1))
            timer.start()
            with pytest.raises(RuntimeError, match="signal handler"):
                next(iter(loader))
            timer.join()
    finally:
        signal.signal(signal.SIGUSR1, before)


def test_a_fork_while_another_thread_waits(files):
    """The child gets an error, and does not wait for that thread's lock."""
    with images(files, prep="emulated", cores=1, workers=1, loader="sync",
                model_transfer=False, time_scale=1000) as loader:
        batches = iter(loader)
        waits = threading.Thread(
            target=lambda: pytest.raises(ValueError, next, batches))
        waits.start()
        for _ in range(20):
            child = os.fork()
            if child == 0:
                signal.alarm(10)
                try:
                    loader.step()
                except RuntimeError:
                    loader.close()
                    os._exit(0)
                os._exit(1)
            assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        loader.close()
        waits.join()


# --- batches of a service ----------------------------------------------------


@pytest.fixture
def service(tmp_path):
    """The address of a dispatcher with a worker."""
    addresses = []
    for _ in range(2):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            addresses.append("127.0.0.1:%d" % free.getsockname()[1])
    commands = [["dispatcher", "--listen", addresses[0]],
                ["worker", "--dispatcher", addresses[0], "--listen",
                 addresses[1], "--workers", "1", "--time-scale",
                 str(FAST["time_scale"])]]
    started = [subprocess.Popen([BUILD / "gpemu-prepd", *command],
                                stdout=subprocess.DEVNULL)
               for command in commands]
    yield addresses[0]
    for process in started:
        process.terminate()
        process.wait()


def test_batches_of_a_service(tokens, service):
    """Arrays are copies: the memory is for the batches that come."""
    with sequences(tokens, loader="service:split=1", dispatcher=service,
                   workers=None, epochs=2) as loader:
        kept = []
        for _ in range(2):
            for batch in loader:
                kept.append((batch.index, batch.data))
                batch.step()
        assert sorted(i for index, _ in kept for i in index) == \
            sorted(list(range(N_FILES)) * 2)
        for index, data in kept:
            assert data.tolist() == [sequence(i) for i in index]


def test_an_error_in_an_epoch_is_reported_once(tokens):
    with sequences(tokens, loader="service:wait=1ms", workers=None,
                   dispatcher="127.0.0.1:1") as loader:
        with pytest.raises(gpemu.Error, match="worker|dispatcher") as caught:
            next(iter(loader))
        assert caught.value.__context__ is None
        assert len(loader.epochs) == 1


def test_ctrl_c_while_there_is_no_service(tokens):
    with sequences(tokens, loader="service:wait=1h", workers=None,
                   dispatcher="127.0.0.1:1") as loader:
        timer = threading.Timer(
            0.3, signal.pthread_kill,
            (threading.main_thread().ident, signal.SIGINT))
        timer.start()
        with pytest.raises(KeyboardInterrupt):
            next(iter(loader))
        timer.join()
