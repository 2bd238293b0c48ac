"""The command line: ``pmdc``, or ``python -m pmdc``. Needs the extra "cli".

`app.py` has the commands and their options, and imports nothing heavy; what they do is in a module for each.
"""

from pmdc.cli.app import app
from pmdc.cli.running import main

__all__ = ["app", "main"]
