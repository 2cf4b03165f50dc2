# SPDX-License-Identifier: MIT
# A record of gpemu-run belongs to its inputs: programs, scripts, data.
bats_require_minimum_version 1.5.0
load standins

setup()
{
	standins_setup
	cp -r "$GPEMU_BIN" bin
	GPEMU_BIN=$PWD/bin
	cat >w.yaml <<-'END'
		name: small
		question: Is it new?
		dataset: {dataset: imagenette, files: 5}
		axes: {train.loader: [sync, async]}
		time_scale: 0.5
		noise: 100%
	END
}

# ran N: since the last time, so many cells, and the dataset is not counted
ran()
{
	gpemu_run w.yaml
	[ "$(grep -vc made standin.log)" -eq "$1" ] || {
		cat standin.log
		false
	}
	: >standin.log
}

@test "identity: a program with one changed line gives new records" {
	ran 2
	ran 0
	cp bin/gpemu-train old
	sed -i 's/^async) s=10/async) s=11/' bin/gpemu-train
	ran 2
	[ "$(ls results/small/records | wc -l)" -eq 4 ]
	gpemu_run w.yaml | grep -q 'async *12.00'
	# old records are of the old program, and still found under it
	cp old bin/gpemu-train
	ran 0
	gpemu_run w.yaml | grep -q 'async *11.00'
	# gpemu-fs is no part of cells without a mount
	echo '# x' >>bin/gpemu-fs
	ran 0
	python3 - <<-'END'
		import json, glob
		for name in glob.glob("results/small/records/*"):
		    files = json.load(open(name))["cell"]["files"]
		    assert sorted(files) == ["gpemu-data", "gpemu-train"], files
		    assert len(files["gpemu-train"]["hash"]) == 16
	END
}

