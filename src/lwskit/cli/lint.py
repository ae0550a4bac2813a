"""`lwskit lint`: what admission would refuse of manifests, and what their authors would regret."""

from __future__ import annotations

import sys

import click

from lwskit.api import names

OUTPUT_NAMES = ("text", "json", "github")
CLEAN, FOUND, UNREADABLE = 0, 1, 2


@click.command("lint")
@click.argument("files", metavar="FILE...", nargs=-1, required=True)
@click.option(
    "--old",
    metavar="FILE",
    multiple=True,
    help="The sets as they are now: also tells what a change does to their groups; may be repeated.",
)
@click.option(
    "-o", "--output", type=click.Choice(OUTPUT_NAMES), default="text", show_default=True, help="The form of the report."
)
@click.option("--strict", is_flag=True, help="Exit with 1 for warnings too.")
@click.option("--ignore", metavar="CODE", multiple=True, help="Leave out warnings of this code; may be repeated.")
@click.option(
    "-n", "--namespace", default="default", show_default=True, help="The namespace of sets that do not name theirs."
)
@click.option(
    "--scheduler",
    type=click.Choice(names.SCHEDULER_PROVIDERS),
    help=f"The manager has {names.WORKLOAD_AWARE_SCHEDULING_GATE} and this provider; else spec.scheduling is refused.",
)
@click.pass_context
def command(
    context: click.Context,
    files: tuple[str, ...],
    old: tuple[str, ...],
    output: str,
    strict: bool,
    ignore: tuple[str, ...],
    namespace: str,
    scheduler: str | None,
) -> None:
    """Check manifests without a cluster: refusals with their place, and warnings.

    FILE, also that of --old, is a file of YAML or JSON, - for standard input, or a folder, for its *.yaml, *.yml and
    *.json. Other kinds than LeaderWorkerSet and DisaggregatedSet are skipped.
    """
    # What lint needs is imported here, so that --help stays quick.
    from lwskit.api.validation import NO_SCHEDULING, SchedulingSupport
    from lwskit.lint import files as reading
    from lwskit.lint.check import lint, stored
    from lwskit.lint.findings import CODES, Severity
    from lwskit.lint.output import OUTPUTS
    from lwskit.lint.server import Server
    from lwskit.lint.source import SourceError

    for code in ignore:
        if code not in CODES:
            raise click.BadParameter(f"there is no code {code!r}; docs/lint.md lists them", param_hint="--ignore")
        if CODES[code].severity is Severity.ERROR:
            raise click.BadParameter(f"{code} is no warning, and cannot be ignored", param_hint="--ignore")
    if [*files, *old].count("-") > 1:
        raise click.UsageError("- can be given once: standard input ends when it has been read")
    support = SchedulingSupport(gate=True, provider=scheduler) if scheduler else NO_SCHEDULING
    server = Server(support)
    try:
        known = stored(reading.read(old, sys.stdin.buffer), server, namespace)
    except SourceError as error:
        click.echo(f"--old: {error}", err=True)
        context.exit(UNREADABLE)
    report = lint(reading.read(files, sys.stdin.buffer), server, known, namespace).without(ignore)
    for line in OUTPUTS[output](report):
        click.echo(line)
    if report.unreadable:
        context.exit(UNREADABLE)
    found = report.count(Severity.ERROR) or (strict and report.count(Severity.WARNING))
    context.exit(FOUND if found else CLEAN)
