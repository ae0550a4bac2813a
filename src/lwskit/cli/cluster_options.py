"""The options that say which cluster a command talks to, and which namespace of it."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any, TypeVar

import click

F = TypeVar("F", bound=Callable[..., Any])


def cluster_options(command: F) -> F:
    """Give a command `--kubeconfig` and `--context`, as its arguments `kubeconfig` and `context_name`."""
    command = click.option("--context", "context_name", metavar="NAME", help="Context in the kubeconfig.")(command)
    text = "Kubeconfig; else $KUBECONFIG, in-cluster, ~/.kube/config."
    return click.option("--kubeconfig", metavar="FILE", help=text)(command)


DEFAULT_NAMESPACE = "default"


def namespace_option(whose: str) -> Callable[[F], F]:
    """Give a command `--namespace`, as its argument `namespace`, None unless given; `whose` it is, in words."""
    text = f"The namespace of {whose}; else that of the context, {DEFAULT_NAMESPACE} if it names none."
    return click.option("-n", "--namespace", default=None, help=text)


def namespace_of(given: str | None, kubeconfig: str | None, context: str | None) -> str:
    """The namespace given, else that of the kubeconfig's context, as kubectl takes it. Raises ConfigurationError."""
    if given is not None:
        return given
    # Imported here, so that --help stays quick.
    from lwskit.runtime.client.config import find_access

    return find_access(kubeconfig, context, os.environ).namespace or DEFAULT_NAMESPACE


def refuse_beside(option: str, kubeconfig: str | None, context: str | None) -> None:
    """Raise UsageError for an option that names a cluster, beside one that takes a file in its place."""
    given = [name for name, value in (("--kubeconfig", kubeconfig), ("--context", context)) if value is not None]
    if given:
        are = "names a cluster" if len(given) == 1 else "name a cluster"
        raise click.UsageError(
            f"{' and '.join(given)} {are}, and {option} a file instead of one; give one or the other"
        )
