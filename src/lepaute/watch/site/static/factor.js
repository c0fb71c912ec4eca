// The last value of each CPU: how they are distributed, and where in the cluster they are.
"use strict";
document.addEventListener("DOMContentLoaded", () => {
  const data = window.lepaute, jump = document.getElementById("jump");
  jump.addEventListener("change", () => { window.location.href = jump.value; });
  if (!data.last.length) return;
  const spread = data.coefficient === null ? "" : `; coefficient of spatial variability ${site.digits(100 * data.coefficient)} %`;
  document.getElementById("spread").textContent = `Mean ${site.short(data.mean, data.unit)}${spread} (standard deviation over mean of ${data.last.length} CPUs).`;
  const axis = { title: data.label, labelOverlap: true };
  const values = data.last.map((each) => ({ ...each, page: data.pages[each.node], CPU: each.cpu < 0 ? "node" : `CPU ${each.cpu}` }));
  const several = values.some((each) => each.cpu > 0);
  const draw = () => {
    const colour = { field: "CPU", scale: { range: [site.style("--blue"), site.style("--second"), "#4a9c5d", "#a06bbf"] }, legend: several ? { orient: "top", title: null } : null };
    const mean = { datum: data.mean, type: "quantitative" };
    site.embed("#distribution", {
      width: "container", height: 220, data: { values },
      layer: [
        { mark: "bar", encoding: { x: { field: "value", type: "quantitative", bin: { maxbins: 40 }, axis }, y: { aggregate: "count", title: "CPUs" }, color: colour } },
        { mark: { type: "rule", strokeDash: [4, 3], size: 1.5, color: site.style("--ink") }, data: { values: [{}] }, encoding: { x: mean } },
      ],
    });
    site.embed("#places", {
      width: "container", height: 220, data: { values },
      layer: [
        {
          mark: { type: "point", filled: true, size: 28, opacity: 1 }, params: [{ name: "zoom", select: "interval", bind: "scales" }],
          encoding: {
            x: { field: "place", type: "quantitative", title: "node", axis: { tickMinStep: 1 }, scale: { zero: false, nice: false, padding: 10 } },
            y: { field: "value", type: "quantitative", axis, scale: { zero: false } }, color: colour, shape: { field: "CPU", legend: several ? { orient: "top", title: null } : null }, href: { field: "page" },
            tooltip: [{ field: "node" }, { field: "CPU" }, { field: "value", format: ".4~r" }],
          },
        },
        { mark: { type: "rule", strokeDash: [4, 3], size: 1.5, color: site.style("--ink") }, data: { values: [{}] }, encoding: { y: mean } },
      ],
    });
  };
  draw();
  site.onTheme(draw);
});
