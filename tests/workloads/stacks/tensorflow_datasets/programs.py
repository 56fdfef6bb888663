"""What is run in a process of its own, since it ends or hangs some."""

import subprocess
import sys

LIMIT_S = 120


def run(program, *arguments, **options):
    """Run a program of Python; return its status and what it printed."""
    done = subprocess.run(
        [sys.executable, "-c", program] + list(arguments),
        stdin=options.get("stdin", subprocess.DEVNULL),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        timeout=LIMIT_S,
    )
    return done.returncode, done.stdout.decode(errors="replace")
