// What the pages with plots share: colours, words, Vega-Lite. CODES, what a letter means and its colours, stands above.
const site = (function () {
  "use strict";
  const dark = window.matchMedia("(prefers-color-scheme: dark)");
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
  const short = (value, unit = "") => `${value === null || value === undefined ? "none" : Number(value.toPrecision(4))} ${unit}`.trimEnd();
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
