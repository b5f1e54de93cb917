#!/usr/bin/env bash
# scripts/bench/network_hosts.sh TRAINER [CHECK...]: runs ranks on emulated hosts with a network
# between them (see hosts.sh). Needs root; exits with code 77 if it cannot make hosts.
#   learn   LeNet on 2 and 4 hosts, and on 2 hosts with 2 ranks each, learns what one rank learns
#   rate    sums use both directions of a link at once
#   kill    a killed rank ends all ranks
#   link    ranks on all hosts end when a host loses its link
set -euo pipefail
# shellcheck source=scripts/bench/hosts.sh
source "$(dirname "${BASH_SOURCE[0]}")/hosts.sh"

root="$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd -P)"
trainer="$(realpath "$1")"
shift
export OMP_NUM_THREADS=1

fail() {
  say "hosts: $1"
  [[ $# -lt 2 ]] || tail -n 40 "$2"
  exit 1
}

# LeNet on a few digits; logs each loss.
make_job() {
  "$trainer" dataset digits data --train=640 --test=20 --minloglevel=1 >/dev/null
  sed 's|data/digits/|data/|; s|batch_size: 64|batch_size: 16|; s|batch_size: 100|batch_size: 20|' \
    "$root/models/lenet/train_test.prototxt" >net.prototxt
  cat >solver.prototxt <<'SOLVER'
net: "net.prototxt"
base_lr: 0.01
lr_policy: "fixed"
momentum: 0.9
display: 1
max_iter: 20
snapshot: 0
snapshot_after_train: false
random_seed: 1
SOLVER
}

# losses LOG: prints one loss per line.
losses() { sed -n 's/.*Iteration [0-9]*.*, loss = \([-+.0-9e]*\).*/\1/p' "$1"; }

# expect_same_losses A B: fails unless the losses of B agree within 1e-4 with A's.
expect_same_losses() {
  paste <(losses "$1") <(losses "$2") | awk '
    NF != 2 { print "one log has more losses than the other"; bad = 1; exit }
    { difference = $1 - $2; if (difference < 0) difference = -difference
      if (difference > 1e-4 * $1) { print "losses " $1 " and " $2; bad = 1 } }
    END { if (NR < 20) { print NR " losses"; bad = 1 }; exit bad }'
}

check_learn() {
  local hosts each log
  "$trainer" train --solver=solver.prototxt 2>one.log || fail "one rank failed" one.log
  for case in "2 1" "4 1" "2 2"; do
    read -r hosts each <<<"$case"
    log="learn-$hosts-$each.log"
    hosts_mpirun "$hosts" "$each" "$trainer" train --solver=solver.prototxt --global_batch 2>"$log" ||
      fail "$hosts hosts with $each ranks failed" "$log"
    grep -q "ranks on $hosts machines" "$log" || fail "not $hosts machines" "$log"
    expect_same_losses one.log "$log" || fail "$hosts hosts do not learn what one does" "$log"
    say "learn: $hosts hosts, $each ranks on each: the losses of one rank"
  done
}

# start_long SECONDS: starts an endless run on 2 hosts with 2 ranks each. Its ranks wait SECONDS for
# each other. The log is long.log and the process $job.
start_long() {
  hosts_mpirun 2 2 "$trainer" train --solver=solver.prototxt --set max_iter=100000000 \
    --set display=1000 --peer_warning=5 --peer_timeout="$1" >long.log 2>&1 &
  job=$!
  local i
  for ((i = 0; i < 1800; ++i)); do
    ! grep -q 'Iteration 0' long.log || return 0
    kill -0 "$job" 2>/dev/null || fail "the run did not start" long.log
    sleep 0.1
  done
  fail "the run did not start in 3 minutes" long.log
}

# await_end SECONDS: waits for $job and for the processes of all hosts. $status is the exit code.
await_end() {
  local i
  for ((i = 0; i < 10 * $1; ++i)); do
    kill -0 "$job" 2>/dev/null || break
    sleep 0.1
  done
  ! kill -0 "$job" 2>/dev/null || fail "the run did not end in $1 s" long.log
  status=0
  wait "$job" || status=$?
  for ((i = 0; i < 600; ++i)); do
    [[ -n "$(processes_on_hosts)" ]] || return 0
    sleep 0.1
  done
  ps -o pid,ppid,stat,args -p "$(processes_on_hosts | paste -sd,)" || true
  fail "these processes are left" long.log
}

# Checks that the log names lost rank $1 and that the exit code is not 0.
expect_end() {
  ((status != 0)) || fail "the exit code is 0" long.log
  grep -q "error: .*rank $1 (host" long.log || grep -q "noticed that process rank $1 " long.log ||
    fail "no sentence says that rank $1 was lost" long.log
  say "$2: ended with $status: $(grep -m 1 -E "error: |noticed that" long.log)"
}

check_kill() {
  start_long 300
  local process
  process="$(sed -n 's/.*rank 3 (host2, process \([0-9]*\)).*/\1/p' long.log | head -n 1)"
  kill -KILL "$process"
  await_end 180
  expect_end 3 kill
}

# await_ranks SECONDS: waits until all ranks on all hosts have ended.
await_ranks() {
  local i ranks process left
  ranks="$(sed -n 's/.*  rank [0-9]* (host[0-9]*, process \([0-9]*\))$/\1/p' long.log)"
  for ((i = 0; i < 10 * $1; ++i)); do
    left=""
    for process in $ranks; do [[ ! -e "/proc/$process" ]] || left+=" $process"; done
    [[ -n "$left" ]] || return 0
    sleep 0.1
  done
  fail "the ranks$left did not end in $1 s" long.log
}

# mpirun and its daemon on the lost host do not notice. They wait as long as TCP does (a quarter of
# an hour), or until the link is back.
check_link() {
  start_long 20
  ip link set "${hosts_id}v2" down
  await_ranks 240
  grep -q 'error: .*host[12], .*silent' long.log || fail "no sentence says who was silent" long.log
  say "link: ranks ended: $(grep -m 1 'error: ' long.log)"
  ip link set "${hosts_id}v2" up
  await_end 180
  ((status == 82)) || fail "the exit code is $status, not 82" long.log
  say "link: mpirun ended with $status once the link was back"
}

# sum_us: prints the microseconds of a sum of 1 MiB on 2 hosts.
sum_us() {
  hosts_mpirun 2 1 "$trainer" bench-comm --mib=1 --rounds=5 --minloglevel=1 >rate.log 2>&1 ||
    fail "bench-comm failed" rate.log
  awk '$1 == "1.00" && $2 == "MiB" { print $3 }' rate.log
}

# Each host sends and receives 1 MiB at once. Alternates with Open MPI's default way to send, which
# takes half as long again on an idle machine.
check_rate() {
  limit_hosts 50mbit
  for _ in 1 2; do
    sum_us >>ours
    OMPI_MCA_btl_tcp_flags=send,put,inplace sum_us >>theirs
  done
  limit_hosts none
  paste ours theirs | awk '{ if (NR == 1 || $1 < a) a = $1; if (NR == 1 || $2 < b) b = $2 }
    END { printf "rate: 1 MiB at 50 Mbit/s in %.0f ms, with puts in %.0f\n", a / 1e3, b / 1e3
      exit a > 0.93 * b }' || fail "sums do not fill the link" rate.log
}

make_hosts 4
cd "$hosts_folder"
make_job
(($# > 0)) || set -- learn rate kill link
for check in "$@"; do "check_$check"; done
