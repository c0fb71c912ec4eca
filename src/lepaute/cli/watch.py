"""`lepaute watch ...`: has a machine changed, since when, who else, and what does it cost."""

import typer

from lepaute.cli.watch_alert import alert
from lepaute.cli.watch_cost import cost
from lepaute.cli.watch_events import app as events
from lepaute.cli.watch_health import health
from lepaute.cli.watch_ingest import ingest
from lepaute.cli.watch_replay import replay
from lepaute.cli.watch_run import run
from lepaute.cli.watch_site import site
from lepaute.cli.watch_tests import run_tests

app = typer.Typer(help="Has a machine changed, since when, which others, and what does it cost?")
app.callback()(lambda: None)
app.command()(run)
app.command()(ingest)
app.command("test")(run_tests)
app.add_typer(events, name="events")
app.command()(replay)
app.command()(cost)
app.command()(site)
app.command()(alert)
app.command()(health)
