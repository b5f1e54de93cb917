# Emulates hosts on this machine; to be sourced. Each host is a network namespace with its own
# address and name. A bridge joins them, and ranks use TCP over real sockets. Hosts share this
# machine's programs and files. When the script exits, even after an error, the hosts are removed.
# shellcheck shell=bash
PATH="$PATH:/usr/sbin:/sbin"

hosts_id="tn$$"                                      # prefix of all names
hosts_net="10.$((128 + $$ / 250 % 100)).$(($$ % 250))"
hosts_count=0
hosts_folder=""

say() { printf '%s\n' "$*"; }
# ctest reads exit code 77 as "skipped".
skip() {
  say "hosts: skipped: $*"
  exit 77
}

# make_hosts N: makes hosts 1 to N with the addresses $hosts_net.1 and so on, and the folder
# $hosts_folder.
make_hosts() {
  local tool i
  [[ "$(id -u)" == 0 ]] || skip "network namespaces need root"
  for tool in ip tc unshare mpirun orted awk; do
    command -v "$tool" >/dev/null || skip "there is no $tool (apt-get install iproute2 openmpi-bin)"
  done
  trap remove_hosts EXIT
  trap 'exit 130' INT TERM HUP
  hosts_folder="$(mktemp -d)"
  { ip link add "${hosts_id}b" type bridge && ip addr add "$hosts_net.254/24" dev "${hosts_id}b" &&
    ip link set "${hosts_id}b" up; } 2>"$hosts_folder/why" ||
    skip "no bridge can be made here: $(tail -n 1 "$hosts_folder/why")"
  for ((i = 1; i <= $1; ++i)); do
    add_host "$i" 2>"$hosts_folder/why" ||
      skip "no network namespace can be made here: $(tail -n 1 "$hosts_folder/why")"
  done
  write_agent
}

add_host() {
  local name="$hosts_id-$1" link="${hosts_id}v$1"
  ip netns add "$name" || return
  hosts_count=$1
  ip link add "$link" type veth peer name eth0 netns "$name" || return
  ip link set "$link" master "${hosts_id}b" up || return
  ip -n "$name" link set lo up || return
  ip -n "$name" addr add "$hosts_net.$1/24" dev eth0 || return
  ip -n "$name" link set eth0 up
}

remove_hosts() {
  local status=$? i process
  for ((i = 1; i <= hosts_count; ++i)); do
    for process in $(ip netns pids "$hosts_id-$i" 2>/dev/null); do
      kill -KILL "$process" 2>/dev/null || true
    done
    ip link del "${hosts_id}v$i" 2>/dev/null || true
    ip netns del "$hosts_id-$i" 2>/dev/null || true
  done
  ip link del "${hosts_id}b" 2>/dev/null || true
  [[ -z "$hosts_folder" ]] || rm -rf "$hosts_folder"
  exit "$status"
}

# mpirun calls this instead of ssh: AGENT ADDRESS COMMAND... starts the command on that host. With
# HOSTS_PIN=1 each host has one core of this machine to itself, as long as there are enough cores.
write_agent() {
  cat >"$hosts_folder/agent" <<AGENT
#!/usr/bin/env bash
number="\${1##*.}"
shift
pin=()
[[ "\${HOSTS_PIN:-0}" == 0 ]] || pin=(taskset -c "\$(((number - 1) % $(nproc)))")
exec unshare --uts sh -c 'hostname "host\$0"; exec "\$@"' "\$number" \
  ip netns exec "$hosts_id-\$number" "\${pin[@]}" sh -c "\$*"
AGENT
  chmod +x "$hosts_folder/agent"
}

# on_host I COMMAND...: runs the command on host I.
on_host() {
  local number="$1" words
  shift
  printf -v words '%q ' "$@"
  "$hosts_folder/agent" "$hosts_net.$number" "$words"
}

# limit_hosts RATE: limits how fast each host can send, for example 100mbit; "none" removes the
# limit.
limit_hosts() {
  local i
  for ((i = 1; i <= hosts_count; ++i)); do
    tc -n "$hosts_id-$i" qdisc del dev eth0 root 2>/dev/null || true
    [[ "$1" == none ]] ||
      tc -n "$hosts_id-$i" qdisc add dev eth0 root tbf rate "$1" burst 64kb limit 8mb ||
      skip "this kernel limits no rate (tbf)"
  done
}

# hosts_mpirun HOSTS RANKS_ON_EACH COMMAND...
hosts_mpirun() {
  local hosts="$1" each="$2" list="" i
  shift 2
  for ((i = 1; i <= hosts; ++i)); do list+="${list:+,}$hosts_net.$i:$each"; done
  mpirun --allow-run-as-root --oversubscribe --bind-to none --host "$list" -np $((hosts * each)) \
    --mca plm rsh --mca plm_rsh_agent "$hosts_folder/agent" \
    --mca btl tcp,self --mca btl_tcp_if_include "$hosts_net.0/24" \
    --mca oob_tcp_if_include "$hosts_net.0/24" \
    -x OMP_NUM_THREADS "$@"
}

# processes_on_hosts: prints the ids of all processes on any host.
processes_on_hosts() {
  local i
  for ((i = 1; i <= hosts_count; ++i)); do ip netns pids "$hosts_id-$i" 2>/dev/null || true; done
}
