"""`python -m lwskit` is the same as `lwskit`."""

from lwskit.cli.entry import main

main()
