"""`python -m lwskit` is the same as `lwskit`."""

from lwskit.cli.main import main

main()
