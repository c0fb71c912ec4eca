"""A factor of a cluster to look at: its rows, its spread, and the pictures of the pages as matplotlib axes."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from lepaute.errors import InputError
from lepaute.kit.later import later, pd
from lepaute.kit.notebook import Public, facts_html
from lepaute.kit.picture import DEEP, SOFT, new_figure
from lepaute.kit.text import percent, significant
from lepaute.watch.changelog import Event
from lepaute.watch.report.factor_history import CODES, FactorRows, Spread, codes_of, in_order, last_rows, spread_of
from lepaute.watch.report.models import Moved, title_of
from lepaute.watch.values import DAY_S, day_numbers

if TYPE_CHECKING:
    from matplotlib import axes
else:
    axes = later("matplotlib.axes")

#: Of an overview: the tests of single jobs, those of the mean of several, and the values themselves.
View = Literal["jobs", "means", "values"]
#: Style of the lines of events: colour and dashes, which tell them apart without colour, too.
EVENTS: dict[str, tuple[str, Any]] = {"platform": ("#b35c00", "-"), "protocol": (SOFT, (0, (4, 2)))}
_OF_CPU = (DEEP, "#d4730c", "#4a9c5d", "#a06bbf")
#: Characters of the reason of an event that are drawn.
_LABEL = 28


class WatchedFactor(Public):
    """A factor of a cluster over its days, or a model of several tested as a vector; made by `Watch.factor`.

    Attributes
    ----------
    rows : a row a job of each CPU: node, cpu, job, started_s, stratum, value (SI), state, archive; p_value, low, high
        of the test of the job, outlier, regressed; mean_w, p_w, low_w, high_w of the mean of `window` jobs
    window : this many jobs are tested together, 0: none
    events : those that touch the cluster, by date
    moved : of a model, for each CPU that stands out, which coefficients moved; empty of a single factor
    """

    def __init__(self, rows: FactorRows, events: Sequence[Event], moved: Sequence[Moved] = ()) -> None:
        self._factor = rows
        self.events = tuple(sorted(events, key=lambda event: event.date))
        self.moved = tuple(moved)

    @property
    def rows(self) -> "pd.DataFrame":
        """A row a job of each CPU, by node, cpu and time."""
        return self._factor.rows

    @property
    def window(self) -> int:
        """Jobs that are tested together, 0: none."""
        return self._factor.window

    @property
    def name(self) -> str:
        """The factor's, or the model's."""
        return title_of(self._factor.name)

    @property
    def spread(self) -> Spread:
        """Mean and coefficient of spatial variability of the last value of each CPU."""
        return spread_of(last_rows(self._factor))

    def __repr__(self) -> str:
        return f"<WatchedFactor {self.name!r} of {self._factor.cluster!r}: {len(self.rows)} jobs of CPUs>"

    def _repr_html_(self) -> str:
        spread = self.spread
        facts: list[tuple[str, object]] = [("jobs of CPUs", len(self.rows)), ("events", len(self.events))]
        if not self._factor.is_vector:
            facts += [("mean of the last values", spread.mean), ("spatial variability", percent(spread.coefficient))]
        return facts_html(f"{self._factor.cluster} {self.name}", facts)

    def overview(self, view: View = "jobs", ax: "axes.Axes | None" = None) -> "axes.Axes":
        """All CPUs over all days: a row a CPU, a point a job (the thesis, figures 9.5, 9.7 and 9.10).

        view : "jobs" colours each by its own test, "means" by that of the mean of the latest `window` jobs, "values" by
            the value itself
        Raises InputError for another view, for means where none were tested, and for values of a model.
        """
        if view not in ("jobs", "means", "values"):
            raise InputError(f"there is no view {view!r}; give jobs, means or values")
        self._check(view, needs_values=view == "values")
        rows = self.rows
        pairs = list(zip(rows["node"].astype(str), rows["cpu"].tolist(), strict=True))
        machines = in_order(set(pairs))
        place = {machine: at for at, machine in enumerate(machines)}
        y = np.array([place[pair] for pair in pairs])
        x = day_numbers(rows["started_s"]).astype("datetime64[D]")
        ax = ax or new_figure((9.0, 1.6 + min(10.0, 0.14 * len(machines))), for_file=False).subplots()
        size = float(np.clip(1800.0 / max(len(machines), 1), 3.0, 36.0))
        if view == "values":
            value = rows["value"].to_numpy(float) * self._factor.unit[1]
            drawn = np.isfinite(value)
            low, high = np.nanpercentile(value, [1, 99]) if drawn.any() else (0.0, 1.0)
            points = ax.scatter(x[drawn], y[drawn], size, value[drawn], marker="s", cmap="viridis", vmin=low, vmax=high)
            ax.figure.colorbar(points, ax=ax, label=self._factor.label)
        else:
            codes = np.array(codes_of(self._factor, of_window=view == "means"))
            for code, (meaning, colour, _) in CODES.items():
                if (codes == code).any():
                    ax.scatter(x[codes == code], y[codes == code], size, colour, marker="s", label=meaning)
            ax.legend(loc="lower left", bbox_to_anchor=(0, 1.12), ncols=3, fontsize="small", frameon=False)
        step = max(1, len(machines) // 40)
        ax.set_yticks(range(0, len(machines), step), [_name(*each) for each in machines[::step]], fontsize=7)
        ax.set(ylim=(len(machines) - 0.4, -0.6))
        what = {"jobs": "each job", "means": f"mean of {self.window} jobs", "values": "values"}[view]
        return self._with_events(ax, f"{self.name}, {what}")

    def evolution(
        self, node: str, cpu: int | None = None, view: Literal["jobs", "means"] = "jobs", ax: "axes.Axes | None" = None
    ) -> "axes.Axes":
        """One CPU over time, with the interval in which 99.99 % of the next jobs would lie if nothing had changed.

        cpu : the first of the node by default
        Raises InputError for a CPU without jobs, for a model, and for means where none were tested.
        """
        self._check(view)
        own = (self.rows["node"].astype(str) == node).to_numpy()
        if own.any() and cpu is None:
            cpu = int(self.rows.loc[own, "cpu"].min())
        own = own & (self.rows["cpu"] == cpu).to_numpy()
        if not own.any():
            raise InputError(f"{self.name} was never measured on node {node}{'' if cpu is None else f', cpu {cpu}'}")
        rows, codes = self.rows[own], np.array(codes_of(self._factor, of_window=view == "means"))[own]
        value, low, high = (
            rows[name].to_numpy(float) * self._factor.unit[1]
            for name in (("mean_w", "low_w", "high_w") if view == "means" else ("value", "low", "high"))
        )
        x = (1000 * rows["started_s"].to_numpy(float)).astype("datetime64[ms]")
        ax = ax or new_figure((9.0, 3.2), for_file=False).subplots()
        ax.fill_between(x, low, high, step="post", color=DEEP, alpha=0.2, linewidth=0)
        for code, (meaning, colour, _) in CODES.items():
            if (drawn := (codes == code) & np.isfinite(value)).any():
                ax.plot(x[drawn], value[drawn], ".", color=colour, label=meaning)
        if np.isfinite(value).any():
            ends = np.nanmin(value), np.nanmax(value)
            room = 0.4 * (ends[1] - ends[0]) or 0.01 * abs(ends[1]) or 1.0
            ax.set_ylim(ends[0] - room, ends[1] + room)
        ax.set_ylabel(self._factor.label)
        what = f", mean of {self.window} jobs" if view == "means" else ""
        ax.legend(loc="lower left", bbox_to_anchor=(0, 1.12), ncols=3, fontsize="small", frameon=False)
        return self._with_events(ax, f"{_name(node, cpu or 0)}{what}", node)

    def distribution(self, ax: "axes.Axes | None" = None) -> "axes.Axes":
        """The last values of all CPUs, with their mean and coefficient of spatial variability.

        Raises InputError for a model, and where no job is done.
        """
        last = self._last()
        ax = ax or new_figure((6.0, 3.2), for_file=False).subplots()
        cpus = sorted(last["cpu"].unique())
        unit, scale = self._factor.unit
        parts = [last.loc[last["cpu"] == cpu, "value"].to_numpy(float) * scale for cpu in cpus]
        colours = [_OF_CPU[at % len(_OF_CPU)] for at in range(len(cpus))]
        ax.hist(parts, bins=40, stacked=True, color=colours, label=[_cpu(cpu) for cpu in cpus])
        spread = self.spread
        ax.axvline(spread.mean * scale, color="#222222", linestyle="--", linewidth=1)
        ax.set(xlabel=self._factor.label, ylabel="CPUs")
        mean = f"mean {significant(spread.mean * scale, 4)} {unit}".rstrip()
        title = f"{mean}, spatial variability {percent(spread.coefficient)}"
        ax.set_title(title, loc="left", fontsize="medium")
        if len(cpus) > 1:
            ax.legend(fontsize="small", frameon=False)
        return ax

    def places(self, ax: "axes.Axes | None" = None) -> "axes.Axes":
        """The last value of each CPU by its node, in the order of their names. Raises InputError as `distribution`."""
        last = self._last()
        ax = ax or new_figure((6.0, 3.2), for_file=False).subplots()
        for at, (cpu, own) in enumerate(last.groupby("cpu")):
            values = own["value"] * self._factor.unit[1]
            ax.plot(own["place"], values, ".", color=_OF_CPU[at % len(_OF_CPU)], label=_cpu(int(str(cpu))))
        ax.set(xlabel="node, in the order of their names", ylabel=self._factor.label)
        ax.legend(fontsize="small", frameon=False)
        return ax

    def _check(self, view: str, *, needs_values: bool = True) -> None:
        if needs_values and self._factor.is_vector:
            raise InputError("a model has no single value; look at its overview, or at a coefficient")
        if view == "means" and not self.window:
            raise InputError("no means of several jobs were tested; look at the jobs")

    def _last(self) -> "pd.DataFrame":
        self._check("values")
        last = last_rows(self._factor)
        if last.empty:
            raise InputError(f"no job of {self.name} is done; there is nothing to draw")
        return last

    def _with_events(self, ax: "axes.Axes", title: str, node: str | None = None) -> "axes.Axes":
        """Lines at the dates of events, coloured and dashed by type, with their reasons above; of a node its own."""
        ax.set_title(title, loc="left", fontsize="medium")
        begins, ends = (float(edge) for edge in ax.get_xlim())
        for event in self.events:
            day = event.start_s / DAY_S
            touched = node is None or event.nodes.among({(self._factor.cluster, node)})
            if not touched or not begins <= day <= ends:
                continue
            colour, dashes = EVENTS[event.kind]
            ax.axvline(day, color=colour, linestyle=dashes, linewidth=1.2)
            text = event.reason if len(event.reason) <= _LABEL else f"{event.reason[: _LABEL - 1]}…"
            label = ax.annotate(
                f"{event.kind}: {text}", (day, 1.0), xycoords=("data", "axes fraction"), xytext=(2, 2),
                textcoords="offset points", color=colour, fontsize=7, annotation_clip=True,
            )  # fmt: skip
            label.set_parse_math(False)  # reasons are what people wrote
        return ax


def _name(node: str, cpu: int) -> str:
    return node if cpu < 0 else f"{node}:{cpu}"


def _cpu(cpu: int) -> str:
    return "node" if cpu < 0 else f"CPU {cpu}"
