"""Certificates for servers that nobody else certifies: a CA of our own and what it signs. Keys are EC P-256."""

from __future__ import annotations

import ipaddress
import random
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

CA_DAYS = 3650
SERVER_DAYS = 365
_BACKDATED = timedelta(hours=1)
"""How long before now certificates are valid, for clocks that are behind."""


@dataclass(frozen=True, slots=True)
class Certificate:
    """A certificate and its private key, both as PEM."""

    cert_pem: bytes
    key_pem: bytes

    @property
    def not_after(self) -> datetime:
        """When the certificate expires, in UTC."""
        return x509.load_pem_x509_certificate(self.cert_pem).not_valid_after_utc


def make_ca(now: datetime, rng: random.Random, *, name: str = "lwskit-ca", days: int = CA_DAYS) -> Certificate:
    """A self-signed CA, valid for `days` from `now`. `rng` gives the serial number; the key is the system's secret."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = _name(name)
    builder = (
        _builder(subject, subject, key.public_key(), now, days, rng)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_usage(ca=True), critical=True)
    )
    return _signed(builder, key, key)


def make_server_cert(
    ca: Certificate,
    dns_names: Iterable[str],
    ips: Iterable[str],
    now: datetime,
    rng: random.Random,
    *,
    days: int = SERVER_DAYS,
) -> Certificate:
    """A server certificate signed by `ca` for these host names and addresses, valid for `days` from `now`.

    Raises ValueError for an address that is none, or when there is neither a name nor an address.
    """
    hosts = [*dns_names]
    addresses = [ipaddress.ip_address(ip) for ip in ips]
    if not hosts and not addresses:
        raise ValueError("a server certificate needs a DNS name or an IP address")
    ca_cert = x509.load_pem_x509_certificate(ca.cert_pem)
    ca_key = serialization.load_pem_private_key(ca.key_pem, password=None)
    if not isinstance(ca_key, ec.EllipticCurvePrivateKey):
        raise ValueError("the key of the CA is not an elliptic curve key")
    key = ec.generate_private_key(ec.SECP256R1())
    names: list[x509.GeneralName] = [x509.DNSName(host) for host in hosts]
    names += [x509.IPAddress(address) for address in addresses]
    subject = _name((hosts or [str(addresses[0])])[0])
    builder = (
        _builder(subject, ca_cert.subject, key.public_key(), now, days, rng)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_usage(ca=False), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(x509.SubjectAlternativeName(names), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(ca_key.public_key()), critical=False)
    )
    return _signed(builder, key, ca_key)


def make_self_signed(
    dns_names: Iterable[str], ips: Iterable[str], now: datetime, rng: random.Random, *, days: int = SERVER_DAYS
) -> Certificate:
    """A server certificate from a CA that is thrown away: encrypted, but nobody can verify whom one talks to.

    Raises ValueError as `make_server_cert` does.
    """
    return make_server_cert(make_ca(now, rng, days=days), dns_names, ips, now, rng, days=days)


def _name(common_name: str) -> x509.Name:
    # The field holds 64 characters; clients look at the alternative names anyway.
    return x509.Name(
        [
            x509.NameAttribute(NameOID.COMMON_NAME, common_name[:64]),
            x509.NameAttribute(NameOID.ORGANIZATION_NAME, "lwskit"),
        ]
    )


def _builder(
    subject: x509.Name,
    issuer: x509.Name,
    public_key: ec.EllipticCurvePublicKey,
    now: datetime,
    days: int,
    rng: random.Random,
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(public_key)
        .serial_number(rng.getrandbits(158) + 1)
        .not_valid_before(now - _BACKDATED)
        .not_valid_after(now + timedelta(days=days))
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(public_key), critical=False)
    )


def _usage(*, ca: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=True,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=ca,
        crl_sign=ca,
        encipher_only=False,
        decipher_only=False,
    )


def _signed(
    builder: x509.CertificateBuilder, key: ec.EllipticCurvePrivateKey, signer: ec.EllipticCurvePrivateKey
) -> Certificate:
    certificate = builder.sign(signer, hashes.SHA256())
    return Certificate(
        certificate.public_bytes(serialization.Encoding.PEM),
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        ),
    )
