# SPDX-License-Identifier: MIT
# Slurm with two nodes on this machine. $TMP is the test's folder; the test ends
# the processes $pids, the first of them first.

# A network with one card; what is to run in it follows $in_net.
network() {
	local net

	unshare -n sh -c 'ip link add eth0 type veth peer name eth1 && ip link set lo up &&
		ip addr add 10.0.0.1/24 dev eth0 && ip link set eth1 up && ip link set eth0 up &&
		echo up && exec sleep 300' >"$TMP/network" 2>&1 3>&- &
	net=$!
	until grep -qx up "$TMP/network"; do
		kill -0 $net 2>/dev/null || skip "no network namespaces"
		sleep .05
	done
	pids="$net $pids"
	in_net="nsenter -t $net -n"
}

# slurm [OPTIONS [FILE]]: Slurm with two nodes on this machine, n0 and n1, the
# lines of which get the options; the file has more lines of slurm.conf.
slurm() {
	local host i d=$TMP/slurm options=${1:-CPUs=2}

	command -v slurmctld >/dev/null && command -v slurmd >/dev/null && command -v srun >/dev/null ||
		skip "no Slurm"
	[ "$(id -u)" -eq 0 ] || skip "slurmd needs root"
	network
	host=$(hostname -s)
	mkdir -p "$d"
	export SLURM_CONF=$d/slurm.conf
	cat >"$SLURM_CONF" <<-END
		ClusterName=test
		SlurmctldHost=$host(127.0.0.1)
		AuthType=auth/none
		AuthInfo=cred_expire=2
		CredType=cred/none
		SlurmUser=root
		SlurmdUser=root
		SelectType=select/cons_tres
		SelectTypeParameters=CR_CPU
		ProctrackType=proctrack/linuxproc
		TaskPlugin=task/none
		SwitchType=switch/none
		MpiDefault=none
		StateSaveLocation=$d
		SlurmdSpoolDir=$d/%n
		TmpFS=$d/%n
		SlurmctldPidFile=$d/slurmctld.pid
		SlurmdPidFile=$d/%n.pid
		SlurmdParameters=config_overrides
		NodeName=n0 NodeHostname=$host NodeAddr=127.0.0.1 Port=17001 $options
		NodeName=n1 NodeHostname=$host NodeAddr=127.0.0.1 Port=17002 $options
		PartitionName=all Nodes=n0,n1 Default=YES
	END
	cat ${2:-/dev/null} >>"$SLURM_CONF"
	$in_net slurmctld -D -c >"$d/slurmctld.log" 2>&1 3>&- &
	pids="$! $pids"
	for i in n0 n1; do
		$in_net slurmd -D -c -N $i >"$d/$i.log" 2>&1 3>&- &
		pids="$! $pids"
	done
	for i in $(seq 600); do
		[ "$($in_net sinfo -h -t idle -o %D 2>/dev/null)" != 2 ] || return 0
		sleep .1
	done
	cat "$d"/*.log
	false
}
