# SPDX-License-Identifier: MIT
"""A training loop on the images of FOLDER: python3 LOOP.py FOLDER"""
import sys

import gpemu

gpu = gpemu.GPU(model="resnet18")
loader = gpemu.Loader(sys.argv[1], gpu, batch=16, epochs=2, to="torch")


for epoch in range(2):
    seen = 0
    for images, labels in loader:
        gpu.step(images)
        seen += len(images)
    print(f"epoch {epoch}: {seen} images", loader.epochs[epoch])
