#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# %% [markdown]
# A figure of your own from the runs of a study, cell by cell as in a notebook.
#
#     gpemu-run workloads/cache-policies.yaml
#     gpemu-run export results/cache-policies -o runs.csv
#     python3 examples/export.py runs.csv -x fs.cache_size -y hit_ratio \
#         -s fs.cache_policy -o figure.png

# %% What to draw
import argparse

import matplotlib

matplotlib.use('Agg')  # a file, no window
import matplotlib.pyplot as plt
import pandas as pd

parser = argparse.ArgumentParser(description='Draw a metric over an axis.')
parser.add_argument('csv', help='of gpemu-run export')
parser.add_argument('-x', required=True, help='an axis')
parser.add_argument('-y', required=True, help='a metric')
parser.add_argument('-s', '--series', help='an axis: a line for each value')
parser.add_argument('-o', '--output', default='figure.png')
args = parser.parse_args()

# %% The runs: a line for each run and metric. All texts, then the numbers.
runs = pd.read_csv(args.csv, dtype=str, keep_default_na=False)
runs = runs[runs['metric'] == args.y]
if runs.empty:
    raise SystemExit(f'{args.csv}: no metric {args.y}')
runs['value'] = runs['value'].astype(float)
# axes and settings are written as in the workload: '20%', '64', 'lru'
runs['x'] = pd.to_numeric(runs[args.x].str.rstrip('%'), errors='coerce')
names = runs['x'].isna().any()
if names:
    runs['x'] = runs[args.x]

# %% The median over the repetitions, and their range
runs['series'] = runs[args.series] if args.series else args.y
points = (runs.groupby(['series', 'x'], sort=not names)['value']
          .agg(['median', 'min', 'max', 'count']).reset_index())
print(points.to_string(index=False))

# %% The figure
figure, axes = plt.subplots(figsize=(6, 4))
for series, own in points.groupby('series', sort=False):
    below, above = own['median'] - own['min'], own['max'] - own['median']
    axes.errorbar(own['x'], own['median'], yerr=[below, above], marker='o',
                  capsize=3, label=series)
unit = runs['unit'].iloc[0]
axes.set_xlabel(args.x)
axes.set_ylabel(f'{args.y} ({unit})' if unit else args.y)
if args.series:
    axes.legend(title=args.series)
figure.tight_layout()
figure.savefig(args.output, dpi=150)
print(args.output)
