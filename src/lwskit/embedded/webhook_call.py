"""Calling one webhook: a function registered in this process, or a server over HTTPS."""

from __future__ import annotations

import asyncio
import base64
import ssl
from collections.abc import Callable, Mapping
from typing import Any

import orjson

Handler = Callable[[dict[str, Any]], dict[str, Any]]
"""From an AdmissionReview with a request to one with a response. Must not change the request."""

Session = Any


class CallError(Exception):
    """The webhook could not be asked, or its answer cannot be used; the text says why, as a real server would."""


class Caller:
    """Calls webhooks by their clientConfig. `close` ends the connections."""

    def __init__(self, has_service: Callable[[str, str], bool]) -> None:
        """`has_service` tells whether a service of that namespace and name exists."""
        self._has_service = has_service
        self._handlers: dict[str, Handler] = {}
        self._session: Session = None

    def register(self, target: str, handler: Handler) -> None:
        """Answer calls to a URL, or to `namespace/name/path` of a service, by a function."""
        self._handlers[target] = handler

    async def close(self) -> None:
        """Close connections to servers. Idempotent."""
        if self._session is not None:
            session, self._session = self._session, None
            await session.close()

    async def call(self, config: Mapping[str, Any], review: dict[str, Any], timeout: int) -> dict[str, Any]:
        """The `response` of the webhook's answer. Raises CallError. Cancelling ends the call."""
        url = config.get("url") or ""
        service = config.get("service")
        if service:
            path = (service.get("path") or "/").lstrip("/")
            target = f"{service['namespace']}/{service['name']}/{path}"
            url = f"https://{service['name']}.{service['namespace']}.svc:{service.get('port', 443)}/{path}"
        else:
            target = url
        shown = f"{url}?timeout={timeout}s"
        handler = self._handlers.get(target)
        if handler is not None:
            answer = handler(review)
        elif service and not self._has_service(service["namespace"], service["name"]):
            raise CallError(f'failed to call webhook: Post "{shown}": service "{service["name"]}" not found')
        elif service:
            text = f'no endpoints available for service "{service["name"]}"'
            raise CallError(f'failed to call webhook: Post "{shown}": {text}')
        elif url.startswith("https://"):
            answer = await self._post(url, shown, config.get("caBundle"), review, timeout)
        else:
            raise CallError(f'failed to call webhook: Post "{shown}": nothing is registered under {target}')
        return _checked(answer, review["request"]["uid"])

    async def _post(
        self, url: str, shown: str, bundle: str | None, review: dict[str, Any], timeout: int
    ) -> dict[str, Any]:
        import aiohttp

        if self._session is None:
            self._session = aiohttp.ClientSession()
        context = ssl.create_default_context(cadata=base64.b64decode(bundle).decode() if bundle else None)
        try:
            async with self._session.post(
                url,
                params={"timeout": f"{timeout}s"},
                data=orjson.dumps(review),
                headers={"content-type": "application/json", "accept": "application/json"},
                ssl=context,
                timeout=aiohttp.ClientTimeout(total=timeout),
            ) as response:
                body = await response.read()
                if response.status >= 400:
                    text = body[:300].decode(errors="replace").strip()
                    raise CallError(f"failed to call webhook: the server answered {response.status}: {text}")
        except TimeoutError as e:
            raise CallError(f'failed to call webhook: Post "{shown}": context deadline exceeded') from e
        except (aiohttp.ClientError, OSError, ssl.SSLError) as e:
            raise CallError(f'failed to call webhook: Post "{shown}": {_cause(e)}') from e
        except asyncio.CancelledError:
            raise
        try:
            return orjson.loads(body)
        except orjson.JSONDecodeError as e:
            raise CallError(f"failed to call webhook: the answer is not JSON: {e}") from e


def _cause(error: BaseException) -> str:
    """Why a call failed, in the words of a Go client."""
    inner = getattr(error, "os_error", None) or getattr(error, "certificate_error", None)
    if isinstance(error, ssl.SSLCertVerificationError) or isinstance(inner, ssl.SSLCertVerificationError):
        return "tls: failed to verify certificate: x509: certificate signed by unknown authority"
    host, port = getattr(error, "host", None), getattr(error, "port", None)
    if isinstance(inner, ConnectionRefusedError):
        return f"dial tcp {host}:{port}: connect: connection refused"
    if host is not None:
        return f"dial tcp: lookup {host}: no such host"
    return str(error) or type(error).__name__


def _checked(answer: Any, uid: str) -> dict[str, Any]:
    response = answer.get("response") if isinstance(answer, dict) else None
    if not isinstance(response, dict):
        raise CallError("webhook response has no response")
    if response.get("uid", uid) != uid:
        raise CallError(
            f'received invalid webhook response: expected response.uid="{uid}", got "{response.get("uid")}"'
        )
    return response


def read_patch(response: Mapping[str, Any]) -> list[Any]:
    """The JSON patch in a response, empty when there is none. Raises CallError."""
    patch = response.get("patch")
    if not patch:
        return []
    if response.get("patchType", "JSONPatch") != "JSONPatch":
        raise CallError(f"unsupported patch type {response.get('patchType')!r}")
    if isinstance(patch, list):
        return patch
    try:
        return orjson.loads(base64.b64decode(patch))
    except ValueError as e:
        raise CallError(f"the patch is not JSON: {e}") from e
