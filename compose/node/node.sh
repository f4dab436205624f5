#!/bin/bash
# A node: starts its server and stays up whether or not the server does, as a machine would.
#
#   node run ROLE      start the server, then wait for ever (the container's main process)
#   node start ROLE    start it, detached; its pid goes to /run/fencepost/server.pid
#   node health ROLE   whether it serves: for a cluster, whether a quorum does
#   node leads ROLE    whether it says that it is the primary or the leader
#   node identity ROLE what tells it from a server that comes in its place
#   node wipe ROLE     forget its data (it must be down)
#   node sshd          let the harness in by SSH
#
# PERSISTENCE (none, everysec, always), CLOCK (real, fake) and PRIMARY (a host to replicate) are
# settings of redis, RELEASE (3.4, 3.5) and JOIN (new, existing) of etcd; DISK (below) of all.
set -eu

[ "${1:-}" != sshd ] || exec bash /opt/fencepost/sshd.sh
role=${2:?node: which role?}
data=/var/lib/fencepost/$role
backing=$data.disk
log=/var/log/fencepost/$role.log
run=/run/fencepost
# A host of somebody else's may have a name that is not its node's.
host=$(cat $run/name 2> /dev/null || hostname)

redis_command() {
  command=(redis-server --port 6379 --bind 0.0.0.0 --protected-mode no --dir "$data" --save '')
  case ${PERSISTENCE:-none} in
    none) command+=(--appendonly no) ;;
    *) command+=(--appendonly yes --appendfsync "$PERSISTENCE") ;;
  esac
  # A primary waits 5 s for more replicas before it sends the first one what it has.
  command+=(--repl-diskless-sync-delay 0)
  [ -z "${PRIMARY:-}" ] || command+=(--replicaof "$PRIMARY" 6379)
  if [ "${CLOCK:-real}" = fake ]; then
    # libc's malloc first: under jemalloc, libfaketime 0.9.10 calls itself while it starts.
    preload=$(echo /usr/lib/*/faketime/libfaketime.so.1):libc.so.6
    [ -e $run/clock ] || echo +0 > $run/clock
    command=(env LD_PRELOAD="$preload" FAKETIME_TIMESTAMP_FILE=$run/clock FAKETIME_NO_CACHE=1
      FAKETIME_DONT_FAKE_MONOTONIC=1 DONT_FAKE_MONOTONIC=1 "${command[@]}")
  fi
}

zookeeper_command() {
  # A tick of 500 ms, because a session is at least two ticks and a test may ask for 1 s.
  {
    printf '%s\n' tickTime=500 initLimit=20 syncLimit=10 dataDir="$data" clientPort=2181 \
      4lw.commands.whitelist=srvr,ruok,mntr,cons admin.enableServer=false maxClientCnxns=0
    for n in 1 2 3; do echo "server.$n=zookeeper-$n:2888:3888"; done
  } > $run/zoo.cfg
  echo "${host##*-}" > "$data/myid"
  command=(env JVMFLAGS=-Xmx256m /usr/share/zookeeper/bin/zkServer.sh start-foreground $run/zoo.cfg)
}

etcd_command() {
  etcd=/opt/fencepost/etcd-3.5
  [ "${RELEASE:-3.5}" != 3.4 ] || etcd=/usr/bin/etcd
  [ -x $etcd ] || etcd=etcd
  command=($etcd --name "$host" --data-dir "$data/etcd" --logger zap
    --listen-client-urls http://0.0.0.0:2379 --advertise-client-urls "http://$host:2379"
    --listen-peer-urls http://0.0.0.0:2380 --initial-advertise-peer-urls "http://$host:2380"
    --initial-cluster-state "${JOIN:-new}"
    --initial-cluster etcd-1=http://etcd-1:2380,etcd-2=http://etcd-2:2380,etcd-3=http://etcd-3:2380)
}

postgres_command() {
  [ -e "$data/PG_VERSION" ] || cp -a /opt/fencepost/postgres/. "$data"
  chown postgres "$data" && chmod 700 "$data"
  command=(setpriv --reuid postgres --regid postgres --init-groups
    /usr/lib/postgresql/15/bin/postgres -D "$data" -k /tmp -h 0.0.0.0 -c max_connections=200)
}

# What a server's data lies on: DISK is plain, or of lazy (what was not synced can be lost, lazy.py)
# and small (so that it can be full), with a comma between. ZooKeeper and etcd take 64 MB and more
# of a disk beforehand.
disk() {
  local below=$data size=256m
  [ "$role" != redis ] || size=64m
  if [ "${DISK:-plain}" = plain ]; then
    undisk
    mkdir -p "$data"
    return
  fi
  case ,$DISK, in *,lazy,*) below=$backing ;; esac
  mkdir -p "$data" "$below"
  case ,$DISK, in
    *,small,*) mountpoint -q "$below" || mount -t tmpfs -o size=$size tmpfs "$below" ;;
  esac
  if [ "$below" != "$data" ] && ! mountpoint -q "$data"; then
    [ -e /dev/fuse ] || mknod /dev/fuse c 10 229
    setsid python3 /opt/fencepost/lazy.py serve "$backing" "$data" >> "$log" 2>&1 < /dev/null &
    for _ in {1..100}; do ! mountpoint -q "$data" || break; sleep 0.05; done
    mountpoint -q "$data" || { echo "node: the lazy disk is not mounted: see $log" >&2; exit 1; }
  fi
}

undisk() {
  for folder in "$data" "$backing"; do
    ! mountpoint -q "$folder" || umount -l "$folder"
  done
}

start() {
  [ "$role" != client ] || return 0
  mkdir -p "$run" "$(dirname "$log")"
  disk
  "${role}_command"
  # Under the skew that a clock fault left, if one is on.
  [ ! -e $run/skew ] || command=(python3 /opt/fencepost/launch.py "${command[@]}")
  setsid "${command[@]}" >> "$log" 2>&1 < /dev/null &
  echo $! > $run/server.pid
}

health() {
  case $role in
    # A replica serves once it has what its primary has.
    redis) [ "$(timeout 2 redis-cli ping)" = PONG ] &&
      ! redis-cli info replication | grep -q master_link_status:down ;;
    # Only a server that is part of a quorum says which mode it is in.
    zookeeper) echo srvr | nc -w 2 localhost 2181 | grep -Eq '^Mode: (leader|follower)' ;;
    # etcd's own health check is a read that needs a quorum.
    etcd) ETCDCTL_API=3 etcdctl --command-timeout 2s endpoint health > /dev/null 2>&1 ;;
    postgres) setpriv --reuid postgres --regid postgres --init-groups timeout 2 \
      psql -h /tmp -qtc 'select 1' > /dev/null 2>&1 ;;
    client) true ;;
  esac
}

etcd_status() {
  ETCDCTL_API=3 etcdctl --command-timeout 2s endpoint status
}

leads() {
  case $role in
    redis) timeout 2 redis-cli role | head -1 | grep -qx master ;;
    zookeeper) echo srvr | nc -w 2 localhost 2181 | grep -q '^Mode: leader' ;;
    etcd) [ "$(etcd_status | cut -d, -f5)" = " true" ] ;;
    *) false ;;
  esac
}

identity() {
  case $role in
    redis) timeout 2 redis-cli info server | tr -d '\r' | sed -n 's/^run_id:/run /p' ;;
    # Its number is its place; what it knows of the past begins where its disk does.
    zookeeper) echo "disk $(stat -c %W.%i "$data/version-2")" ;;
    etcd) etcd_status | sed -n 's/^[^,]*, \([0-9a-f]*\),.*/member \1/p' ;;
  esac
}

case ${1:?node: which verb?} in
  run)
    start
    trap 'exit 0' TERM INT
    sleep infinity & wait
    ;;
  start) start ;;
  health) health ;;
  leads) leads ;;
  identity) identity ;;
  wipe) undisk; rm -rf "$data" "$backing" ;;
  *) echo "node: no such verb: $1" >&2; exit 2 ;;
esac
