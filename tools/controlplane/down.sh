#!/bin/bash
# down.sh DIR: stops what up.sh started there, each in at most five seconds.
# The API server goes before etcd: without etcd it would linger.
dir=${1:?usage: down.sh DIR}
for name in kubelet scheduler controllers apiserver etcd; do
  file=$dir/$name.pid
  [ -f "$file" ] || continue
  pid=$(cat "$file")
  kill "$pid" 2>/dev/null
  for _ in $(seq 50); do
    kill -0 "$pid" 2>/dev/null || break
    sleep 0.1
  done
  kill -9 "$pid" 2>/dev/null
  rm -f "$file"
done
exit 0
