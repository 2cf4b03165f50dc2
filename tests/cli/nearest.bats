#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# Unknown names: each message names the nearest known one, and a size without
# its unit says what to write.
bats_require_minimum_version 1.5.0

setup()
{
	PATH=$(realpath "${GPEMU_BUILD:-build}"):$PATH
	cd "$BATS_TEST_TMPDIR"
	mkdir data
	echo x >data/x.jpg
}

# says WORDS COMMAND...: a usage or other error whose text has the words
says()
{
	local words=$1

	shift
	run "$@"
	[ "$status" -ne 0 ]
	[[ $output == *"$words"* ]] || { echo "$* said: $output"; return 1; }
}

@test "a plug-in, a profile, a model: the nearest name, or ours for the same" {
	local sim="--simulate --prep none --data synth:imagenet,files=100"

	says "unknown order 'random'; did you mean 'shuffle'" \
		gpemu-train --data data --order random
	says "unknown engine 'pytorch'; did you mean 'sync' (its shuffle is --order torch)?" \
		gpemu-train --data data --loader pytorch
	says "unknown format 'webdataset'; did you mean 'tar'" \
		gpemu-train --data data --format webdataset
	says "unknown model 'resnet-50'; did you mean 'resnet50'?" \
		gpemu-train $sim --gpu a100 --model resnet-50
	says "unknown gpu profile 'a10'; did you mean 'a100'?" \
		gpemu-train $sim --gpu a10 --model resnet50
	says "unknown storage profile 'hhd'; did you mean 'hdd'?" \
		gpemu-fs -s hhd data /nowhere
	says "unknown dataset profile 'imagnet'; did you mean 'imagenet'?" \
		gpemu-train --simulate --prep none --data synth:imagnet
	says "unknown cache policy 'lur'; did you mean 'lru'?" \
		gpemu-fs --tier lur:10% data /nowhere
	says "unknown option 'protect'; did you mean 'protected'?" \
		gpemu-fs -p slru:protect=.5 data /nowhere
	says "unknown kind 'ordr'; did you mean 'order'?" gpemu-train --list ordr
}

@test "an option: the nearest name; an abbreviation and an argument are none" {
	says "unknown option '--storrage'; did you mean '--storage'?" \
		gpemu-fs --storrage hdd data /nowhere
	says "unknown option '--batch-size'; did you mean '--batch'?" \
		gpemu-train --batch-size=5
	says "unknown option '--num-workers'; did you mean '--workers'?" \
		gpemu-train --num-workers 5
	# nothing is near: as argp has it
	says "unrecognized option '--zzzz'" gpemu-train --zzzz
	# an abbreviation, the argument of an option, what is behind --
	gpemu-train --dump-conf | grep '^order: shuffle'
	gpemu-train --data --storrage --dump-config | grep -- '--storrage'
	gpemu-train -e 3 --data -- --dump-config | grep -e '^data: '
	[ -n "$(gpemu-fs --vers)" ]
}

@test "a key of a configuration: the nearest name, with its position" {
	echo "storrage: hdd" >c.yaml
	says "c.yaml:1:1: unknown key 'storrage'; did you mean 'storage'?" \
		gpemu-fs --config c.yaml data /nowhere
}

@test "a size without its unit, or with another one, says what to write" {
	says "--cache-size: 20 bytes hold no sample: write 20M, or 20% of the dataset" \
		gpemu-fs --cache-size 20 data /nowhere
	says "20 bytes hold no sample" gpemu-fs --tier lru:20 data /nowhere
	says "20 bytes hold no sample" gpemu-cachesim --dir data -c 1M,20
	says "20 bytes hold no sample" gpemu-cachesim --dataset imagenet --tier lru:20
	says "20 bytes hold no sample" gpemu-train --simulate --gpu a100 \
		--model resnet50 --prep none --data synth:imagenet --fs cache_size=20
	says "'10GB' is not a size: write 10G (units are powers of 1024)" \
		gpemu-fs --cache-size 10GB data /nowhere
	says "'10GB' is not a size: write 10G" gpemu-fs --tier lru:10GB data /nowhere
	says "'10GB' is not a size: write 10G" gpemu-cachesim --dir data -c 1M,10GB
	says "'10 gb' is not a size: write 10G" gpemu-fs -c '10 gb' data /nowhere
	says "'1.5kB' is not a size: write 1.5K" gpemu-fs --prefetch 1.5kB data /nowhere
	says "'5x' is not a size such as 8G" gpemu-fs -c 5x data /nowhere
	[ "$(gpemu-fs -c 1.5GiB --dump-config | grep cache_size)" = "cache_size: 1536M" ]
	gpemu-fs -c 0 --dump-config | grep -x 'cache_size: 0'
}

@test "run: a shipped workload by its name, and the nearest of an unknown one" {
	run gpemu-run check demo --no-mount
	[ "$status" -eq 0 ]
	[[ $output == demo:* ]]
	says "dmeo: neither a file nor a shipped workload; did you mean 'demo'? (known: all " \
		gpemu-run check dmeo
	says "cache_policies.yaml: neither a file nor a shipped workload; did you mean 'cache-policies'?" \
		gpemu run cache_policies.yaml
	# a path is a path, a file of that name wins
	says "./demo: No such file" gpemu-run check ./demo
	echo "x: 1" >demo
	says "demo:1:1: unknown key 'x'" gpemu-run check demo
}
