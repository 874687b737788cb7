#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# slurm_box.sh COMMAND...: runs it where a Slurm of one host answers, on loopback, in namespaces of its
# own and out of one temporary directory, of which nothing is left. Needs root. Exit code 99: no Slurm
# came up, and stderr says why.
set -u
if [ -z "${SLURM_BOX:-}" ]; then
  box=$(mktemp -d /tmp/slurm-box.XXXXXX)
  SLURM_BOX=$box unshare --net --pid --fork --kill-child --mount-proc "$0" "$@"
  code=$?
  rm -rf "$box"
  exit $code
fi
box=$SLURM_BOX host=$(hostname -s)
unset SLURM_BOX
mkdir -p "$box"/{state,spool,log,run}
chmod 755 "$box"
ip link set lo up
# slurmctld wants an address that is not loopback's to name the node by.
ip link add box0 type veth peer name box1
ip addr add 10.99.0.1/24 dev box0
ip link set box0 up
ip link set box1 up
(umask 077; head -c 1024 /dev/urandom > "$box/munge.key")
: > "$box/plugstack.conf"
cat > "$box/slurm.conf" <<CONF
ClusterName=box
SlurmctldHost=$host(127.0.0.1)
SlurmUser=root
AuthType=auth/munge
AuthInfo=socket=$box/run/munge.sock
CommunicationParameters=NoInAddrAny,NoCtldInAddrAny
SlurmctldPort=16817
SlurmdPort=16818
SlurmctldPidFile=$box/run/ctld.pid
SlurmdPidFile=$box/run/slurmd.pid
StateSaveLocation=$box/state
SlurmdSpoolDir=$box/spool
SlurmctldLogFile=$box/log/ctld.log
SlurmdLogFile=$box/log/slurmd.log
PlugStackConfig=$box/plugstack.conf
MailProg=/bin/true
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SchedulerType=sched/builtin
SlurmdParameters=config_overrides
KillWait=2
NodeName=$host NodeAddr=127.0.0.1 CPUs=4
PartitionName=t Nodes=ALL Default=YES State=UP OverSubscribe=FORCE:8
CONF
munged -F --key-file="$box/munge.key" --socket="$box/run/munge.sock" --pid-file="$box/run/munged.pid" \
  --seed-file="$box/run/munge.seed" --log-file="$box/log/munged.log" > "$box/log/munged.out" 2>&1 &
for _ in {1..100}; do [ -S "$box/run/munge.sock" ] && break; sleep 0.05; done
export SLURM_CONF=$box/slurm.conf
slurmctld -D -f "$SLURM_CONF" > /dev/null 2>&1 &
slurmd -D -f "$SLURM_CONF" > /dev/null 2>&1 &
for _ in {1..100}; do
  [ "$(sinfo -h -o %T 2> /dev/null)" = idle ] && exec "$@"
  sleep 0.1
done
tail -n 3 "$box"/log/*.log >&2
exit 99
