# SPDX-License-Identifier: MIT
"""gpemu exec: a PyTorch script, unmodified, on an emulated GPU.

launch   the command: options, the environment of the script
site     what Python imports first
finder   waits for the import of torch
hooks    the device as PyTorch shows it; no arithmetic: its tensors are meta
modules  forward, backward and optimiser: known shapes do not run again
ddp      several processes, over gloo
fsdp     parameters that they share
models   which model of the profile it is, and its times
card     libgpemu's clock, engines and page-locked memory
saved    checkpoints and pickles
record   the account at the end
job      that of several ranks
served   the GPU of a gpemu-gpud, shared with other jobs
trace    the timeline
output   files that are written where others may write, too
"""
