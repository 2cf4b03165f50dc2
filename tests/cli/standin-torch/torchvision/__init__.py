# SPDX-License-Identifier: MIT
"""See torch beside it."""
import types

import torch

__version__ = "0.standin"
models = types.SimpleNamespace(resnet18=lambda num_classes: torch.Model())
