"""Certificates are accepted by a strict client, for their names only, and the files are followed."""

from __future__ import annotations

import asyncio
import random
import ssl
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509

from lwskit.runtime.certs import Certificate, make_ca, make_self_signed, make_server_cert
from lwskit.runtime.clock import Clock
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
