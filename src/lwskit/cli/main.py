"""The `lwskit` command: subcommands, and how errors reach a person."""

from __future__ import annotations

import io
import sys
import traceback
from importlib.metadata import version

import click

from lwskit.runtime.errors import LwskitError


class LazyGroup(click.Group):
    """A group that imports a command only when it is asked for, so that `--help` and `--version` stay quick."""

    COMMANDS = ("demo", "up", "run", "manager", "lint", "plan", "explain", "doctor", "drain-group")

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The names of all commands, in the order of the documentation."""
        return list(self.COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import and return one command."""
        if cmd_name not in self.COMMANDS:
            return None
        module = __import__(f"lwskit.cli.{cmd_name.replace('-', '_')}", fromlist=["command"])
        return module.command


@click.command(cls=LazyGroup)
@click.version_option(version("lwskit"), prog_name="lwskit")
@click.option("--debug", is_flag=True, help="Show the traceback of an error, and log everything.")
@click.pass_context
def cli(ctx: click.Context, debug: bool) -> None:
    """Groups of pods that live and die together: LeaderWorkerSet for Kubernetes, in Python."""
    ctx.obj = debug


def main() -> None:
    """Run the command line: exit code 1 with one sentence for an error, 2 for wrong usage, 130 for Ctrl-C."""
    debug = "--debug" in sys.argv[1:]
    for stream in (sys.stdout, sys.stderr):
        # What a terminal cannot show must not end a command.
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")
    try:
        code = cli.main(standalone_mode=False)
    except click.exceptions.Exit as e:
        code = e.exit_code
    except click.ClickException as e:
        e.show()
        code = e.exit_code
    except (click.Abort, KeyboardInterrupt):
        code = 130
    except LwskitError as e:
        code = _report(str(e), debug)
    except BaseExceptionGroup as group:
        found, rest = group.split(LwskitError)
        if group.subgroup(KeyboardInterrupt) is not None:
            code = 130
        elif found is None or (rest is not None and not debug):
            code = _report(f"unexpected {_first(group)!r}; run again with --debug for the traceback", debug)
        else:
            code = _report(str(_first(found)), debug)
    except OSError as e:
        where = f" {e.filename}" if e.filename else ""
        code = _report(f"{e.strerror or e}{where}", debug)
    except Exception as e:
        code = _report(f"unexpected {e!r}; run again with --debug for the traceback", debug)
    # What a command returns is not meant as an exit code, and True would be 1.
    sys.exit(code if type(code) is int else 0)


def _first(group: BaseExceptionGroup[BaseException]) -> BaseException:
    inner = group.exceptions[0]
    return _first(inner) if isinstance(inner, BaseExceptionGroup) else inner


def _report(sentence: str, debug: bool) -> int:
    if debug:
        traceback.print_exc()
    click.echo(f"Error: {sentence}", err=True)
    return 1
