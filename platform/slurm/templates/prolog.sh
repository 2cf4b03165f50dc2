# SPDX-License-Identifier: MIT
{{>script}}
mkdir -p "$run/jobs" && exec 9>"$run/lock" && flock 9 || exit
: >"$run/jobs/$SLURM_JOB_ID"
# serve NAME PROFILE GPUS SOCKET
serve()
{
	! ask "$4" || return 0
	mkdir -p "${4%/*}"
	setsid {{&bin}}/gpemu-gpud --gpu "$2" --gpus "$3" --socket "$4" \
		--mode 0666 --allow all >"$run/$1.log" 2>&1 </dev/null 9>&- &
	echo $! >"$run/$1.pid"
	for try in $(seq 100); do
		! ask "$4" || return 0
		kill -0 $! || return
		sleep 0.1
	done
	return 1
}
ask()
{
	{{&bin}}/gpemu-smi --socket "$1" >/dev/null 2>&1 9>&-
}
{{#kinds}}
serve {{&name}} {{&profile}} {{count}} {{&server}} || exit
{{/kinds}}
