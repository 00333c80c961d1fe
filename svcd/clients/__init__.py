"""One client per protocol; the only code that talks to the outside."""
