"""The command line: the only place that prints, exits and reads the environment.

A command is a file in `commands`, named as the command, with a click command of that name; it is found
there. `entry` calls it and maps what happens to exit codes.
"""

from analyzer.cli.entry import cli, main

__all__ = ["cli", "main"]
