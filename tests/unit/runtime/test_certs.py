"""Certificates are accepted by a strict client, for their names only, and the files are followed."""

from __future__ import annotations

import asyncio
import random
import ssl
from base64 import b64encode
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import yaml
from cryptography import x509
from cryptography.hazmat.primitives import serialization
from kubernetes_asyncio.client import Configuration

from lwskit.runtime.certs import Certificate, make_ca, make_self_signed, make_server_cert
from lwskit.runtime.client import bridge
from lwskit.runtime.client.contexts import tls_context
from lwskit.runtime.client.kubeconfig import from_kubeconfig
from lwskit.runtime.clock import Clock, RealClock
from lwskit.runtime.errors import ConfigurationError
from lwskit.runtime.tls import CertificateWatcher, TlsFiles

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def pair(seed: int = 1) -> tuple[Certificate, Certificate]:
    rng = random.Random(seed)
    ca = make_ca(NOW, rng)
    return ca, make_server_cert(ca, ["svc.ns.svc", "localhost"], ["127.0.0.1", "::1"], NOW, rng)


def write(folder: Path, certificate: Certificate) -> TlsFiles:
    files = TlsFiles.in_folder(folder)
    files.cert.write_bytes(certificate.cert_pem)
    files.key.write_bytes(certificate.key_pem)
    return files


def test_a_server_certificate_names_its_hosts_and_is_signed_by_the_ca() -> None:
    ca, server = pair()
    cert = x509.load_pem_x509_certificate(server.cert_pem)
    cert.verify_directly_issued_by(x509.load_pem_x509_certificate(ca.cert_pem))
    names = cert.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert names.get_values_for_type(x509.DNSName) == ["svc.ns.svc", "localhost"]
    assert [str(ip) for ip in names.get_values_for_type(x509.IPAddress)] == ["127.0.0.1", "::1"]
    assert server.not_after == NOW + timedelta(days=365)
    assert cert.not_valid_before_utc < NOW


def test_a_server_certificate_needs_a_name_and_readable_addresses() -> None:
    ca, _ = pair()
    with pytest.raises(ValueError, match="needs a DNS name or an IP address"):
        make_server_cert(ca, [], [], NOW, random.Random(1))
    with pytest.raises(ValueError, match="localhost"):
        make_server_cert(ca, [], ["localhost"], NOW, random.Random(1))


def test_no_certificate_at_the_start_is_an_error_that_names_the_files(tmp_path: Path, clock: Clock) -> None:
    with pytest.raises(ConfigurationError, match=r"tls\.crt .*cannot be used"):
        CertificateWatcher(TlsFiles.in_folder(tmp_path), clock)


def test_renewed_files_are_taken_in_and_broken_ones_are_not(tmp_path: Path, clock: Clock) -> None:
    files = write(tmp_path, pair(1)[1])
    watcher = CertificateWatcher(files, clock)
    assert not watcher.check()
    write(tmp_path, pair(2)[1])
    assert watcher.check()
    assert not watcher.check()
    files.key.write_bytes(pair(3)[1].key_pem)
    assert not watcher.check()
    files.cert.unlink()
    assert not watcher.check()
    assert watcher.errors == 2
    assert watcher.context.minimum_version >= ssl.TLSVersion.TLSv1_2


async def test_the_files_are_looked_at_every_ten_seconds(tmp_path: Path, clock: Clock) -> None:
    watcher = CertificateWatcher(write(tmp_path, pair(1)[1]), clock)
    task = asyncio.create_task(watcher.run())
    await clock.sleep(35)
    assert watcher.reads == 4
    task.cancel()


def test_a_certificate_of_ones_own_names_what_it_is_for() -> None:
    made = make_self_signed(["localhost"], ["127.0.0.1"], NOW, random.Random(1), days=30)
    found = x509.load_pem_x509_certificate(made.cert_pem)
    names = found.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert names.get_values_for_type(x509.DNSName) == ["localhost"]
    assert [str(ip) for ip in names.get_values_for_type(x509.IPAddress)] == ["127.0.0.1"]
    assert made.not_after == NOW + timedelta(days=30)


def encrypted(certificate: Certificate) -> Certificate:
    key = serialization.load_pem_private_key(certificate.key_pem, None)
    pem = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.BestAvailableEncryption(b"x")
    )
    return replace(certificate, key_pem=pem)


def test_nobody_is_asked_for_the_password_of_a_key(tmp_path: Path) -> None:
    locked = encrypted(pair()[1])
    with pytest.raises(ConfigurationError, match=r"tls\.key cannot be used: the key is encrypted; give one without"):
        CertificateWatcher(write(tmp_path, locked), RealClock())
    watcher = CertificateWatcher(write(tmp_path, pair(2)[1]), RealClock())
    write(tmp_path, locked)
    assert not watcher.check()
    assert watcher.errors == 1
    with pytest.raises(OSError, match="the key is encrypted"):
        tls_context(client_cert=str(tmp_path / "tls.crt"), client_key=str(tmp_path / "tls.key"))
    data = {
        "client-certificate-data": b64encode(locked.cert_pem).decode(),
        "client-key-data": b64encode(locked.key_pem).decode(),
    }
    config = {
        "kind": "Config",
        "current-context": "c",
        "contexts": [{"name": "c", "context": {"cluster": "k", "user": "u"}}],
        "clusters": [{"name": "k", "cluster": {"server": "https://127.0.0.1:1"}}],
        "users": [{"name": "u", "user": data}],
    }
    (tmp_path / "config").write_text(yaml.safe_dump(config))
    with pytest.raises(ConfigurationError, match=r"user 'u': .*\(the key is encrypted; give one without"):
        from_kubeconfig([tmp_path / "config"])
    foreign = Configuration()
    foreign.host, foreign.cert_file, foreign.key_file = (
        "https://h",
        str(tmp_path / "tls.crt"),
        str(tmp_path / "tls.key"),
    )
    with pytest.raises(ConfigurationError, match="the key is encrypted"):
        bridge.transport(foreign)
