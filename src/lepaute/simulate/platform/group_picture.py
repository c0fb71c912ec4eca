"""A picture of a platform: how fast its nodes are, group by group, and how wide their links."""

from pathlib import Path

from lepaute.kit.later import ticker
from lepaute.kit.picture import PREDICTED, RULE, SERIES, bare, entitle, new_figure, write_picture
from lepaute.kit.text import counted
from lepaute.simulate.platform.data_sheet import dgemm_rate
from lepaute.simulate.platform.group_summary import sizes_and_rates
from lepaute.simulate.platform.schema import Platform

_SIZE = (7.0, 4.2)
#: Groups whose names fit under their bars.
_NAMED = 12


def draw_platform(platform: Platform, path: Path) -> None:
    """Writes bars as wide as a group has nodes and as high as a node is fast in dgemm (as its cores are many, where a
    rate is not known), with the width of its link beside."""
    figure = new_figure(_SIZE, for_file=True)
    speeds, links = figure.subplots(2, 1, sharex=True, height_ratios=(2, 1))
    rates = [dgemm_rate(part) for part in platform.parts]
    known = all(rates)
    first, middles = platform.nodes.first_number - 0.5, []
    for place, part in enumerate(platform.parts):
        count, cores = part.nodes.count, part.nodes.cores
        height = (rates[place] or 0.0) * cores / 1e9 if known else cores
        colour = SERIES[place % len(SERIES)] if platform.groups else PREDICTED
        speeds.bar(first, height, count, align="edge", color=colour, edgecolor=RULE)
        links.bar(first, _link_Bps(platform, place) / 1e9, count, align="edge", color=colour, edgecolor=RULE)
        middles.append(first + count / 2)
        first += count
    speeds.set_ylabel("Gflop/s a node in dgemm" if known else "cores a node")
    links.set_ylabel("link, GB/s")
    links.set_xlabel("number of the node")
    links.xaxis.set_major_locator(ticker.MaxNLocator(integer=True))
    if platform.groups and len(platform.groups) <= _NAMED:
        for middle, group in zip(middles, platform.groups, strict=True):
            speeds.annotate(
                f"{group.name}\n{counted(group.nodes, 'node')}",
                (middle, 0.0),
                xytext=(0, 4),
                textcoords="offset points",
                ha="center",
                color="white",
                fontsize=8,
            )
    for axes in (speeds, links):
        bare(axes)
    entitle(figure, f"{platform.name}: {sizes_and_rates(platform)}", f"{platform.name}, sha256 {platform.sha256[:12]}")
    write_picture(figure, path)


def _link_Bps(platform: Platform, place: int) -> float:  # noqa: N802 - the unit
    link = platform.groups[place].link if platform.groups else None
    return (link and link.bandwidth_Bps) or platform.network.node_link.bandwidth_Bps
