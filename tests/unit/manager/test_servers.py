"""Certificates and TLS of the manager's servers, as the options say (specification: 60 §3.3)."""

from __future__ import annotations

import ssl
from pathlib import Path

import pytest

from lwskit.manager.options import WebhookOptions
from lwskit.manager.servers import tls_files
from lwskit.runtime.errors import ConfigurationError


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in ("tls.crt", "tls.key"):
        (tmp_path / name).write_text("")
    return tmp_path


@pytest.mark.parametrize(
    ("present", "missing"),
    [((), "no tls.crt and no tls.key"), (("tls.crt",), "no tls.key"), (("tls.key",), "no tls.crt")],
)
def test_a_certificate_that_is_missing_is_told_with_its_folder(
    tmp_path: Path, present: tuple[str, ...], missing: str
) -> None:
    for name in present:
        (tmp_path / name).write_text("")
    with pytest.raises(ConfigurationError) as caught:
        tls_files(WebhookOptions(cert_dir=tmp_path))
    assert str(caught.value).startswith(f"the webhook certificate is missing: {tmp_path} has {missing}; ")


@pytest.mark.parametrize(
    ("version", "least"),
    [
        ("", ssl.TLSVersion.TLSv1_2),
        ("VersionTLS12", ssl.TLSVersion.TLSv1_2),
        ("VersionTLS13", ssl.TLSVersion.TLSv1_3),
    ],
)
def test_the_least_version(folder: Path, version: str, least: ssl.TLSVersion) -> None:
    files = tls_files(WebhookOptions(cert_dir=folder, min_tls=version))
    assert (files.cert, files.key, files.min_version, files.ciphers) == (
        folder / "tls.crt",
        folder / "tls.key",
        least,
        "",
    )


SUITES = {
    "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256": "ECDHE-RSA-AES128-GCM-SHA256",
    "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384": "ECDHE-RSA-AES256-GCM-SHA384",
    "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256": "ECDHE-ECDSA-AES128-GCM-SHA256",
    "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256": "ECDHE-ECDSA-CHACHA20-POLY1305",
    "TLS_RSA_WITH_AES_256_GCM_SHA384": "AES256-GCM-SHA384",
}


def test_suites_are_named_as_openssl_names_them(folder: Path) -> None:
    files = tls_files(WebhookOptions(cert_dir=folder, ciphers=tuple(SUITES)))
    assert files.ciphers == ":".join(SUITES.values())
    ssl.create_default_context(ssl.Purpose.CLIENT_AUTH).set_ciphers(files.ciphers)


@pytest.mark.parametrize("suite", ["TLS_FOO", "AES128-SHA", "", "TLS_ECDHE_RSA_WITH_RC4_128_SHA", "TLS_DHE_WITH_X"])
def test_an_unknown_suite_is_told(folder: Path, suite: str) -> None:
    with pytest.raises(ConfigurationError, match=r"^invalid cipher suites: .* Please use names such as TLS_ECDHE_RSA"):
        tls_files(WebhookOptions(cert_dir=folder, ciphers=(suite,)))
