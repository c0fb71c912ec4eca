// The last value of each CPU: how they are distributed, and where in the cluster they are.
"use strict";
document.addEventListener("DOMContentLoaded", () => {
  const data = window.lepaute;
  if (!data.last.length) return;
  const axis = { title: data.factor, format: "~s" };
  const values = data.last.map((each) => ({ ...each, page: data.pages[each.node], CPU: each.cpu < 0 ? "node" : `CPU ${each.cpu}` }));
  const colour = { field: "CPU", scale: { range: [site.style("--blue"), "#d4730c", "#4a9c5d", "#a06bbf"] }, legend: values.some((each) => each.cpu > 0) ? { orient: "top", title: null } : null };
  const draw = () => {
    site.embed("#distribution", {
      width: "container", height: 220, data: { values }, mark: "bar",
      encoding: { x: { field: "value", type: "quantitative", bin: { maxbins: 40 }, axis }, y: { aggregate: "count", title: "CPUs" }, color: colour },
    });
    site.embed("#places", {
      width: "container", height: 220, data: { values }, mark: { type: "point", filled: true, size: 28 },
      params: [{ name: "zoom", select: "interval", bind: "scales" }],
      encoding: {
        x: { field: "place", type: "quantitative", title: "node", axis: { tickMinStep: 1 }, scale: { zero: false, nice: false, padding: 10 } },
        y: { field: "value", type: "quantitative", axis, scale: { zero: false } }, color: colour, href: { field: "page" },
        tooltip: [{ field: "node" }, { field: "CPU" }, { field: "value", format: ".4s" }],
      },
    });
  };
  draw();
  site.onTheme(draw);
});
