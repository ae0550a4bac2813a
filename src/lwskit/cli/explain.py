"""`lwskit explain`: why a set is not where it should be, in one paragraph."""

from __future__ import annotations

import json

import click

from lwskit.cli.cluster_options import (
    DEFAULT_NAMESPACE,
    cluster_options,
    namespace_of,
    namespace_option,
    refuse_beside,
)

OK, NOT_OK = 0, 1


@click.command("explain")
@click.argument("name", metavar="[KIND/]NAME")
@namespace_option("the set")
@click.option("--from", "dump", metavar="DUMP", help="A file of saved objects (- for standard input), not the cluster.")
@click.option("-o", "--output", type=click.Choice(("text", "json")), default="text", show_default=True)
@cluster_options
@click.pass_context
def command(
    context: click.Context,
    name: str,
    namespace: str | None,
    dump: str | None,
    output: str,
    kubeconfig: str | None,
    context_name: str | None,
) -> None:
    """Say why the set NAME is where it is: which group, which pod, what is waited for, what to do.

    KIND is leaderworkerset (lws) or disaggregatedset (ds), and needed where both have that name. Exits with 1 if the
    set goes on only when somebody does something, or if there is no such set.
    """
    # What this needs is imported here, so that --help stays quick.
    from lwskit.cli import explaining, logs
    from lwskit.cli.interrupt import run_until_interrupted
    from lwskit.groups.explain import Explanation, State

    found: list[Explanation] = []
    wanted = explaining.parse(name)
    if wanted is None:
        raise click.BadParameter(f"{name!r} names no kind of sets; {explaining.KINDS_SAID}", param_hint="NAME")
    if not wanted.name or "/" in wanted.name:
        raise click.BadParameter(f"{name!r} names no set; {explaining.KINDS_SAID}", param_hint="NAME")
    if dump is not None:
        refuse_beside("--from", kubeconfig, context_name)
        found.append(explaining.from_dump(dump, namespace or DEFAULT_NAMESPACE, wanted.name, wanted.kind))
    else:
        # Standard output is the explanation's alone.
        logs.setup(context, "warn")
        where = namespace_of(namespace, kubeconfig, context_name)
        work = explaining.from_cluster(where, wanted.name, kubeconfig, context_name, found, wanted.kind)
        if run_until_interrupted(work):
            raise click.Abort
    (explanation,) = found
    if output == "json":
        click.echo(json.dumps(explaining.as_data(explanation), indent=2, ensure_ascii=False))
    else:
        state, cause = explanation.state.value, explanation.cause
        click.echo(state if state == cause else f"{state} ({cause})")
        click.echo(explanation.paragraph)
        if explanation.scale_down:
            click.echo(f"{explanation.scale_down[:1].upper()}{explanation.scale_down[1:]}.")
    context.exit(NOT_OK if explanation.state is State.BLOCKED else OK)
