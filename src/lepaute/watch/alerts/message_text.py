"""Title and text of a message about an event."""

from lepaute.watch.alerts.due import Message
from lepaute.watch.report.texts import change_text, machines_text


def title_of(message: Message) -> str:
    """dahu-[29-32]: dgemm_rate_flops -9.5 % since 2026-02-10; without line breaks, whatever the names are."""
    regression = message.regression
    further = len(regression.changes) - 1
    more = f" and {further} more" if further else ""
    first = (
        f"{machines_text(regression.machines)}: {change_text(regression.changes[0])}{more}, since {regression.since}"
    )
    return " ".join((f"{first} (was {message.known_nodes} nodes)" if message.known_nodes else first).split())


def body_of(message: Message) -> str:
    regression = message.regression
    lines = [
        f"{machines_text(regression.machines)} regressed on {regression.since}; alarm of {regression.alarm}.",
        *(f"  {change_text(change)}" for change in regression.changes),
        *(f"archive {archive}" for archive in regression.archives),
        "",
        "To see it: lepaute watch test. To record a cause: lepaute watch events propose, then accept.",
    ]
    return "\n".join(lines)
