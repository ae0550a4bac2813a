"""What lint finds: codes, severities, places. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Final


class Severity(Enum):
    """How bad a finding is: `error` is refused or unreadable, `warning` is accepted."""

    ERROR = "error"
    WARNING = "warning"


@dataclass(frozen=True, slots=True)
class Code:
    """One kind of finding: its stable code, a short name, and how bad it is."""

    code: str
    name: str
    severity: Severity = Severity.WARNING


@dataclass(frozen=True, slots=True)
class Place:
    """A place in a file. Lines and columns count from 1; 0 is not known."""

    file: str
    line: int = 0
    column: int = 0


@dataclass(frozen=True, slots=True)
class Fault:
    """What a rule found in one object: which code, the field's path, what is wrong, and what to do if that is known."""

    code: Code
    path: str
    message: str
    hint: str = ""


@dataclass(frozen=True, slots=True)
class Finding:
    """A fault with the place and the object that it is of; `namespace` and `name` are empty for one of a file."""

    fault: Fault
    place: Place
    namespace: str = ""
    name: str = ""

    @property
    def severity(self) -> Severity:
        """How bad it is."""
        return self.fault.code.severity


def _error(code: str, name: str) -> Code:
    return Code(code, name, Severity.ERROR)


UNREADABLE: Final = _error("LWS001", "unreadable")
REFUSED_BY_SCHEMA: Final = _error("LWS002", "refused-by-schema")
REFUSED_BY_ADMISSION: Final = _error("LWS003", "refused-by-admission")
UNKNOWN_KIND: Final = _error("LWS004", "unknown-kind")

UNKNOWN_FIELD: Final = Code("LWS010", "unknown-field")
DUPLICATE_KEY: Final = Code("LWS011", "duplicate-key")
API_WARNING: Final = Code("LWS012", "api-warning")
DUPLICATE_OBJECT: Final = Code("LWS013", "duplicate-object")
STATUS_IGNORED: Final = Code("LWS014", "status-ignored")
READ_DIFFERENTLY: Final = Code("LWS015", "read-differently")

LEADER_NAME_TOO_LONG: Final = Code("LWS101", "leader-name-too-long")
WORKER_NAME_TOO_LONG: Final = Code("LWS102", "worker-name-too-long")
HOST_NAME_TOO_LONG: Final = Code("LWS103", "host-name-too-long")

BUDGET_ROUNDS_TO_ZERO: Final = Code("LWS201", "budget-rounds-to-zero")
ONE_GROUP_GOES_DOWN: Final = Code("LWS202", "one-group-goes-down")
ALL_GROUPS_GO_DOWN: Final = Code("LWS203", "all-groups-go-down")
PARTITION_HOLDS_ALL: Final = Code("LWS204", "partition-holds-all")
PARTITION_WITH_SURGE: Final = Code("LWS205", "partition-with-surge")
SURGE_IS_CAPPED: Final = Code("LWS206", "surge-is-capped")
REFUSED_WHEN_SCALED: Final = Code("LWS207", "refused-when-scaled")

SUBGROUPS_OF_ONE_POD: Final = Code("LWS301", "sub-groups-of-size-one")
LEADER_READY_WITHOUT_WORKERS: Final = Code("LWS302", "leader-ready-without-workers")
UNEVEN_SUBGROUPS: Final = Code("LWS303", "uneven-sub-groups")
RESTART_DEFAULT_DEPRECATED: Final = Code("LWS311", "restart-policy-default")
RESTART_ANNOTATION_DEPRECATED: Final = Code("LWS312", "restart-annotation")
NO_RESTART_ALLOWED: Final = Code("LWS313", "no-restart-allowed")

LABEL_OVERWRITTEN: Final = Code("LWS401", "label-overwritten")
ANNOTATION_OVERWRITTEN: Final = Code("LWS402", "annotation-overwritten")
RESERVED_KEY: Final = Code("LWS403", "reserved-key")
HARMFUL_KEY: Final = Code("LWS404", "harmful-key")
TOPOLOGY_ON_TEMPLATE: Final = Code("LWS405", "topology-on-template")
TOPOLOGY_EMPTY: Final = Code("LWS406", "topology-empty")
TOPOLOGY_TWICE: Final = Code("LWS407", "topology-twice")
TOPOLOGY_TAKEN: Final = Code("LWS408", "topology-taken")
TOPOLOGY_INVALID: Final = Code("LWS409", "topology-invalid")
ENV_REPLACED: Final = Code("LWS411", "env-replaced")
ENV_SUPPRESSES_TPU: Final = Code("LWS412", "env-suppresses-tpu")
TPU_FIRST_ONLY: Final = Code("LWS413", "tpu-first-container-only")
CLAIM_FIELD_DROPPED: Final = Code("LWS421", "claim-field-dropped")
WORKLOAD_REFUSED: Final = Code("LWS431", "workload-refused")
HOST_NAME_OVERWRITTEN: Final = Code("LWS432", "host-name-overwritten")
TEMPLATE_NAME_IGNORED: Final = Code("LWS433", "template-name-ignored")
POD_REFUSED: Final = Code("LWS434", "pod-refused")
NEVER_STARTS: Final = Code("LWS441", "pods-never-start")
NEVER_READY: Final = Code("LWS442", "pods-never-ready")

ROLLS_GROUPS: Final = Code("LWS501", "rolls-groups")
AT_NEXT_RESTART: Final = Code("LWS502", "at-next-restart")
CLAIMS_IMMUTABLE: Final = Code("LWS503", "claims-immutable")
GROUPS_REMOVED: Final = Code("LWS504", "groups-removed")

SCHEDULING_NOT_SERVED: Final = Code("LWS602", "scheduling-not-served")

CHILD_REFUSED: Final = Code("LWS701", "child-refused")
SCALER_BY_HAND: Final = Code("LWS702", "scaler-by-hand")

CODES: Final = {code.code: code for code in list(globals().values()) if isinstance(code, Code)}
"""Every code, by its text."""
