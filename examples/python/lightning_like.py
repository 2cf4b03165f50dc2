# SPDX-License-Identifier: MIT
"""A loop in the shape of PyTorch Lightning's: lightning_like.py FOLDER

Emulated is the place where a module of Lightning's with automatic_optimization
= False would compute a loss and step its optimiser. Lightning itself is not
needed here, and its Trainer takes the place of this one.
"""
import sys

import gpemu


class Trainer:
    def __init__(self, max_epochs):
        self.max_epochs = max_epochs

    def fit(self, module, loader):
        for epoch in range(self.max_epochs):
            module.current_epoch = epoch
            for i, batch in enumerate(loader):
                module.training_step(batch, i)
            module.on_train_epoch_end()


class Emulated:
    """A module whose training step is that of an emulated GPU."""

    def __init__(self, gpu):
        self.gpu, self.seen = gpu, 0

    def training_step(self, batch, batch_idx):
        images, labels = batch
        self.gpu.step(images)
        self.seen += len(labels)

    def on_train_epoch_end(self):
        print(f"epoch {self.current_epoch}: {self.seen} images")
        self.seen = 0


gpu = gpemu.GPU(model="resnet18")
with gpemu.Loader(sys.argv[1], gpu, batch=16, epochs=2) as loader:
    Trainer(max_epochs=2).fit(Emulated(gpu), loader)
