"""`lwskit plan`: what an edit of a set will do, step by step, before it is made."""

from __future__ import annotations

import json
from typing import Any

import click

from lwskit.cli.cluster_options import (
    DEFAULT_NAMESPACE,
    cluster_options,
    namespace_of,
    namespace_option,
    refuse_beside,
)

OK, BAD = 0, 1
CLUSTER = "cluster"


@click.command("plan")
@click.option("-f", "--filename", metavar="FILE", help="The manifest to apply; - for standard input.")
@click.option(
    "--restart",
    metavar="GROUP",
    help="Instead of a manifest: a group in Hash mode that is recreated, by its leader's pod, host name, or key.",
)
@click.option(
    "--against",
    metavar="cluster|DUMP",
    default=CLUSTER,
    show_default=True,
    help="What is there: the cluster, or a file of saved objects (- for standard input).",
)
@namespace_option("sets that name none")
@click.option(
    "--ready-order",
    metavar="ORDER",
    help="How groups become ready: highest-first (unless given), lowest-first, together, never, or groups such as "
    "5,4,2. In Hash mode groups are numbered as the plan makes them, and lowest-first goes unless given.",
)
@click.option("-o", "--output", type=click.Choice(("text", "json")), default="text", show_default=True)
@cluster_options
@click.pass_context
def command(
    context: click.Context,
    filename: str | None,
    restart: str | None,
    against: str,
    namespace: str | None,
    ready_order: str | None,
    output: str,
    kubeconfig: str | None,
    context_name: str | None,
) -> None:
    """Say what applying FILE would do: refused, nothing, or which groups go down and come up at each step.

    With --restart, what follows when a group in Hash mode is recreated.

    Nothing is written. Exits with 1 if a set is refused or its rollout would stall.
    """
    # What this needs is imported here, so that --help stays quick.
    from lwskit.cli import logs, manifests, planning
    from lwskit.cli.interrupt import run_until_interrupted
    from lwskit.simulate import order

    wanted = ready_order or ""
    try:
        order.parse(wanted)
    except order.OrderError as error:
        raise click.BadParameter(str(error), param_hint="--ready-order") from error
    if (filename is None) == (restart is None):
        raise click.UsageError("give either -f FILE or --restart GROUP")
    if filename == against == "-":
        raise click.UsageError("- can be given once: standard input ends when it has been read")
    if against != CLUSTER:
        refuse_beside("--against FILE", kubeconfig, context_name)
    reports: list[planning.AnyReport] = []
    if against == CLUSTER:
        # Standard output is the plan's alone.
        logs.setup(context, "warn")
        where = namespace_of(namespace, kubeconfig, context_name)
        if restart is not None:
            work = planning.restart_against_cluster(restart, where, wanted, kubeconfig, context_name, reports)
        else:
            sets = planning.sets_of(manifests.read(filename or ""), filename or "", where)
            work = planning.against_cluster(sets, wanted, kubeconfig, context_name, reports)
        if run_until_interrupted(work):
            raise click.Abort
    elif restart is not None:
        reports = [planning.restart_in_dump(restart, namespace or DEFAULT_NAMESPACE, against, wanted)]
    else:
        sets = planning.sets_of(manifests.read(filename or ""), filename or "", namespace or DEFAULT_NAMESPACE)
        reports = planning.against_dump(sets, against, wanted)
    if output == "json":
        document: dict[str, Any] = {"plans": [planning.as_data(report) for report in reports]}
        click.echo(json.dumps(document, indent=2, ensure_ascii=False))
    else:
        for report in reports:
            for line in planning.text(report):
                click.echo(line)
    context.exit(OK if all(report.good for report in reports) else BAD)
