"""Rules of a pod's volumes, and of what containers mount of them. Pure."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Mapping
from typing import Any

from lwskit.embedded import names, validate_claim
from lwskit.embedded.failures import (
    FieldError,
    duplicate,
    forbidden_field,
    invalid_value,
    not_supported,
    required,
)
from lwskit.embedded.validate_environment import OF_VOLUMES, field_reference, resource_reference
from lwskit.embedded.validate_values import (
    PULL_POLICIES,
    chosen,
    descending,
    file_path,
    mode,
    no_backsteps,
    once,
)
from lwskit.runtime import quantity

_Source = Mapping[str, Any]
_HOST_PATHS = (
    "",
    "BlockDevice",
    "CharDevice",
    "Directory",
    "DirectoryOrCreate",
    "File",
    "FileOrCreate",
    "Socket",
)
_ORDER = ("emptyDir", "hostPath", "gitRepo", "gcePersistentDisk", "awsElasticBlockStore", "secret", "nfs", "iscsi")
_THEN = ("glusterfs", "flocker", "persistentVolumeClaim", "rbd", "cinder", "cephfs", "quobyte", "downwardAPI", "fc")
_LAST = ("flexVolume", "configMap", "azureFile", "vsphereVolume", "photonPersistentDisk", "portworxVolume")
_SOURCES = (*_ORDER, *_THEN, *_LAST, "azureDisk", "storageos", "projected", "scaleIO", "csi", "ephemeral", "image")
_MISSPELLED = {"downwardAPI": "downwarAPI", "cephfs": "cephFS"}
"""How a second source of these kinds is named."""
_PROPAGATIONS = ("Bidirectional", "HostToContainer", "None")
_RECURSIVE = ("Disabled", "Enabled", "IfPossible")
_SHORTEST_TOKEN, _LONGEST_TOKEN = 600, 2**32


def volumes(found: list[dict[str, Any]], field: str) -> Generator[FieldError, None, dict[str, _Source]]:
    """The errors of volumes; returns those without one, which alone can be mounted, by name."""
    seen: dict[str, _Source] = {}
    for i, volume in enumerate(found):
        name = volume.get("name", "")
        errors = list(_volume(volume, name, f"{field}[{i}]", seen))
        yield from errors
        if not errors:
            seen[name] = volume
    return seen


def _volume(volume: _Source, name: str, where: str, seen: Mapping[str, _Source]) -> Iterator[FieldError]:
    given = [kind for kind in _SOURCES if volume.get(kind) is not None]
    if given:
        check = _RULES.get(given[0])
        if check:
            yield from check(volume[given[0]], f"{where}.{given[0]}")
    for kind in given[1:]:
        yield forbidden_field(f"{where}.{_MISSPELLED.get(kind, kind)}", "may not specify more than 1 volume type")
    if not given:
        yield required(where, "must specify a volume type")
    if not name:
        yield required(f"{where}.name")
    else:
        for text in names.label(name):
            yield invalid_value(f"{where}.name", name, text)
    if name in seen:
        yield duplicate(f"{where}.name", name)


def _empty_dir(found: _Source, where: str) -> Iterator[FieldError]:
    if found.get("sizeLimit") is not None and quantity.parse(found["sizeLimit"]) < 0:
        yield forbidden_field(f"{where}.sizeLimit", "SizeLimit field must be a valid resource quantity")


def _host_path(found: _Source, where: str) -> Iterator[FieldError]:
    if not found.get("path"):
        yield required(f"{where}.path")
        return
    yield from no_backsteps(found["path"], f"{where}.path")
    if found.get("type") is not None:
        yield from chosen(found["type"], f"{where}.type", _HOST_PATHS)


def _files(name: str) -> Callable[[_Source, str], Iterator[FieldError]]:
    """The rule of a volume with the entries of an object, which is named by the field `name`."""

    def rule(found: _Source, where: str) -> Iterator[FieldError]:
        if not found.get(name):
            yield required(f"{where}.{name}")
        yield from mode(found.get("defaultMode"), f"{where}.defaultMode")
        for i, item in enumerate(found.get("items") or ()):
            yield from _item(item, f"{where}.items[{i}]")

    return rule


def _item(item: _Source, where: str) -> Iterator[FieldError]:
    for name in ("key", "path"):
        if not item.get(name):
            yield required(f"{where}.{name}")
    yield from file_path(item.get("path", ""), f"{where}.path")
    yield from mode(item.get("mode"), f"{where}.mode")


def _claimed(found: _Source, where: str) -> Iterator[FieldError]:
    if not found.get("claimName"):
        yield required(f"{where}.claimName")


def _nfs(found: _Source, where: str) -> Iterator[FieldError]:
    for name in ("server", "path"):
        if not found.get(name):
            yield required(f"{where}.{name}")
    if not found.get("path", "").startswith("/"):
        yield invalid_value(f"{where}.path", found.get("path", ""), "must be an absolute path")


def _csi(found: _Source, where: str) -> Iterator[FieldError]:
    driver, secret = found.get("driver", ""), found.get("nodePublishSecretRef")
    if not driver:
        yield required(f"{where}.driver")
    for text in names.subdomain(driver.lower()) if driver else ():
        yield invalid_value(f"{where}.driver", driver, text)
    if secret is not None and not secret.get("name"):
        yield required(f"{where}.nodePublishSecretRef.name")
    named = (secret or {}).get("name", "")
    for text in names.subdomain(named) if named else ():
        yield invalid_value(f"{where}.name", named, text)


def _image(found: _Source, where: str) -> Iterator[FieldError]:
    if not found.get("reference"):
        yield required(f"{where}.reference")
    yield from chosen(found.get("pullPolicy"), f"{where}.pullPolicy", PULL_POLICIES)


def _downward(found: _Source, where: str) -> Iterator[FieldError]:
    yield from mode(found.get("defaultMode"), f"{where}.defaultMode")
    for item in found.get("items") or ():
        yield from _downward_file(item, where)


def _downward_file(item: _Source, where: str) -> Iterator[FieldError]:
    """The errors of a file with a field or an amount; they do not say which one it is."""
    field, resource = item.get("fieldRef"), item.get("resourceFieldRef")
    if not item.get("path"):
        yield required(f"{where}.path")
    yield from file_path(item.get("path", ""), f"{where}.path")
    if field is not None:
        yield from field_reference(field, f"{where}.fieldRef", OF_VOLUMES)
        if resource is not None:
            text = "fieldRef and resourceFieldRef can not be specified simultaneously"
            yield invalid_value(where, "resource", text)
    elif resource is not None:
        yield from resource_reference(resource, f"{where}.resourceFieldRef", of_volume=True)
    else:
        yield required(where, "one of fieldRef and resourceFieldRef is required")
    yield from mode(item.get("mode"), f"{where}.mode")


def _projected(found: _Source, where: str) -> Iterator[FieldError]:
    yield from mode(found.get("defaultMode"), f"{where}.defaultMode")
    paths: set[str] = set()
    for i, source in enumerate(found.get("sources") or ()):
        yield from _projection(source, where, f"{where}.sources[{i}]", paths)


def _projection(source: _Source, volume: str, where: str, paths: set[str]) -> Iterator[FieldError]:
    for kind in ("secret", "configMap"):
        found = source.get(kind)
        if found is None:
            continue
        if not found.get("name"):
            yield required(f"{where}.{kind}.name")
        for i, item in enumerate(found.get("items") or ()):
            yield from _item(item, f"{where}.{kind}.items[{i}]")
            if item.get("path"):
                taken = invalid_value(volume, found.get("name", ""), "conflicting duplicate paths")
                yield from once(item["path"], paths, taken)
    for item in (source.get("downwardAPI") or {}).get("items") or ():
        yield from _downward_file(item, f"{where}.downwardAPI")
        if item.get("path"):
            taken = invalid_value(volume, item["path"], "conflicting duplicate paths")
            yield from once(item["path"], paths, taken)
    if source.get("serviceAccountToken") is not None:
        yield from _token(source["serviceAccountToken"], volume, f"{where}.serviceAccountToken")
    if sum(value is not None for value in source.values()) > 1:
        yield forbidden_field(where, "may not specify more than 1 volume type per source")


def _token(found: _Source, volume: str, where: str) -> Iterator[FieldError]:
    seconds = found.get("expirationSeconds", _SHORTEST_TOKEN)
    if seconds < _SHORTEST_TOKEN:
        text = "may not specify a duration less than 10 minutes"
        yield invalid_value(f"{where}.expirationSeconds", seconds, text)
    if seconds > _LONGEST_TOKEN:
        text = "may not specify a duration larger than 2^32 seconds"
        yield invalid_value(f"{where}.expirationSeconds", seconds, text)
    if not found.get("path"):
        yield required(f"{volume}.path")
    else:
        yield from file_path(found["path"], f"{volume}.path")


def _ephemeral(found: _Source, where: str) -> Iterator[FieldError]:
    if found.get("volumeClaimTemplate") is None:
        yield required(f"{where}.volumeClaimTemplate")
    else:
        yield from validate_claim.template(found["volumeClaimTemplate"], f"{where}.volumeClaimTemplate")


_RULES: Mapping[str, Callable[[_Source, str], Iterator[FieldError]]] = {
    "emptyDir": _empty_dir,
    "hostPath": _host_path,
    "secret": _files("secretName"),
    "configMap": _files("name"),
    "nfs": _nfs,
    "persistentVolumeClaim": _claimed,
    "downwardAPI": _downward,
    "projected": _projected,
    "csi": _csi,
    "ephemeral": _ephemeral,
    "image": _image,
}


def mounts(container: _Source, field: str, known: Mapping[str, _Source]) -> Iterator[FieldError]:
    """The broken rules of what a container mounts; `known` are the volumes."""
    paths: set[str] = set()
    devices = container.get("volumeDevices") or []
    at = f"{field}.volumeMounts"
    for i, mount in enumerate(container.get("volumeMounts") or ()):
        where, name, path = f"{at}[{i}]", mount.get("name", ""), mount.get("mountPath", "")
        if not name:
            yield required(f"{where}.name")
        if name not in known:
            yield FieldError("FieldValueNotFound", f"{where}.name", f'Not found: "{name}"')
        if not path:
            yield required(f"{where}.mountPath")
        yield from once(path, paths, invalid_value(f"{where}.mountPath", path, "must be unique"))
        if any(name == d.get("name", "") for d in devices):
            yield invalid_value(f"{where}.name", name, "must not already exist in volumeDevices")
        if any(path == d.get("devicePath", "") for d in devices):
            yield invalid_value(f"{where}.mountPath", path, "must not already exist as a path in volumeDevices")
        if mount.get("subPath"):
            yield from descending(mount["subPath"], f"{at}.subPath")
        if mount.get("subPathExpr"):
            if mount.get("subPath"):
                text = "subPathExpr and subPath are mutually exclusive"
                yield invalid_value(f"{where}.subPathExpr", mount["subPathExpr"], text)
            yield from descending(mount["subPathExpr"], f"{at}.subPathExpr")
        yield from _shared(mount, container, at)


def _shared(mount: _Source, container: _Source, at: str) -> Iterator[FieldError]:
    """How a mount and what is mounted below it are seen on both sides."""
    propagation, recursive = mount.get("mountPropagation"), mount.get("recursiveReadOnly")
    if propagation is not None:
        yield from chosen(propagation, f"{at}.mountPropagation", _PROPAGATIONS)
        if propagation == "Bidirectional" and not (container.get("securityContext") or {}).get("privileged"):
            text = "Bidirectional mount propagation is available only to privileged containers"
            yield forbidden_field(f"{at}.mountPropagation", text)
    where = f"{at}.recursiveReadOnly"
    if recursive in ("Enabled", "IfPossible"):
        if not mount.get("readOnly"):
            yield forbidden_field(where, "may only be specified when readOnly is true")
        if propagation not in (None, "None"):
            yield forbidden_field(where, "may only be specified when mountPropagation is None or not specified")
    elif recursive not in (None, "Disabled"):
        yield not_supported(where, recursive, _RECURSIVE)


def devices(container: _Source, field: str, known: Mapping[str, _Source]) -> Iterator[FieldError]:
    """The broken rules of the devices that a container has; `known` are the volumes."""
    mounted = container.get("volumeMounts") or []
    seen_names: set[str] = set()
    seen_paths: set[str] = set()
    for i, device in enumerate(container.get("volumeDevices") or ()):
        where, name, path = f"{field}.volumeDevices[{i}]", device.get("name", ""), device.get("devicePath", "")
        volume = known.get(name)
        if not name:
            yield required(f"{where}.name")
        if name in seen_names:
            yield invalid_value(f"{where}.name", name, "must be unique")
        if volume is None:
            yield FieldError("FieldValueNotFound", f"{where}.name", f'Not found: "{name}"')
        elif volume.get("persistentVolumeClaim") is None and volume.get("ephemeral") is None:
            text = "can only use volume source type of PersistentVolumeClaim or Ephemeral for block mode"
            yield invalid_value(f"{where}.name", name, text)
        if not path:
            yield required(f"{where}.devicePath")
        if path in seen_paths:
            yield invalid_value(f"{where}.devicePath", path, "must be unique")
        if ".." in path.split("/"):
            yield invalid_value(f"{where}.devicePath", path, "can not contain backsteps ('..')")
        else:
            seen_paths.add(path)
        if any(name == m.get("name", "") for m in mounted):
            yield invalid_value(f"{where}.name", name, "must not already exist in volumeMounts")
        if any(path == m.get("mountPath", "") for m in mounted):
            yield invalid_value(f"{where}.devicePath", path, "must not already exist as a path in volumeMounts")
        if name:
            seen_names.add(name)
