"""Rules for how many groups a rollout may take down and add: numbers, or percentages of the groups wanted.

Specification: 10 §6.3.
"""

from __future__ import annotations

from typing import Final

from lwskit.api import names
from lwskit.api.validation import formats
from lwskit.api.validation.errors import FieldError, invalid
from lwskit.api.validation.reading import Reader

_NOT_NEGATIVE: Final = "must be greater than or equal to 0"
_LARGEST: Final = 2**31 - 1
"""StatefulSets have such numbers in 32 bits: what is larger could be stored, and then not be put to use."""


def scaled(value: int | str, total: int, round_up: bool) -> int | None:
    """A number, or a percentage of `total`; None if the text is no percentage."""
    if isinstance(value, int):
        return value
    if formats.percent(value) or len(value) > 18:
        return None
    share = int(value[:-1]) * total
    return -(-share // 100) if round_up else share // 100


def amount(reader: Reader, name: str, default: int) -> tuple[int | str, list[FieldError]]:
    """A field that is a number or percentage, and its faults; one of a wrong type counts as not set."""
    path, value = reader.at(name), reader.value.get(name)
    if value is None:
        return default, []
    if isinstance(value, str):
        faults = [invalid(path, value, fault) for fault in formats.percent(value)]
        digits = value[:-1].lstrip("0")
        if not faults and (len(digits) > len("100") or int(digits or 0) > 100):
            faults.append(invalid(path, value, "must not be greater than 100%"))
        return value, faults
    if isinstance(value, int) and not isinstance(value, bool):
        if value > _LARGEST:
            return value, [invalid(path, value, f"must be less than or equal to {_LARGEST}")]
        return value, [invalid(path, value, _NOT_NEGATIVE)] if value < 0 else []
    return default, [invalid(path, value, "must be an integer or percentage (e.g '5%%')")]


def pace_faults(config: Reader, replicas: int, *, rolls: bool = True) -> list[FieldError]:
    """Faults of a `rollingUpdateConfiguration` of a set with so many replicas (10 §6.2 rules 6 to 11).

    Amounts that come to nothing do no harm to a set that never `rolls` by itself: percentages of a few groups may.
    """
    if not config.present:
        return []
    unavailable, errors = amount(config, "maxUnavailable", names.DEFAULT_MAX_UNAVAILABLE)
    surge, more = amount(config, "maxSurge", names.DEFAULT_MAX_SURGE)
    errors += more
    partition = config.integer("partition")
    if partition is not None and partition < 0:
        errors.append(invalid(config.at("partition"), partition, _NOT_NEGATIVE))
    scaled_unavailable = scaled(unavailable, replicas, round_up=False)
    scaled_surge = scaled(surge, replicas, round_up=True)
    if scaled_unavailable is None:
        errors.append(invalid(config.at("maxUnavailable"), unavailable, "invalid value"))
    if scaled_surge is None:
        errors.append(invalid(config.at("maxSurge"), surge, "invalid value"))
    return errors + (stuck(config, unavailable, surge, replicas) if rolls else [])


def stuck(config: Reader, unavailable: int | str, surge: int | str, replicas: int) -> list[FieldError]:
    """The fault of amounts that come to nothing, so that no group of so many could ever be replaced."""
    if scaled(unavailable, replicas, round_up=False) or scaled(surge, replicas, round_up=True) or replicas == 0:
        return []
    return [invalid(config.at("maxUnavailable"), unavailable, "must not be 0 when `maxSurge` is 0")]
