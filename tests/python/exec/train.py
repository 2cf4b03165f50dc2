# SPDX-License-Identifier: MIT
"""An ordinary script: image folders are left out, the rest is as usual."""
import argparse
import sys
import time

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

parser = argparse.ArgumentParser()
parser.add_argument("--batch-size", type=int, default=16)
parser.add_argument("--steps", type=int, default=6)
parser.add_argument("--epochs", type=int, default=2)
parser.add_argument("--workers", type=int, default=1)
parser.add_argument("--load-ms", type=float, default=0)
parser.add_argument("--classes", type=int, default=10)
parser.add_argument("--width", type=int, default=8)
parser.add_argument("--optimizer", default="SGD")
parser.add_argument("--amp", action="store_true")
parser.add_argument("--amp-inside", action="store_true")
parser.add_argument("--sync", action="store_true")
parser.add_argument("--checkpoint")
parser.add_argument("--time", action="store_true")
args = parser.parse_args()


class Images(Dataset):
    def __len__(self):
        return args.batch_size * args.steps

    def __getitem__(self, i):
        time.sleep(args.load_ms / 1e3)
        return torch.full((3, 224, 224), float(i)), i % args.classes


def network():
    w = args.width
    return nn.Sequential(
        nn.Conv2d(3, w, 7, 4), nn.BatchNorm2d(w), nn.ReLU(),
        nn.Conv2d(w, 2 * w, 3, 2), nn.ReLU(), nn.AdaptiveAvgPool2d(1),
        nn.Flatten(), nn.Linear(2 * w, args.classes))


device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
assert device.type == "cuda", "no GPU"
model = network()
before = [id(p) for p in model.parameters()]
model.to(device)
assert before == [id(p) for p in model.parameters()]
if args.amp_inside:  # as accelerate does it
    model.forward = torch.autocast("cuda", torch.float16)(model.forward)
if args.optimizer == "AdamW":
    optimizer = torch.optim.AdamW(model.parameters(), fused=True)
else:
    optimizer = getattr(torch.optim, args.optimizer)(
        model.parameters(), lr=0.1,
        **({"momentum": 0.9} if args.optimizer == "SGD" else {}))
criterion = nn.CrossEntropyLoss().cuda()
scaler = torch.amp.GradScaler("cuda", enabled=args.amp)
loader = DataLoader(Images(), batch_size=args.batch_size, shuffle=True,
                    num_workers=args.workers, pin_memory=True)
for epoch in range(args.epochs):
    model.train()
    correct = torch.zeros((), device=device)
    costs = []
    for images, labels in loader:
        assert images.is_pinned() and not images.is_cuda
        start = time.thread_time()
        images = images.to(device, non_blocking=True)
        labels = labels.cuda(non_blocking=True)
        with torch.autocast("cuda", dtype=torch.float16, enabled=args.amp):
            output = model(images)
            loss = criterion(output, labels)
        optimizer.zero_grad()
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        correct += (output.argmax(1) == labels).sum()
        costs.append(time.thread_time() - start)
        if args.sync:
            torch.cuda.synchronize()
    assert output.device == labels.device == torch.device("cuda:0")
    assert tuple(output.shape) == (args.batch_size, args.classes)
    print(f"epoch {epoch}: loss {loss.item():.3f} correct {correct.item()}")
    if args.time:
        costs = sorted(costs[5:])
        print(f"main thread {costs[len(costs) // 2] * 1e3:.3f} ms")
if args.checkpoint:
    torch.save({"model": model.state_dict(),
                "optimizer": optimizer.state_dict()}, args.checkpoint)
    state = torch.load(args.checkpoint, map_location=device)
    model.load_state_dict(state["model"])
    optimizer.load_state_dict(state["optimizer"])
print("used", torch.cuda.max_memory_allocated(), "bytes", file=sys.stderr)
