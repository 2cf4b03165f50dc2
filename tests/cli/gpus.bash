# SPDX-License-Identifier: MIT
# GPUs that several tests run on.

# A GPU that copies and pins a byte in a microsecond; a model's own samples are
# 300 times as large as those of its laws.
microsecond()
{
	cat >"$TMP/microsecond.yaml" <<-'YAML'
		name: microsecond
		source: nominal
		memory_mib: 100000
		usable_memory: 1
		sample_bytes: 1000
		pinned: {base_ms: 0, per_sample_ms: 1, source: nominal}
		pin_copy: {base_ms: 0, per_sample_ms: 1, source: nominal}
		models:
		  m:
		    parameters: 0
		    sample_bytes: 300000
		    model_transfer_ms: 0
		    last_batch: 10
		    last_is_limit: false
		    tolerance_pct: 0
		    rows: [[10, 1, 1, 3000, 0, 0]]
	YAML
}

# board FILE: a card with all that monitors show. A good part of a step is its
# copy.
board()
{
	cat >"$1" <<-'YAML'
		name: Tesla H50-HALF
		source: nominal
		memory_mib: 1000
		usable_memory: 0.9
		sample_bytes: 1048576
		pinned: {base_ms: 0, per_sample_ms: 50, source: nominal}
		pin_copy: {base_ms: 0, per_sample_ms: 0, source: nominal}
		board: {brand: Tesla, compute_capability: 7.5, cores: 2560, power_limit_w: 210,
		  power_idle_w: 10, power_min_w: 100, power_max_w: 250, temperature_c: 36,
		  clock_mhz: 1380, memory_clock_mhz: 877, pcie_generation: 3, pcie_width: 16,
		  memory_bus_bits: 256, clock_reasons: 511, ecc: true,
		  source: nominal}
		models:
		  resnet50:
		    parameters: 1000
		    model_transfer_ms: 0
		    last_batch: 64
		    last_is_limit: false
		    tolerance_pct: 0
		    rows: [[64, 20, 30, 50, 100, 50]]
	YAML
}
