# SPDX-License-Identifier: MIT
"""Scripts with habits, one a function: each as on a real GPU."""
import copy
import io
import math
import os
import pickle
import subprocess
import sys
import threading
import traceback

import torch
import torch.nn.functional as F
from torch import nn

W = 8


def network():
    return nn.Sequential(nn.Conv2d(3, W, 7, 4), nn.BatchNorm2d(W), nn.ReLU(),
                         nn.Conv2d(W, 2 * W, 3, 2), nn.ReLU(),
                         nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(2 * W, 10))


def batch(n=16):
    return torch.zeros(n, 3, 224, 224).cuda(), torch.zeros(n).long().cuda()


def train(model, optimizer, steps=2):
    x, y = batch()
    for _ in range(steps):
        loss = F.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


def sgd(model):
    return torch.optim.SGD(model.parameters(), lr=.1)


def fails(kind, text, do):
    try:
        do()
    except kind as error:
        assert text in str(error), error
        print(error)
        return
    raise AssertionError(f"no {kind.__name__}")


def memory():
    free, total = torch.cuda.mem_get_info()
    assert 0 < free <= total
    stats = torch.cuda.memory_stats()
    assert stats["active_bytes.all.current"] == 0 == stats["num_ooms"]
    assert torch.cuda.is_bf16_supported() in (True, False)
    assert torch.cuda.get_device_properties(0).multi_processor_count > 0


def nvtx():
    torch.cuda.nvtx.range_push("step")
    torch.cuda.nvtx.range_pop()


def streams():
    side, (x, _) = torch.cuda.Stream(), batch()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        x = x * 2
    x.record_stream(side)
    torch.cuda.current_stream().wait_stream(side)
    event = side.record_event()
    event.wait()
    event.synchronize()
    assert event.query()


def not_emulated():
    fails(NotImplementedError, "odd.py", torch.cuda.CUDAGraph)
    fails(NotImplementedError, "odd.py", lambda: torch.jit.script(network()).cuda())


def copies_of_models():
    model = network().cuda()
    mean = copy.deepcopy(model)
    train(model, sgd(model))
    with torch.no_grad():
        for a, b in zip(mean.parameters(), model.parameters()):
            a.mul_(.9).add_(b, alpha=.1)
    assert all(p.is_cuda for p in mean.parameters())
    torch.optim.swa_utils.AveragedModel(model).update_parameters(model)


def files():
    model, file = network().cuda(), io.BytesIO()
    torch.save({"x": batch()[0], "model": model, "state": model.state_dict()}, file)
    assert len(file.getvalue()) > 16 * 3 * 224 * 224 * 4
    for place, kind in ((None, "cuda"), ("cpu", "cpu"), ("cuda:0", "cuda"),
                        ({"cuda:0": "cpu"}, "cpu"), (lambda s, _: s, "cpu")):
        file.seek(0)
        found = torch.load(file, map_location=place, weights_only=False)
        for tensor in (found["x"], next(found["model"].parameters()),
                       *found["state"].values()):
            assert tensor.device.type == kind, (place, tensor.device)
    other = pickle.loads(pickle.dumps(model))
    assert next(other.parameters()).is_cuda
    train(other, sgd(other))


def places():
    x = batch()[0]
    fails(TypeError, "Use Tensor.cpu()", x.numpy)
    fails(RuntimeError, "odd.py", lambda: x + torch.zeros(16, 3, 224, 224))
    fails(RuntimeError, "odd.py", lambda: F.cross_entropy(
        torch.zeros(2, 3).cuda(), torch.zeros(2).long()))
    assert (x + torch.tensor(1.)).is_cuda and x[torch.zeros(16) > 0].is_cuda
    x[torch.arange(3)] = torch.zeros(3, 224, 224).cuda()
    assert torch.zeros(3).type_as(x).is_cuda


def kinds():
    x = torch.cuda.FloatTensor(3)
    assert isinstance(x, torch.cuda.FloatTensor)
    assert not isinstance(x, torch.cuda.LongTensor)
    assert torch.zeros(3).type("torch.cuda.HalfTensor").dtype == torch.half
    some = torch.Generator("cuda").manual_seed(1)
    x.normal_(generator=some)
    assert torch.randn(3, device="cuda", generator=some).is_cuda
    assert isinstance(torch.default_generator, torch.Generator)
    assert some.device.type == "cuda" and torch.Generator().device.type == "cpu"


