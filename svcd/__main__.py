"""The `svcd` command.

Ctrl-C, SIGTERM and the end of its terminal end it with 130, also while its modules are imported.
"""

import sys


def main() -> int:
    """Run the command of this process and return the exit code."""
    try:
        import signal  # here: it takes some milliseconds, in which Ctrl-C may come

        for number in (signal.SIGTERM, signal.SIGHUP):  # what a command has started ends with it
            if signal.getsignal(number) is not signal.SIG_IGN:  # as after nohup
                signal.signal(number, _interrupt)
        from svcd.cli.main import main as run

        return run()
    except KeyboardInterrupt:
        sys.stderr.write("svcd: interrupted\n")
        return 130


def _interrupt(_number: int, _frame: object) -> None:
    raise KeyboardInterrupt


if __name__ == "__main__":
    sys.exit(main())
