"""Which kinds an API server serves (specification: 70 §6.3, kind to resource mapping)."""

from __future__ import annotations

from lwskit.runtime.client.client import Client
from lwskit.runtime.errors import ConfigurationError, NotFound
from lwskit.runtime.kinds import Kind
from lwskit.runtime.objects import group_of


class Discovery:
    """Finds kinds by `apiVersion` and `kind`, one request for each group and version, kept until `forget`."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._known: dict[str, dict[str, Kind]] = {}

    async def find(self, api_version: str, kind: str) -> Kind:
        """The kind that objects with this `apiVersion` and `kind` are of. A miss asks the server once more.

        Raises ConfigurationError when the server does not serve it. When cancelled, nothing is kept.
        """
        found = self._known.get(api_version, {}).get(kind)
        if found is None:
            self._known[api_version] = await self._read(api_version)
            found = self._known[api_version].get(kind)
        if found is None:
            raise ConfigurationError(
                f'the server has no kind "{kind}" in "{api_version}"; is its CustomResourceDefinition installed?'
            )
        return found

    async def _read(self, api_version: str) -> dict[str, Kind]:
        group = group_of(api_version)
        try:
            listed = await self._client.raw("GET", f"/apis/{api_version}" if group else f"/api/{api_version}")
        except NotFound:
            return {}
        version = api_version.rpartition("/")[2]
        return {
            r["kind"]: Kind(group, version, r["kind"], r["name"], r["namespaced"])
            for r in listed.get("resources", ())
            if "/" not in r["name"]
        }
