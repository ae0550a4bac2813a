"""The options that say which cluster a command talks to."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

F = TypeVar("F", bound=Callable[..., Any])


def cluster_options(command: F) -> F:
    """Give a command `--kubeconfig` and `--context`, as its arguments `kubeconfig` and `context_name`."""
    command = click.option("--context", "context_name", metavar="NAME", help="Context in the kubeconfig.")(command)
    text = "Kubeconfig; else $KUBECONFIG, in-cluster, ~/.kube/config."
    return click.option("--kubeconfig", metavar="FILE", help=text)(command)
