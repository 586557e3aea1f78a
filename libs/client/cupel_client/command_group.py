"""Groups of commands whose help shows whole sentences."""

import click

LONGEST_SUMMARY = 1000
"""Largest number of characters of a summary. The default of click, 45 or so, cuts sentences."""


class CommandGroup(click.Group):
    """A group that lists each command with the whole first sentence of its help."""

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the name and the summary of each command."""
        commands = {name: self.get_command(ctx, name) for name in self.list_commands(ctx)}
        rows = [
            (name, command.get_short_help_str(LONGEST_SUMMARY))
            for name, command in commands.items()
            if command is not None and not command.hidden
        ]
        with formatter.section("Commands"):
            formatter.write_dl(rows)
