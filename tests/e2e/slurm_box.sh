#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# slurm_box.sh COMMAND...: runs it where a Slurm answers, in namespaces of its own and out of one
# temporary directory, of which nothing is left. It has one host, or with SLURM_BOX_HOSTS=2 two, each with
# its own network, name and shared memory; COMMAND runs on the first. Needs root. Exit code 99: no Slurm
# came up, and stderr says why.
set -u
if [ -z "${SLURM_BOX:-}" ]; then
  box=$(mktemp -d /tmp/slurm-box.XXXXXX)
  SLURM_BOX=$box unshare --net --uts --mount --pid --fork --kill-child --mount-proc "$0" "$@"
  code=$?
  rm -rf "$box"
  exit $code
fi
box=$SLURM_BOX hosts=${SLURM_BOX_HOSTS:-1}
unset SLURM_BOX SLURM_BOX_HOSTS
hostname box1
mount -t tmpfs -o size=512m tmpfs /dev/shm
mkdir -p "$box"/{state,spool,log,run,pmix}
chmod 755 "$box"
ip link set lo up
# The other end of the cable is on the second host, or nowhere: slurmctld wants an address that is not
# loopback's to name a host by.
ip link add box0 type veth peer name box1
ip addr add 10.99.0.1/24 dev box0
ip link set box0 up
ip link set box1 up
printf '127.0.0.1 localhost\n10.99.0.1 box1\n10.99.0.2 box2\n' > "$box/hosts"
mount --bind "$box/hosts" /etc/hosts
(umask 077; head -c 1024 /dev/urandom > "$box/munge.key")
: > "$box/plugstack.conf"
echo "PMIxCliTmpDirBase=$box/pmix" > "$box/mpi.conf"  # each host has its own, as its shared memory
cat > "$box/slurm.conf" <<CONF
ClusterName=box
SlurmctldHost=box1(10.99.0.1)
SlurmUser=root
AuthType=auth/munge
AuthInfo=socket=$box/run/munge.sock
CommunicationParameters=NoInAddrAny,NoCtldInAddrAny
SlurmctldPort=16817
SlurmdPort=16818
SlurmctldPidFile=$box/run/ctld.pid
SlurmdPidFile=$box/run/slurmd-%n.pid
StateSaveLocation=$box/state
SlurmdSpoolDir=$box/spool/%n
SlurmctldLogFile=$box/log/ctld.log
SlurmdLogFile=$box/log/slurmd-%n.log
PlugStackConfig=$box/plugstack.conf
MailProg=/bin/true
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SchedulerType=sched/builtin
SlurmdParameters=config_overrides
KillWait=2
$(for i in $(seq "$hosts"); do echo "NodeName=box$i NodeAddr=10.99.0.$i CPUs=4"; done)
PartitionName=t Nodes=ALL Default=YES State=UP OverSubscribe=FORCE:8
CONF
munged -F --key-file="$box/munge.key" --socket="$box/run/munge.sock" --pid-file="$box/run/munged.pid" \
  --seed-file="$box/run/munge.seed" --log-file="$box/log/munged.log" > "$box/log/munged.out" 2>&1 &
for _ in {1..100}; do [ -S "$box/run/munge.sock" ] && break; sleep 0.05; done
export SLURM_CONF=$box/slurm.conf
slurmctld -D -f "$SLURM_CONF" > /dev/null 2>&1 &
slurmd -D -f "$SLURM_CONF" > /dev/null 2>&1 &
if [ "$hosts" = 2 ]; then
  unshare --net --uts --mount sh -c 'hostname box2; mount -t tmpfs -o size=512m tmpfs /dev/shm
    mount -t tmpfs tmpfs "$1/pmix"
    ip link set lo up; until ip addr add 10.99.0.2/24 dev box1; do sleep 0.05; done; ip link set box1 up
    exec slurmd -D -f "$SLURM_CONF"' sh "$box" > "$box/log/second.log" 2>&1 &
  until [ "$(readlink /proc/$!/ns/net)" != "$(readlink /proc/self/ns/net)" ]; do sleep 0.01; done
  ip link set box1 netns $!
fi
for _ in {1..100}; do
  [ "$(sinfo -h -N -o %T 2> /dev/null | grep -c idle)" = "$hosts" ] && exec "$@"
  sleep 0.1
done
tail -n 3 "$box"/log/*.log >&2
exit 99
