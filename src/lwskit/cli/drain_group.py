"""`lwskit drain-group`: have one group go, and the set be one smaller."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from lwskit.cli.cluster_options import cluster_options, namespace_of, namespace_option

if TYPE_CHECKING:
    from lwskit.groups.drain import Drain

OK, NOT_DONE = 0, 1


@click.command("drain-group")
@click.argument("name", metavar="NAME")
@namespace_option("the group")
@click.option("--dry-run", is_flag=True, help="Say what would be done, and do nothing.")
@click.option("-y", "--yes", is_flag=True, help="Do not ask.")
@cluster_options
@click.pass_context
def command(
    context: click.Context,
    name: str,
    namespace: str | None,
    dry_run: bool,
    yes: bool,
    kubeconfig: str | None,
    context_name: str | None,
) -> None:
    """Make the group NAME the next one to go, and scale its set down by one.

    NAME is the name of its leader pod, its host name, or the first characters of its key. Refused, with the group that
    would go, where a mark does not make it the first one.
    """
    # What this needs is imported here, so that --help stays quick.
    from lwskit.cli import draining, logs
    from lwskit.cli.interrupt import run_until_interrupted

    # Standard output is what is asked and done, alone.
    logs.setup(context, "warn")
    where = namespace_of(namespace, kubeconfig, context_name)
    found: list[tuple[str, Drain]] = []
    if run_until_interrupted(draining.found_on(where, name, kubeconfig, context_name, found)):
        raise click.Abort
    ((of_set, drain),) = found
    what = draining.told(where, of_set, drain)
    if dry_run:
        click.echo(f"would {what}")
        return
    if not yes and not _asked(what):
        click.echo("nothing was done")
        context.exit(NOT_DONE)
    if run_until_interrupted(draining.carried_out_on(where, of_set, drain, kubeconfig, context_name)):
        raise click.Abort
    click.echo(f"{where}/{of_set}: scaled from {drain.before} to {drain.after}; the group of {drain.name} goes")


def _asked(what: str) -> bool:
    """Ask a person, or whatever standard input is connected to. Raises LwskitError where there is nobody to answer."""
    question = f"{what[:1].upper()}{what[1:]}. Go on?"
    if sys.stdin is not None and sys.stdin.isatty():
        return click.confirm(question)
    # The answer is read first: where there is none, nothing has been asked, and the error stands alone.
    answer = sys.stdin.readline() if sys.stdin is not None else ""
    if not answer:
        from lwskit.runtime.errors import LwskitError

        raise LwskitError("nobody answers whether to go on, so it needs --yes (--dry-run says what it would do)")
    click.echo(f"{question} [y/N]: {answer.strip()}")
    return answer.strip().lower() in ("y", "yes")
