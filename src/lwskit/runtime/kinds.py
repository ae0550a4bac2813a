"""The kinds of a Kubernetes API that the library itself deals with. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass
from urllib.parse import quote

from lwskit.runtime.errors import InvalidRequest

_PLAIN = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._:-]*")
"""Names that stand in a path as they are: nearly all."""


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of object and where the API server serves it.

    `group` is empty for the core group; `plural` is the resource name in paths; `namespaced` tells its scope.
    Source: Kubernetes API reference, "API concepts", resource URIs.
    """

    group: str
    version: str
    kind: str
    plural: str
    namespaced: bool = True

    @property
    def api_version(self) -> str:
        """What objects of this kind carry as `apiVersion`, for example `apps/v1` or `v1`."""
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def qualified(self) -> str:
        """`Kind.group`, or only `Kind` in the core group: how messages name a kind."""
        return f"{self.kind}.{self.group}" if self.group else self.kind

    def path(self, namespace: str | None = None, name: str | None = None, subresource: str | None = None) -> str:
        """The URL path of the collection, of one object or of its subresource; no namespace means all of them.

        Only without a name (None) it is the collection's. Raises InvalidRequest for a name or namespace that cannot
        stand in a path: empty, not text, `.`, `..`, or with `/` or `%`. Source: Kubernetes documentation, "Object Names
        and IDs", path segment names.
        """
        parts = [f"/apis/{self.group}/{self.version}" if self.group else f"/api/{self.version}"]
        if self.namespaced and namespace:
            parts.append(f"namespaces/{self._segment('namespace', namespace)}")
        parts.append(self.plural)
        if name is not None:
            parts.append(self._segment("name", name))
            if subresource:
                parts += [self._segment("subresource", part) for part in subresource.split("/")]
        return "/".join(parts)

    def _segment(self, what: str, text: str) -> str:
        """A name as it stands in a path, percent-encoded where it must be."""
        if not isinstance(text, str):
            raise InvalidRequest(f"the {what} of a {self.kind} must be text, not {text!r}")
        if _PLAIN.fullmatch(text):
            return text
        if not text:
            raise InvalidRequest(f"the {what} of a {self.kind} must not be empty")
        if text in (".", "..") or "/" in text or "%" in text:
            raise InvalidRequest(
                f"{text!r} cannot be the {what} of a {self.kind}: it must not be '.' or '..', or have '/' or '%'"
            )
        try:
            return quote(text, safe=":@!$&'()*+,;=~")
        except UnicodeEncodeError as e:
            raise InvalidRequest(f"{text!r} cannot be the {what} of a {self.kind}: it is not valid Unicode") from e


NAMESPACE = Kind("", "v1", "Namespace", "namespaces", namespaced=False)
NODE = Kind("", "v1", "Node", "nodes", namespaced=False)
POD = Kind("", "v1", "Pod", "pods")
SERVICE = Kind("", "v1", "Service", "services")
CONFIG_MAP = Kind("", "v1", "ConfigMap", "configmaps")
SECRET = Kind("", "v1", "Secret", "secrets")
SERVICE_ACCOUNT = Kind("", "v1", "ServiceAccount", "serviceaccounts")
PERSISTENT_VOLUME_CLAIM = Kind("", "v1", "PersistentVolumeClaim", "persistentvolumeclaims")
CORE_EVENT = Kind("", "v1", "Event", "events")
EVENT = Kind("events.k8s.io", "v1", "Event", "events")
STATEFUL_SET = Kind("apps", "v1", "StatefulSet", "statefulsets")
DEPLOYMENT = Kind("apps", "v1", "Deployment", "deployments")
REPLICA_SET = Kind("apps", "v1", "ReplicaSet", "replicasets")
CONTROLLER_REVISION = Kind("apps", "v1", "ControllerRevision", "controllerrevisions")
LEASE = Kind("coordination.k8s.io", "v1", "Lease", "leases")
TOKEN_REVIEW = Kind("authentication.k8s.io", "v1", "TokenReview", "tokenreviews", namespaced=False)
SUBJECT_ACCESS_REVIEW = Kind(
    "authorization.k8s.io", "v1", "SubjectAccessReview", "subjectaccessreviews", namespaced=False
)
CUSTOM_RESOURCE_DEFINITION = Kind(
    "apiextensions.k8s.io", "v1", "CustomResourceDefinition", "customresourcedefinitions", namespaced=False
)
MUTATING_WEBHOOK_CONFIGURATION = Kind(
    "admissionregistration.k8s.io",
    "v1",
    "MutatingWebhookConfiguration",
    "mutatingwebhookconfigurations",
    namespaced=False,
)
VALIDATING_WEBHOOK_CONFIGURATION = Kind(
    "admissionregistration.k8s.io",
    "v1",
    "ValidatingWebhookConfiguration",
    "validatingwebhookconfigurations",
    namespaced=False,
)
