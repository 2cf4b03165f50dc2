# SPDX-License-Identifier: MIT
{{>script}}
mkdir -p "$run/jobs" && exec 9>"$run/lock" && flock 9 || exit
rm -f "$run/jobs/$SLURM_JOB_ID"
[ -z "$(ls "$run/jobs")" ] || exit 0
# finish NAME: end the server, and wait until it has ended
finish()
{
	read -r pid <"$run/$1.pid" || return 0
	rm -f "$run/$1.pid"
	for try in $(seq 100); do
		grep -qsx gpemu-gpud "/proc/$pid/comm" || return 0
		kill "$pid"
		sleep 0.1
	done
}
{{#kinds}}
finish {{&name}} 2>/dev/null
{{/kinds}}
exit 0
