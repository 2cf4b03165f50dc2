# SPDX-License-Identifier: MIT
"""gpemu record: a PyTorch script, unmodified, on its real device, watched.

launch   the command: options, the environment of the script
hooks    the training: epochs, steps, what the device and the loader took
marks    the device's clock: CUDA events, or the host's
worker   the loader: what a sample costs, the files that it opens
training what was seen of it, as a job
job      the folder that is written: profiles and a workload; without PyTorch
"""
