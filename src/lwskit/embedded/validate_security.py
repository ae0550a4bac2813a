"""Rules of security contexts, of pods and of containers. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from lwskit.embedded.failures import (
    FieldError,
    duplicate,
    forbidden_field,
    invalid_value,
    not_supported,
    required,
    too_long,
)
from lwskit.embedded.validate_values import chosen, descending, identity

_PROFILES = ("Localhost", "RuntimeDefault", "Unconfined")
_LONGEST_PROFILE = 4095
_SYSCTL = r"^([a-z0-9]([-_a-z0-9]*[a-z0-9])?[\./])*[a-z0-9]([-_a-z0-9]*[a-z0-9])?$"
_SYSCTL_LIMIT = 253
_IPC = ("kernel.shm", "kernel.msg", "fs.mqueue.")
_NOT_ON_WINDOWS_PODS = (
    "appArmorProfile",
    "seLinuxOptions",
    "seccompProfile",
    "fsGroup",
    "fsGroupChangePolicy",
    "sysctls",
    "runAsUser",
    "runAsGroup",
    "supplementalGroups",
    "supplementalGroupsPolicy",
    "seLinuxChangePolicy",
)
_NOT_ON_WINDOWS = (
    "appArmorProfile",
    "seLinuxOptions",
    "seccompProfile",
    "capabilities",
    "readOnlyRootFilesystem",
    "privileged",
    "allowPrivilegeEscalation",
    "procMount",
    "runAsUser",
    "runAsGroup",
)
_INTERNAL = (
    "capabilities",
    "privileged",
    "seLinuxOptions",
    "windowsOptions",
    "runAsUser",
    "runAsGroup",
    "runAsNonRoot",
    "readOnlyRootFilesystem",
    "allowPrivilegeEscalation",
    "procMount",
    "seccompProfile",
    "appArmorProfile",
)


def of_container(found: Mapping[str, Any], where: str, *, host_users: bool) -> Iterator[FieldError]:
    """The broken rules of a container's security; `host_users` says that the pod's users are those of its node."""
    for name in ("runAsUser", "runAsGroup"):
        yield from identity(found.get(name), f"{where}.{name}")
    mount = found.get("procMount")
    if mount is not None:
        yield from chosen(mount, f"{where}.procMount", ("Default", "Unmasked"))
        if mount == "Unmasked" and host_users:
            yield invalid_value(f"{where}.procMount", mount, "`hostUsers` must be false to use `Unmasked`")
    yield from _seccomp(found.get("seccompProfile"), f"{where}.seccompProfile")
    if found.get("allowPrivilegeEscalation") is False:
        cannot = "cannot set `allowPrivilegeEscalation` to false and"
        if found.get("privileged"):
            yield invalid_value(where, _internal(found), f"{cannot} `privileged` to true")
        for capability in (found.get("capabilities") or {}).get("add") or ():
            if capability == "CAP_SYS_ADMIN":
                yield invalid_value(where, _internal(found), f"{cannot} `capabilities.Add` CAP_SYS_ADMIN")
    yield from _app_armor(found.get("appArmorProfile"), f"{where}.appArmorProfile")


def _internal(found: Mapping[str, Any]) -> dict[str, Any]:
    """A context as refusals show it."""

    def shown(value: Any) -> Any:
        if isinstance(value, dict):
            return {k[0].upper() + k[1:]: shown(v) for k, v in value.items()}
        return value

    made = {f"SELinux{n[7:]}" if n.startswith("seLinux") else n[0].upper() + n[1:]: found.get(n) for n in _INTERNAL}
    out = {name: shown(value) for name, value in made.items()}
    if isinstance(out["Capabilities"], dict):
        out["Capabilities"] = {"Add": None, "Drop": None} | out["Capabilities"]
    return out


def of_pod(found: Mapping[str, Any], spec: Mapping[str, Any], where: str) -> Iterator[FieldError]:
    """The broken rules of a pod's security."""
    for name in ("fsGroup", "runAsUser", "runAsGroup"):
        yield from identity(found.get(name), f"{where}.{name}")
    for i, group in enumerate(found.get("supplementalGroups") or ()):
        yield from identity(group, f"{where}.supplementalGroups[{i}]")
    yield from _sysctls(found.get("sysctls") or [], spec, f"{where}.sysctls")
    if found.get("fsGroupChangePolicy") is not None:
        yield from chosen(found["fsGroupChangePolicy"], f"{where}.fsGroupChangePolicy", ("Always", "OnRootMismatch"))
    yield from _seccomp(found.get("seccompProfile"), f"{where}.seccompProfile")
    yield from _app_armor(found.get("appArmorProfile"), f"{where}.appArmorProfile")
    for name, allowed in (
        ("supplementalGroupsPolicy", ("Merge", "Strict")),
        ("seLinuxChangePolicy", ("MountOption", "Recursive")),
    ):
        if found.get(name) is not None:
            yield from chosen(found[name], f"{where}.{name}", allowed)


