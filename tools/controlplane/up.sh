#!/bin/bash
# up.sh BIN DIR [PORT]: starts the control plane whose programs are in BIN, on 127.0.0.1; takes PORT, PORT+1 and PORT+2.
# Logs, pids and data are put into DIR; DIR/kubeconfig is the administrator's. Ready in about four seconds; down.sh DIR stops it.
#
# NODES=0 (default): no scheduler and no kubelet; a test plays them. NODES=N: the scheduler, and the embedded kubelet with N nodes.
# CONTROLLERS=0: the API server and etcd alone. WITHOUT: controllers that are left out, of statefulset, deployment, replicaset, garbage
# and namespace.
# Where BIN has no controller manager or scheduler, as with the assets of kubebuilder, those of the embedded cluster are run.
# PYTHON names an interpreter that has lwskit; it is needed only for what comes from the embedded cluster.
# APISERVER_ARGS, KCM_ARGS, SCHEDULER_ARGS and KUBELET_ARGS are further arguments, split at blanks.
set -euo pipefail

# There is more memory than processor time: so the Go programs collect their garbage less often.
export GOGC=${GOGC:-400}

here=$(cd "$(dirname "$0")" && pwd)
bin=$(cd "$1" && pwd)
mkdir -p "$2"
cd "$2"
dir=$PWD
port=${3:-26443}
clients=http://127.0.0.1:$((port + 1))
peers=http://127.0.0.1:$((port + 2))
server=https://127.0.0.1:$port
nodes=${NODES:-0}

start() { # NAME COMMAND...: in a session of its own, so that a Ctrl-C at the terminal leaves the order of stopping to down.sh
  local name=$1
  shift
  setsid "$@" >"$name.log" 2>&1 </dev/null &
  echo $! >"$name.pid"
}

if [ ! -f sa.key ]; then
  openssl genrsa -out sa.key 2048 2>/dev/null
  openssl rsa -in sa.key -pubout -out sa.pub 2>/dev/null
fi
token=$(openssl rand -hex 16)
(umask 077 && echo "$token,admin,admin,\"system:masters\"" >tokens.csv)

start etcd "$bin/etcd" --data-dir etcd --unsafe-no-fsync \
  --listen-client-urls "$clients" --advertise-client-urls "$clients" \
  --listen-peer-urls "$peers" --initial-advertise-peer-urls "$peers" --initial-cluster "default=$peers"
# shellcheck disable=SC2086
start apiserver "$bin/kube-apiserver" --etcd-servers "$clients" --cert-dir "$dir/certs" \
  --bind-address 127.0.0.1 --secure-port "$port" --service-cluster-ip-range 10.0.0.0/16 \
  --service-account-issuer https://kubernetes.default.svc \
  --service-account-key-file sa.pub --service-account-signing-key-file sa.key \
  --token-auth-file tokens.csv --authorization-mode RBAC --disable-admission-plugins ServiceAccount ${APISERVER_ARGS:-}

(umask 077 && cat >kubeconfig <<END
apiVersion: v1
kind: Config
clusters: [{name: local, cluster: {server: "$server", insecure-skip-tls-verify: true}}]
users: [{name: admin, user: {token: $token}}]
contexts: [{name: local, context: {cluster: local, user: admin}}]
current-context: local
END
)

ready() { curl --silent --fail --insecure --max-time 2 -H "Authorization: Bearer $token" "$server/readyz" >/dev/null; }
for _ in $(seq 240); do
  if ready; then break; fi
  for name in etcd apiserver; do
    if kill -0 "$(cat $name.pid)" 2>/dev/null; then continue; fi
    echo "$name ended while starting; the end of $dir/$name.log:" >&2
    tail -n 5 $name.log >&2
    exit 1
  done
  sleep 0.25
done
if ! ready; then
  echo "the API server at $server was not ready after 60 seconds; see $dir/apiserver.log" >&2
  exit 1
fi

embedded() { # NAME CONTROLLER...: controllers of the embedded cluster on this API server
  local name=$1
  shift
  start "$name" "${PYTHON:-python3}" "$here/controllers.py" --kubeconfig "$dir/kubeconfig" --nodes "$nodes" "$@"
}

common="--kubeconfig kubeconfig --authentication-kubeconfig kubeconfig --authorization-kubeconfig kubeconfig --leader-elect=false --secure-port 0"
upstream='*,-node-lifecycle-controller' own=()
for pair in statefulset:statefulset deployment:deployment replicaset:replicaset garbage:garbage-collector namespace:namespace; do
  case " ${WITHOUT:-} " in
    *" ${pair%%:*} "*) upstream+=",-${pair#*:}-controller" ;;
    *) own+=("${pair%%:*}") ;;
  esac
done
if [ "${CONTROLLERS:-1}" = 0 ]; then
  : # the tests are the only client
elif [ -x "$bin/kube-controller-manager" ]; then
  # Nodes here send no heartbeats: node lifecycle would turn them NotReady after 40 seconds.
  # shellcheck disable=SC2086
  start controllers "$bin/kube-controller-manager" $common --service-account-private-key-file sa.key \
    --kube-api-qps 500 --kube-api-burst 1000 --controllers="$upstream" ${KCM_ARGS:-}
else
  embedded controllers "${own[@]}"
fi
if [ "$nodes" -gt 0 ]; then
  # shellcheck disable=SC2086
  if [ -x "$bin/kube-scheduler" ]; then
    start scheduler "$bin/kube-scheduler" $common ${SCHEDULER_ARGS:-}
  else
    embedded scheduler scheduler
  fi
  # shellcheck disable=SC2086
  embedded kubelet kubelet ${KUBELET_ARGS:-}
fi
echo "$dir/kubeconfig"
