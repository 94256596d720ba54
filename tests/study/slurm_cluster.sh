# A Slurm for tests: munge, controller and node daemons in a folder of their own, on free ports, all
# stopped by stop_slurm. To be sourced. start_slurm FOLDER [CPUS [NODES]] returns 77, with a word why,
# where it cannot start. Several nodes are several daemons of this machine (slurmd -N), named node1 and
# so on; one node bears the machine's name.
find_port() {
  local port
  for port in $(shuf -i 20000-59000 -n 50); do
    (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null || {
      echo "$port"
      return
    }
  done
}

start_slurm() {
  slurm_dir=$1
  local cpus=${2:-2} count=${3:-1} host program i
  host=$(hostname -s)
  slurm_nodes=("$host")
  ((count == 1)) || slurm_nodes=($(seq -f node%g "$count"))
  for program in munged slurmctld slurmd sbatch; do
    command -v "$program" >/dev/null || {
      echo "skipped: $program is not installed"
      return 77
    }
  done
  ((EUID == 0)) || {
    echo "skipped: only root can start Slurm's daemons"
    return 77
  }
  grep -qw "$host" /etc/hosts || echo "127.0.0.1 $host" >>/etc/hosts || {
    echo "skipped: $host is not in /etc/hosts and cannot be added"
    return 77
  }
  mkdir -p "$slurm_dir"/{state,spool,log,munge}
  chmod 755 "$slurm_dir"
  chmod 711 "$slurm_dir/munge"
  dd if=/dev/urandom of="$slurm_dir/munge/munge.key" bs=1024 count=1 status=none
  chmod 600 "$slurm_dir/munge/munge.key"
  cat >"$slurm_dir/slurm.conf" <<EOF
ClusterName=trial
SlurmctldHost=$host(127.0.0.1)
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket=$slurm_dir/munge/munge.sock
CredType=cred/munge
SlurmctldPort=$(find_port)
SlurmdPort=$(find_port)
StateSaveLocation=$slurm_dir/state
SlurmdSpoolDir=$slurm_dir/spool/%n
SlurmctldPidFile=$slurm_dir/slurmctld.pid
SlurmdPidFile=$slurm_dir/%n.pid
SlurmctldLogFile=$slurm_dir/log/slurmctld.log
SlurmdLogFile=$slurm_dir/log/%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
JobCompType=jobcomp/filetxt
JobCompLoc=$slurm_dir/log/jobcomp.txt
MpiDefault=none
SwitchType=switch/none
SchedulerType=sched/backfill
SchedulerParameters=bf_interval=2,sched_interval=2
ReturnToService=2
InactiveLimit=0
KillWait=5
MinJobAge=600
MaxArraySize=10001
MaxJobCount=20000
JobRequeue=1
SlurmctldTimeout=30
SlurmdTimeout=15
$(for i in "${slurm_nodes[@]}"; do
    echo "NodeName=$i NodeHostname=$host NodeAddr=127.0.0.1 Port=$(find_port) CPUs=$cpus State=UNKNOWN"
  done)
PartitionName=main Nodes=ALL Default=YES MaxTime=INFINITE State=UP
EOF
  export SLURM_CONF=$slurm_dir/slurm.conf
  munged --key-file="$slurm_dir/munge/munge.key" --socket="$slurm_dir/munge/munge.sock" \
    --pid-file="$slurm_dir/munge/munged.pid" --log-file="$slurm_dir/munge/munged.log" \
    --seed-file="$slurm_dir/munge/munged.seed" || {
    echo "skipped: munged does not start"
    return 77
  }
  slurmctld && for i in "${slurm_nodes[@]}"; do start_node "$i" || break; done || {
    echo "skipped: Slurm's daemons do not start: $(tail -1 "$slurm_dir/log/slurmctld.log")"
    stop_slurm
    return 77
  }
  for i in $(seq 60); do
    [[ $(sinfo -h -o %T 2>/dev/null) == idle ]] && return 0
    sleep 0.5
  done
  echo "skipped: the nodes do not become idle: $(tail -qn 1 "$slurm_dir"/log/*.log | head -1)"
  stop_slurm
  return 77
}

start_node() { slurmd -N "${1:-${slurm_nodes[0]}}"; }

kill_node() { kill -9 "$(cat "$slurm_dir/${1:-${slurm_nodes[0]}}.pid")"; }

kill_controller() { kill -9 "$(cat "$slurm_dir/slurmctld.pid")"; }

stop_slurm() {
  local file
  scancel -u "$(id -u)" 2>/dev/null || true
  for file in "${slurm_nodes[@]}" slurmctld munge/munged; do
    [[ -f $slurm_dir/$file.pid ]] && kill "$(cat "$slurm_dir/$file.pid")" 2>/dev/null || true
  done
  sleep 1
}
