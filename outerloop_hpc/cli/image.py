"""``image build|check``."""

from __future__ import annotations

import typer

app = typer.Typer(help="Container images.", no_args_is_help=True, rich_markup_mode=None)
