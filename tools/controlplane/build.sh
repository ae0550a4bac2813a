#!/bin/bash
# build.sh [OUT]: builds etcd, kube-apiserver, kube-controller-manager and kube-scheduler into OUT.
# OUT is ${LWSKIT_CACHE:-~/.cache/lwskit}/controlplane unless given, outside of any checkout, so that it is done once.
# What is there in the right version is left alone. Needs Go 1.26; about ten minutes on two cores the first time.
set -euo pipefail

kubernetes=1.37.2
etcd=3.7.3
here=$(cd "$(dirname "$0")" && pwd)
out=${1:-${LWSKIT_CACHE:-$HOME/.cache/lwskit}/controlplane}
mkdir -p "$out"
out=$(cd "$out" && pwd)

present() { # NAME VERSION: is this binary there, in this version?
  # Read to the end: a program whose output is cut off fails, and would be built anew.
  [ -x "$out/$1" ] && "$out/$1" --version 2>/dev/null | grep -E "[ v]$2( |$)" >/dev/null
}

build() { # NAME VERSION PACKAGE LDFLAGS: under a passing name first, so that a broken build leaves nothing behind
  if present "$1" "$2"; then return; fi
  echo "building $1 $2 into $out"
  (cd "$here/kubernetes" && go build -trimpath -ldflags "$4" -o "$out/.$1.$$" "$3")
  mv "$out/.$1.$$" "$out/$1"
}

export CGO_ENABLED=0 GOTOOLCHAIN=local
package=k8s.io/component-base/version
stamp="-s -w -X $package.gitVersion=v$kubernetes -X $package.gitMajor=1 -X $package.gitMinor=37"
for name in kube-apiserver kube-controller-manager kube-scheduler; do
  build "$name" "$kubernetes" "k8s.io/kubernetes/cmd/$name" "$stamp"
done
build etcd "$etcd" go.etcd.io/etcd/server/v3 "-s -w"
