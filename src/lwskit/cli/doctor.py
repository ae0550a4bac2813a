"""`lwskit doctor`: what is wrong with the sets of a cluster, in one look."""

from __future__ import annotations

import click

from lwskit.cli.cluster_options import cluster_options, namespace_of, namespace_option, refuse_beside

CLEAN, FOUND, UNREADABLE = 0, 1, 2
AGAIN = 5.0
"""Seconds until the second look, unless told otherwise."""


@click.command("doctor")
@namespace_option("the sets")
@click.option("-A", "--all-namespaces", is_flag=True, help="Look at the sets of all namespaces.")
@click.option("--from", "dump", metavar="DUMP", help="A file of saved objects (- for standard input), not the cluster.")
@click.option(
    "--again",
    metavar="SECONDS",
    default=AGAIN,
    show_default=True,
    type=click.FloatRange(0.0, 3600.0),
    help="When to look again at what may pass by itself; 0 for one look.",
)
@click.option("-o", "--output", type=click.Choice(("text", "json")), default="text", show_default=True)
@cluster_options
@click.pass_context
def command(
    context: click.Context,
    namespace: str | None,
    all_namespaces: bool,
    dump: str | None,
    again: float,
    output: str,
    kubeconfig: str | None,
    context_name: str | None,
) -> None:
    """Find what an operator should know: children of no spec, objects of no owner, roles and sets that do not serve.

    Nothing is written. Exits with 1 if something is found, and with 2 if the cluster or the dump cannot be read.
    """
    # What this needs is imported here, so that --help stays quick.
    from lwskit.cli import doctoring, logs
    from lwskit.cli.interrupt import run_until_interrupted
    from lwskit.doctor.check import Report
    from lwskit.doctor.output import OUTPUTS
    from lwskit.runtime.errors import LwskitError

    if namespace is not None and all_namespaces:
        raise click.UsageError("-n names one namespace, and -A all of them; give one or the other")
    found: list[Report] = []
    try:
        if dump is not None:
            refuse_beside("--from", kubeconfig, context_name)
            found.append(doctoring.from_dump(dump, namespace))
        else:
            # Standard output is the report's alone.
            logs.setup(context, "warn")
            where = None if all_namespaces else namespace_of(namespace, kubeconfig, context_name)
            if run_until_interrupted(doctoring.from_cluster(where, kubeconfig, context_name, again, found)):
                raise click.Abort
    except LwskitError as error:
        click.echo(f"Error: {error}", err=True)
        context.exit(UNREADABLE)
    (report,) = found
    for line in OUTPUTS[output](report):
        click.echo(line)
    context.exit(FOUND if report.findings else CLEAN)