@test "identity: the programs are read once, however many cells there are" {
	command -v strace >/dev/null || skip "strace is not installed"
	[ -z "${GPEMU_SANITIZED-}" ] || skip "not under a sanitizer"
	sed -i 's/^time_scale/repetitions: 4\n&/' w.yaml
	strace -o trace -e trace=openat "$bin/gpemu-run" --no-mount w.yaml
	[ "$(grep -c 'bin/gpemu-train"' trace)" -eq 1 ]
}

@test "identity: a changed gpemu-data remakes the dataset and repeats the runs" {
	gpemu_run w.yaml
	echo '# x' >>bin/gpemu-data
	: >standin.log
	ran 2
	[ "$(ls -d cache/gpemu/*/ | wc -l)" -eq 2 ]
	ran 0
}

@test "identity: a changed folder of data" {
	mkdir photos
	echo one >photos/a
	sed -i 's/^dataset:.*/dataset: {dir: photos}/' w.yaml
	ran 2
	ran 0
	echo two >photos/a
	ran 2
	mv photos/a photos/b
	ran 2
	mkdir photos/c
	ran 2
	ran 0
}

# A command with a script, a program of its own, a file and an output
exec_workload()
{
	mkdir tools
	printf '#!/bin/sh\necho x >>runs\n' >tools/own-tool
	echo 'own-tool; cat "$1" >/dev/null; echo "{}" >"$2"' >job.sh
	echo one >list.txt
	echo one >helper.txt
	chmod +x tools/own-tool
	PATH=$PWD/tools:$PATH
	cat >w.yaml <<-'END'
		name: small
		question: Is it new?
		dataset: {dataset: imagenette, files: 5}
		base:
		  exec: {command: "own-tool && sh ./job.sh '{list}' {record} >out.txt", list: list.txt, uses: helper.txt}
		  environment: {PRELOAD: "{bin}/preload.so", SHARED: "{share}/shared.py"}
		noise: 100%
	END
	echo 1 >bin/preload.so
	# bin/ is no build/ of a source tree, which has profiles/
	mkdir -p share/gpemu
	echo 1 >share/gpemu/shared.py
}

# again FILE: a change of it runs the cell again, once
again()
{
	gpemu_run w.yaml
	: >runs
	gpemu_run w.yaml
	[ ! -s runs ]
	echo '# changed' >>"$1"
	gpemu_run w.yaml
	[ "$(wc -l <runs)" -eq 2 ]
}

@test "identity: files named by exec: as program, argument, key or variable" {
	exec_workload
	for file in tools/own-tool job.sh list.txt helper.txt bin/preload.so \
		share/gpemu/shared.py; do
		again "$file"
	done
	# its outputs are not inputs
	again job.sh
	echo other >out.txt
	: >runs
	gpemu_run w.yaml
	[ ! -s runs ]
	grep -q '"{bin}/preload.so"' results/small/records/*
	grep -q '"{share}/shared.py"' results/small/records/*
	# the same in another place has the same key
	cp -r bin moved
	GPEMU_BIN=$PWD/moved gpemu_run w.yaml
	[ ! -s runs ]
}

@test "identity: {bin} alone is any of the programs" {
	exec_workload
	sed -i 's,{bin}/preload.so,"{bin}",; s/""/"/g' w.yaml
	again bin/gpemu-train
}

@test "identity: a program that changes under a run fails its cells" {
	cat >bin/change <<-'END'
		#!/bin/sh
		echo '# x' >>"$GPEMU_BIN/gpemu-train"
	END
	chmod +x bin/change
	cat >>w.yaml <<-'END'
		jobs:
		  one: {}
		  two: {exec: {command: "{bin}/change"}}
	END
	run gpemu_run w.yaml
	[ "$status" -eq 1 ]
	[[ $output == *"failed: gpemu-train changed since gpemu-run started"* ]]
	run ! grep -l '"status": "ok"' results/small/records/*
	printf '#!/bin/sh\n' >bin/change
	gpemu_run w.yaml
}

@test "identity: the warm-up is part of a run, the number of warm-ups is not" {
	ran 2
	sed -i 's/^time_scale/warmup: 1\n&/' w.yaml
	ran 4
	sed -i 's/^time_scale/repetitions: 2\n&/' w.yaml
	ran 4
}

@test "identity: a table of mixed runs says so" {
	gpemu_run w.yaml >table
	run ! grep MIXED table
	run ! grep 'mixed runs' results/small/report.html
	python3 - <<-'END'
		import json, glob
		name, = glob.glob("results/small/records/sync-r1-*")
		r = json.load(open(name))
		# what the job says about the host is kept, and completed
		assert r["host"]["cpus"] >= 1 and r["host"]["kernel"], r["host"]
		assert r["host"]["other_cpu_share"] >= 0 and r["host"]["name"]
		assert r["host"]["rack"] == "of the job", r["host"]
		assert r["cell"]["gpemu"]
		r["host"]["kernel"] = "1.2.3"
		r["cell"]["gpemu"] = "0.0.1"
		json.dump(r, open(name, "w"))
	END
	run gpemu_run w.yaml
	[[ $output == *"MIXED "*"gpemu: "*"0.0.1 (1 runs)"*"kernel: "*"1.2.3 (1 runs)"* ]]
	[[ $output != *"host: "* ]]
	grep -q 'mixed runs: made on different' results/small/report.html
	python3 - <<-'END'
		import csv, json
		rows = list(csv.DictReader(open("results/small/results.csv")))
		assert {r["kernel"] for r in rows} > {"1.2.3"}, rows
		assert {r["gpemu"] for r in rows} > {"0.0.1"}, rows
		assert all(r["host"] for r in rows)
		s = json.load(open("results/small/summary.json"))
		assert s["runs"]["kernel"]["1.2.3"] == 1
		assert len(s["runs"]["host"]) == 1
	END
	printf 'name: all\nquestion: q\nworkloads: [w.yaml]\n' >all.yaml
	run gpemu_run all.yaml
	[[ $output == *"no checks, of mixed runs"* ]]
}
