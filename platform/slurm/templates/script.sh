#!/bin/sh
# SPDX-License-Identifier: MIT
# Written by gpemu-slurm from {{&path}}
PATH=/usr/sbin:/usr/bin:/sbin:/bin
run={{&run}}
