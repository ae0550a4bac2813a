"""Why requests of the aiohttp transport fail, in words."""

from __future__ import annotations

import aiohttp

FAILURES = (aiohttp.ClientError, TimeoutError, ValueError)
"""What aiohttp and TLS raise for requests that cannot be sent or have no answer."""


def was_lost(error: Exception) -> bool:
    """Whether there was a connection, or may have been, and it broke or fell silent (specification: 70 §6.3)."""
    if isinstance(error, aiohttp.ClientConnectorError | aiohttp.ConnectionTimeoutError):
        return False
    lost = aiohttp.ServerDisconnectedError, aiohttp.ClientPayloadError, aiohttp.ClientOSError, TimeoutError
    return isinstance(error, lost)


def cause_of(error: Exception, host: str, limit: float | None) -> str:
    """Why a connection failed, in words; `limit` is the silence in seconds that was allowed."""
    match error:
        case aiohttp.ClientConnectorCertificateError():
            return _certificate(error.certificate_error, host)
        case aiohttp.ClientConnectorDNSError():
            return f"the name of {host} cannot be resolved ({error.os_error.strerror or error.os_error})"
        case aiohttp.ConnectionTimeoutError():
            return f"{host} did not accept the connection in time"
        case aiohttp.ClientSSLError():
            return f"TLS with {host} failed ({error.os_error})"
        case aiohttp.ClientProxyConnectionError():
            return f"the proxy cannot be reached ({error.os_error})"
        case aiohttp.ClientConnectorError() if isinstance(error.os_error, ConnectionRefusedError):
            return f"{host} refuses connections; nothing listens there"
        case aiohttp.ClientConnectorError():
            return f"{host} cannot be reached ({error.os_error.strerror or error.os_error})"
        case TimeoutError():
            return f"{host} gave no answer within {limit:g} s" if limit else f"{host} gave no answer in time"
        case aiohttp.ServerDisconnectedError():
            return f"{host} closed the connection without an answer"
        case aiohttp.ClientPayloadError() | aiohttp.ClientOSError():
            return f"the connection to {host} broke ({error})"
        case ValueError() if not isinstance(error, aiohttp.ClientError):
            return f"it cannot be sent ({error})"
    return f"{type(error).__name__} with {host}: {error}"


def _certificate(error: Exception, host: str) -> str:
    reason = getattr(error, "verify_message", "") or str(error)
    return f"the certificate of {host} is not trusted ({reason})"
