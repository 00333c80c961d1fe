"""The `svcd` command. Ctrl-C ends it with 130 also while its modules are imported."""

import sys


def main() -> int:
    """Run the command of this process and return the exit code."""
    try:
        from svcd.cli.main import main as run

        return run()
    except KeyboardInterrupt:
        sys.stderr.write("svcd: interrupted\n")
        return 130


if __name__ == "__main__":
    sys.exit(main())
