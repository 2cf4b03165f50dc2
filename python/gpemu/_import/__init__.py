# SPDX-License-Identifier: MIT
"""gpemu record import: a job as gpemu record writes it, from a trace that exists.

launch    the command: options
lines     the lines of a trace, with the place of each error
strace    lines of strace
dftracer  lines of DFTracer
reads     what both say: files that were opened, read and closed, by whom and when
epochs    reads and steps, as epochs
job       what was seen, as a job
"""
