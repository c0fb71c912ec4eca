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
    x: ["did not end well", "#222222", "#f2f4f7"],
  };
  const style = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const colour = (code) => CODES[code][dark.matches ? 2 : 1];
  const date = (days) => new Date(days * 86400000).toISOString().slice(0, 10);
  // Of values: viridis, which rises in lightness, so that it reads in grey and by all eyes.
  const STEPS = 33, VIRIDIS = [[68, 1, 84], [72, 40, 120], [62, 74, 137], [49, 104, 142], [38, 130, 142], [31, 158, 137], [53, 183, 121], [109, 205, 89], [180, 222, 44], [253, 231, 37]];
  function step(at) {
    const exact = (at / (STEPS - 1)) * (VIRIDIS.length - 1), below = Math.min(Math.floor(exact), VIRIDIS.length - 2);
    return `rgb(${VIRIDIS[below].map((one, part) => Math.round(one + (exact - below) * (VIRIDIS[below + 1][part] - one))).join(",")})`;
  }
  // A, ..., Z, AA, ...: as the list of events counts.
  const letter = (place) => (place < 26 ? "" : letter(Math.floor(place / 26) - 1)) + String.fromCharCode(65 + (place % 26));
  const digits = (value) => Number(value.toPrecision(3)).toString();
  function legend(place, codes, ends = null) {
    const scale = document.createElement("span"), ramp = document.createElement("i");
    if (ends) {
      ramp.className = "ramp";
      ramp.style.background = `linear-gradient(90deg, ${Array.from({ length: 9 }, (_, at) => step(at * 4)).join(",")})`;
      scale.append(`${ends[0]} `, ramp, `${ends[1]} or more`);
    }
    place.replaceChildren(...(ends ? [scale] : []), ...Object.keys(CODES).filter((code) => codes.has(code)).map((code) => {
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
  return { CODES, colour, style, date, legend, short, embed, step, STEPS, letter, digits, onTheme: (draw) => dark.addEventListener("change", draw) };
})();
