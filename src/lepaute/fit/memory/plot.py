"""The picture of a memory hierarchy: bandwidth against buffer size on log axes, plateaus, and where caches end."""

from pathlib import Path

from lepaute.fit.memory.hierarchy import MemoryHierarchy
from lepaute.kit.files import whole_file
from lepaute.kit.text import size_text


def plot_hierarchies(hierarchies: tuple[MemoryHierarchy, ...], path: Path) -> None:
    """Writes a PNG, one panel a node: medians as lines, a colour a curve; ends of caches shaded, hwloc's dashed."""
    from matplotlib.figure import Figure
    from matplotlib.ticker import FixedLocator, FuncFormatter, LogLocator, NullFormatter

    figure = Figure(figsize=(9.0, 4.8 * len(hierarchies)), layout="constrained")
    axes = figure.subplots(len(hierarchies), 1, squeeze=False)[:, 0]
    for axis, hierarchy in zip(axes, hierarchies, strict=True):
        _lines(axis, hierarchy)
        _ends(axis, hierarchy)
        axis.set_xscale("log", base=2)
        axis.set_yscale("log")
        sizes = [size for curve in hierarchy.curves for size in curve.size_bytes]
        low, high = min(sizes), max(sizes)
        ticks = [1 << power for power in range(0, 60, 2) if low <= 1 << power <= high]
        axis.xaxis.set_major_locator(FixedLocator(ticks))
        axis.xaxis.set_minor_formatter(NullFormatter())
        axis.xaxis.set_major_formatter(FuncFormatter(lambda size, _: size_text(size)))
        axis.yaxis.set_major_locator(LogLocator(base=10, subs=(1.0, 2.0, 5.0)))
        axis.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        axis.yaxis.set_minor_formatter(NullFormatter())
        axis.set_xlim(low / 1.15, high * 1.15)
        axis.set_xlabel("size of the buffer")
        axis.set_ylabel("read (GB/s), median")
        axis.set_title(f"Memory hierarchy{' of ' + hierarchy.node if hierarchy.node else ''}", loc="left")
        axis.grid(alpha=0.25, which="major")
        axis.legend(fontsize=8, loc="center left", bbox_to_anchor=(1.01, 0.5), frameon=False)
    with whole_file(path) as temporary:
        figure.savefig(temporary, format="png", dpi=130)


def _lines(axis: object, hierarchy: MemoryHierarchy) -> None:
    """Colours mean stride and width, dashes the loops that are not unrolled; thick where there is a plateau."""
    plot = getattr(axis, "plot")  # noqa: B009 - matplotlib's own types are loaded lazily
    ways = sorted({(curve.element_bytes, curve.stride) for curve in hierarchy.curves})
    most = max(curve.unroll for curve in hierarchy.curves)
    for curve in hierarchy.curves:
        colour = f"C{ways.index((curve.element_bytes, curve.stride)) % 10}"
        values = [value * 1e-9 for value in curve.bandwidth]
        style = "-" if curve.unroll == most else ":"
        plot(curve.size_bytes, values, style, color=colour, linewidth=1.1, label=curve.name)
        if curve.unroll != most:
            continue
        for plateau in hierarchy.plateaus:
            (bandwidth_of_curve,) = [bandwidth for bandwidth in plateau.bandwidths if bandwidth.curve == curve.name]
            level = bandwidth_of_curve.median * 1e-9
            plot([plateau.first_bytes, plateau.last_bytes], [level, level], color=colour, linewidth=4, alpha=0.3)


def _ends(axis: object, hierarchy: MemoryHierarchy) -> None:
    """Where caches end, by the measurements and by hwloc."""
    shade, line, text = (getattr(axis, name) for name in ("axvspan", "axvline", "text"))
    for number, level in enumerate(hierarchy.levels):
        shade(level.low_bytes, level.high_bytes, color="0.85", zorder=0, label=None if number else "bandwidth falls")
    place = getattr(axis, "get_xaxis_transform")()  # noqa: B009
    for number, cache in enumerate(hierarchy.known):
        line(cache.size_bytes, color="k", linestyle="--", linewidth=0.9, label=None if number else "cache by hwloc")
        text(cache.size_bytes, 0.03, f" L{cache.level}", transform=place, ha="left", va="bottom", fontsize=9)
