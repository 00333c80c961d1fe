"""The `svcd` command."""

import sys

from svcd.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
