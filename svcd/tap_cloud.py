"""The program `twistd svcd-cloud`: the embedded cloud alone, for clients and for kill tests."""

from __future__ import annotations

from twisted.application.service import MultiService

from svcd import tap

Options = tap.Options


def makeService(options: tap.Options) -> MultiService:
    """Make the service of `twistd svcd-cloud`, see IServiceMaker."""
    with tap.imports():
        from svcd.service import CloudService  # here, so that --help is quick

    return tap.make(options, CloudService)