def _sysctls(found: list[dict[str, Any]], spec: Mapping[str, Any], where: str) -> Iterator[FieldError]:
    seen: set[str] = set()
    for i, sysctl in enumerate(found):
        name, at = sysctl.get("name", ""), f"{where}[{i}].name"
        if not name:
            yield required(at)
        elif len(name) > _SYSCTL_LIMIT or not re.match(_SYSCTL, name):
            text = f"must have at most {_SYSCTL_LIMIT} characters and match regex {_SYSCTL}"
            yield invalid_value(at, name, text)
        elif name in seen:
            yield duplicate(at, name)
        seen.add(name)
        dotted = name.replace("/", ".")
        shared = "hostIPC" if dotted.startswith(_IPC) or dotted == "kernel.sem" else ""
        shared = "hostNetwork" if dotted.startswith("net.") else shared
        if shared and spec.get(shared):
            yield invalid_value(at, name, f"may not be specified when '{shared}' is true")


def of_windows(spec: Mapping[str, Any], field: str) -> Iterator[FieldError]:
    """The errors of what pods for Windows cannot have."""
    found: list[tuple[Mapping[str, Any], str, Sequence[str]]] = [
        (spec.get("securityContext") or {}, f"{field}.securityContext", _NOT_ON_WINDOWS_PODS),
        (spec, field, ("hostUsers", "hostPID", "hostIPC", "shareProcessNamespace")),
    ]
    for kind in ("initContainers", "containers"):
        for i, container in enumerate(spec.get(kind) or ()):
            context = container.get("securityContext") or {}
            found.append((context, f"{field}.{kind}[{i}].securityContext", _NOT_ON_WINDOWS))
    for value, where, fields in found:
        for name in fields:
            if value.get(name) is not None:
                yield forbidden_field(f"{where}.{name}", "cannot be set for a windows pod")


def _seccomp(found: Mapping[str, Any] | None, where: str) -> Iterator[FieldError]:
    if found is None:
        return
    kind, profile = found.get("type", ""), found.get("localhostProfile")
    if not kind:
        yield required(f"{where}.type", "type is required when seccompProfile is set")
    elif kind not in _PROFILES:
        yield not_supported(f"{where}.type", kind, _PROFILES)
    at = f"{where}.localhostProfile"
    if kind == "Localhost":
        if profile is None:
            yield required(at, "must be set when seccomp type is Localhost")
        else:
            yield from descending(profile, at)
    elif profile is not None:
        shown = {"Type": kind, "LocalhostProfile": profile}
        yield invalid_value(at, shown, "can only be set when seccomp type is Localhost")


def _app_armor(found: Mapping[str, Any] | None, where: str) -> Iterator[FieldError]:
    if found is None:
        return
    kind, profile = found.get("type", ""), found.get("localhostProfile")
    at = f"{where}.localhostProfile"
    if not kind:
        yield required(f"{where}.type", "type is required when appArmorProfile is set")
    elif kind not in _PROFILES:
        yield not_supported(f"{where}.type", kind, _PROFILES)
    elif kind != "Localhost":
        if profile is not None:
            yield invalid_value(at, profile, "can only be set when AppArmor type is Localhost")
    elif not profile:
        yield required(at, "must be set when AppArmor type is Localhost")
    else:
        if profile != profile.strip():
            yield invalid_value(at, profile, "must not be padded with whitespace")
        if len(profile.encode()) > _LONGEST_PROFILE:
            yield too_long(at, _LONGEST_PROFILE)
