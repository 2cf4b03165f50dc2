# SPDX-License-Identifier: MIT
"""gpemu: the data path of a training job, without its GPU and its disk.

Loader   the loader of gpemu-train: batches as numpy arrays or torch tensors
GPU      an emulated GPU for the batches of this or any other loader
mount    a dataset behind an emulated storage device and a cache
run      an experiment of gpemu-run
results  its results as pandas frames
plot     a figure of them

Times are emulated unless a name says `wall`; a quantity ends in its unit.
Only Loader needs numpy, only results and run pandas, only plot matplotlib.
"""
from gpemu._batch import Batch
from gpemu._gpu import GPU
from gpemu._library import Epoch, Error, Step
from gpemu._loader import Loader
from gpemu._mount import Mount, mount
from gpemu._plot import plot
from gpemu._run import results, run

__version__ = "0.2.0"
__all__ = ["GPU", "Batch", "Epoch", "Error", "Loader", "Mount", "Step",
           "mount", "plot", "results", "run"]
