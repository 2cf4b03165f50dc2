# SPDX-License-Identifier: MIT
"""gpemu.GPU, alone."""
import os

import pytest

import gpemu
from conftest import FAST


def test_steps_follow_each_other():
    with gpemu.GPU(**FAST) as gpu:
        one, two = gpu.step(64), gpu.step(64)
        took = one.compute_end_ns - one.compute_start_ns
        assert took > 0
        assert two.compute_end_ns - two.compute_start_ns == took
        assert two.compute_start_ns >= one.compute_end_ns
        smaller = gpu.step(32)
        assert smaller.compute_end_ns - smaller.compute_start_ns < took
        assert gpu.wait() == smaller.compute_end_ns <= gpu.now_ns


def test_a_step_has_names_and_a_dict():
    with gpemu.GPU(**FAST) as gpu:
        step = gpu.step(8)
    assert step.asdict()["step_end_ns"] == step.step_end_ns
    assert repr(step).startswith("Step(copy_start_ns=")
    assert not any(name.startswith("_") for name in gpemu.Epoch().asdict())


def test_what_is_a_batch():
    class Images:
        shape = (64, 3, 8, 8)

    with gpemu.GPU(**FAST) as gpu:
        by_number = gpu.step(64)
        by_array = gpu.step(Images())
        assert by_array.compute_end_ns - by_array.compute_start_ns == \
            by_number.compute_end_ns - by_number.compute_start_ns
        # two arrays are not two samples
        with pytest.raises(TypeError, match="not a list"):
            gpu.step([Images(), Images()])
        with pytest.raises(TypeError, match="not a NoneType"):
            gpu.step()
        for n in 0, -1, (1 << 64) + 4:
            with pytest.raises(ValueError, match="a batch of"):
                gpu.step(n)


def test_errors_are_the_librarys():
    with pytest.raises(gpemu.Error, match="abacus"):
        gpemu.GPU("abacus")
    with gpemu.GPU(**FAST) as gpu:
        assert repr(gpu) == "<gpemu.GPU gpu='v100', model='resnet18', " \
            "time_scale=0.001>"
        with pytest.raises(gpemu.Error, match="out of GPU memory") as caught:
            gpu.step(1 << 20)
        assert caught.value.errno == 7  # E2BIG


def test_options_of_several_gpus():
    with gpemu.GPU(**FAST, node="dgx-1v", gpus=4, batch=64, parallel="ddp",
                   keep_awake=False) as four, gpemu.GPU(**FAST) as one:
        a, b = four.step(256), one.step(64)
        assert a.compute_end_ns - a.compute_start_ns >= \
            b.compute_end_ns - b.compute_start_ns
        assert a.step_end_ns >= a.compute_end_ns + a.allreduce_ns > 0


def test_close_twice_then_no_step():
    gpu = gpemu.GPU(**FAST)
    gpu.close()
    gpu.close()
    with pytest.raises(ValueError, match="closed"):
        gpu.step(1)


def test_a_fork_cannot_use_it():
    gpu = gpemu.GPU(**FAST)
    child = os.fork()
    if child == 0:
        try:
            gpu.step(1)
        except RuntimeError as error:
            gpu.close()
            os._exit("after a fork" in str(error))
        os._exit(2)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 1
    gpu.step(1)
    gpu.close()


def test_a_rate_of_my_own_and_jitter():
    with gpemu.GPU(gpu_rate=1000, batch=100, time_scale=0.001) as gpu:
        for _ in range(4):
            gpu.step(100)
        gpu.wait()
        step = gpu.last_step
        assert step.compute_end_ns - step.compute_start_ns == 100_000_000
    times = set()
    with gpemu.GPU(gpu_rate=1000, batch=100, time_scale=0.001, jitter=0.1,
                   transfer="blocking", seed=3) as gpu:
        for _ in range(5):
            step = gpu.step(100)
            times.add(step.compute_end_ns - step.compute_start_ns)
    assert len(times) == 5
