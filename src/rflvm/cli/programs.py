"""Compiled programs kept between runs of the command line, unless ``--no-cache`` or RFLVM_CACHE=0 says otherwise."""

from __future__ import annotations

import click


def keep() -> None:
    """Keep them from now on; commands say so before they compute."""
    if click.get_current_context().find_root().params["cache"]:
        from ..numerics.programs import keep_programs

        keep_programs()
