"""Names: well-formed, and none twice."""

from __future__ import annotations

from lwskit.api import disaggregated_names, names
from lwskit.api.validation import formats

TEXTS = {name: value for name, value in vars(names).items() if name.isupper() and isinstance(value, str)}


def test_labels_and_annotations_are_valid_keys_and_differ() -> None:
    keys = [value for name, value in TEXTS.items() if name.endswith(("_LABEL", "_ANNOTATION", "_GATE", "_FINALIZER"))]
    assert len(keys) == len(set(keys)) > 30
    for key in keys:
        assert formats.label_key(key.lower()) == []


def test_keys_of_disaggregated_sets_are_valid_and_differ() -> None:
    found = vars(disaggregated_names).items()
    keys = [value for name, value in found if name.endswith(("_LABEL", "_ANNOTATION"))]
    assert len(keys) == len(set(keys)) > 11
    for key in keys:
        assert formats.label_key(key) == []


def test_names_of_scalers() -> None:
    assert disaggregated_names.scaler_name("chat", "decode") == "chat-decode"
    assert disaggregated_names.scaler_name("chat", "decode", "long") == "chat-decode-long"


def test_kind() -> None:
    assert names.API_VERSION == "leaderworkerset.x-k8s.io/v1"
    assert names.CRD_NAME == "leaderworkersets.leaderworkerset.x-k8s.io"
    assert names.NAME_LABEL == "leaderworkerset.sigs.k8s.io/name"
    assert names.SUBDOMAIN_POLICY_ANNOTATION.endswith("/subdomainPolicy")