def hooks():
    model, seen = network().cuda(), []
    model[0].register_forward_hook(lambda *_: seen.append("forward"))
    model[7].weight.register_post_accumulate_grad_hook(lambda p: seen.append("grad"))
    model.register_full_backward_hook(lambda *_: None)
    train(model, sgd(model))
    assert seen == ["forward", "grad"] * 2


def gradients():
    model, (x, y) = network().cuda(), batch()
    x.requires_grad_()
    F.cross_entropy(model(x), y).backward()
    assert x.grad.shape == x.shape and x.grad.is_cuda
    found = torch.autograd.grad(model(x).sum(), list(model.parameters()))
    assert [g.shape for g in found] == [p.shape for p in model.parameters()]
    optimizer = sgd(model)
    for i in range(4):
        (F.cross_entropy(model(x), y) / 2).backward()
        if i % 2:
            assert math.isfinite(nn.utils.clip_grad_norm_(model.parameters(), 1.))
            optimizer.step()
            optimizer.zero_grad()


def precision():
    model = nn.SyncBatchNorm.convert_sync_batchnorm(network()).cuda()
    model.to(memory_format=torch.channels_last)
    optimizer, scaler, (x, y) = sgd(model), torch.amp.GradScaler("cuda"), batch()
    with torch.autocast("cuda", torch.float16):
        loss = F.cross_entropy(model(x), y)
    scaler.scale(loss).backward()
    scaler.unscale_(optimizer)
    scaler.step(optimizer)
    scaler.update()
    assert scaler.get_scale() > 0


class Square(torch.autograd.Function):
    @staticmethod
    @torch.amp.custom_fwd(device_type="cuda")
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    @torch.amp.custom_bwd(device_type="cuda")
    def backward(ctx, g):
        return 2 * ctx.saved_tensors[0] * g


class Squared(nn.Module):
    def __init__(self, broken=False):
        super().__init__()
        self.inner, self.broken = network(), broken

    def forward(self, x):
        if self.broken:
            raise ValueError("the script's own")
        return Square.apply(self.inner(x))


def functions():
    model = Squared().cuda()
    train(model, torch.optim.Adam(model.parameters()))


def exceptions():
    model = Squared(True).cuda()
    fails(ValueError, "own", lambda: model(batch()[0]))
    model.broken = False
    train(model, sgd(model))


def closures():
    model, (x, y) = network().cuda(), batch()
    optimizer = torch.optim.LBFGS(model.parameters())

    def closure():
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        return loss
    assert optimizer.step(closure).is_cuda


def processes():
    child = os.fork()
    if not child:
        try:
            torch.zeros(3).cuda()
        except RuntimeError as error:
            os._exit("forked subprocess" not in str(error))
        os._exit(2)
    assert os.waitpid(child, 0)[1] == 0
    out = subprocess.run([sys.executable, "-c", "import torch; "
                          "print(torch.zeros(3, device='cuda').device)"],
                         capture_output=True, text=True)
    assert out.stdout == "cuda:0\n", out.stderr


def spawned(queue):
    queue.put(torch.zeros(3).cuda().sum().item())


def others():
    context = torch.multiprocessing.get_context("spawn")
    queue, found = context.Queue(), []
    process = context.Process(target=spawned, args=(queue,))
    process.start()
    assert queue.get(timeout=120) == 0
    process.join()
    thread = threading.Thread(target=lambda: found.append(torch.zeros(3).cuda()))
    thread.start()
    thread.join()
    assert found[0].is_cuda


def without_optimizer():
    model, (x, y) = network().cuda(), batch()
    F.cross_entropy(model(x), y).backward()
    with torch.no_grad():
        for p in model.parameters():
            p -= .1 * p.grad


if __name__ == "__main__":
    failed = 0
    for test in (memory, nvtx, streams, not_emulated, copies_of_models, files, places,
                 kinds, hooks, gradients, precision, functions, exceptions, closures,
                 processes, others, without_optimizer):
        try:
            test()
        except Exception:
            failed += 1
            print(test.__name__)
            traceback.print_exc(file=sys.stdout)
    sys.exit(failed)
