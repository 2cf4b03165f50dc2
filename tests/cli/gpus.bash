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
