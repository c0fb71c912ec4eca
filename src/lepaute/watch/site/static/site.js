// What the pages with plots share: colours, words, Vega-Lite.
"use strict";
const site = (function () {
  const dark = window.matchMedia("(prefers-color-scheme: dark)");
  const CODES = {
    n: ["as before", "#9aa7b5", "#66727f"],
    w: ["worse, p < 0.01", "#eaa94e", "#a0702a"], W: ["worse, p < 0.0001: suspicious", "#d4730c", "#e08a2c"],
    R: ["regressed", "#8f1d00", "#ff8f66"],
    b: ["better, p < 0.01", "#79abe3", "#3d76b8"], B: ["better, p < 0.0001", "#2a6fc0", "#67a8f0"],
    u: ["unlike before, p < 0.01", "#b48fd0", "#7a569a"], U: ["unlike before, p < 0.0001: suspicious", "#8450ab", "#b184d6"],
    ".": ["too few to test", "#d9dee5", "#39424d"], o: ["logged as an outlier", "#4a9c5d", "#74c686"],
    x: ["did not end well", "#b3261e", "#ff6b60"],
  };
  const style = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const colour = (code) => CODES[code][dark.matches ? 2 : 1];
  const date = (days) => new Date(days * 86400000).toISOString().slice(0, 10);
  function legend(place, codes) {
    place.replaceChildren(...Object.keys(CODES).filter((code) => codes.has(code)).map((code) => {
      const item = document.createElement("span"), mark = document.createElement("i");
      mark.style.background = colour(code);
      item.append(mark, CODES[code][0]);
      return item;
    }));
  }
  // Three significant digits and a prefix: 52.4 G.
  function short(value) {
    if (value === null || value === undefined) return "none";
    if (value === 0) return "0";
    const step = Math.max(-4, Math.min(5, Math.floor(Math.log10(Math.abs(value)) / 3)));
    const prefix = ["p", "n", "µ", "m", "", "k", "M", "G", "T", "P"][step + 4];
    return `${Number((value / 1000 ** step).toPrecision(4))}${prefix === undefined || prefix === "" ? "" : ` ${prefix}`}`;
  }
  function config() {
    const ink = style("--ink"), soft = style("--soft"), rule = style("--rule");
    return {
      background: null, font: "system-ui, sans-serif", view: { stroke: rule },
      axis: { labelColor: ink, titleColor: ink, gridColor: rule, domainColor: rule, tickColor: rule, titleFontWeight: "normal" },
      legend: { labelColor: ink, titleColor: ink }, title: { color: ink }, rule: { color: soft },
    };
  }
  const embed = (place, spec) => vegaEmbed(place, spec, { actions: false, renderer: "canvas", config: config() });
  return { CODES, colour, style, date, legend, short, embed, onTheme: (draw) => dark.addEventListener("change", draw) };
})();
