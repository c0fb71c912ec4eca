// The calls of each rank over time: rows of segments, drawn as shares of every column of pixels, and zoomed.
"use strict";
(async function () {
  const data = JSON.parse(document.getElementById("data").textContent), TICKS = data.ticks, ROWS = data.ranks.length;
  const canvas = document.getElementById("gantt"), output = document.getElementById("point"), pen = canvas.getContext("2d");
  const part = (name) => document.querySelector(`.calls .${name}`);
  const marks = part("marks"), chosen = part("chosen"), HEIGHT = canvas.height / ROWS, LEAST = 64;
  async function unpacked(text) {
    const bytes = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
    return new Response(stream).arrayBuffer();
  }
  const codes = new Uint16Array(await unpacked(data.codes)), lengths = new Uint32Array(await unpacked(data.lengths));
  const begins = new Uint32Array(codes.length), firsts = [0];
  data.counts.forEach((count, row) => {
    let at = 0;
    for (let i = firsts[row]; i < firsts[row] + count; i += 1) { begins[i] = at; at += lengths[i]; }
    firsts.push(firsts[row] + count);
  });
  const classOf = Uint8Array.from(data.kinds, (kind) => kind[1]), CLASSES = Math.max(data.nothing, ...classOf) + 1;
  let low = 0, high = TICKS;

  function segmentAt(row, date) {
    let from = firsts[row], to = firsts[row + 1] - 1;
    while (from < to) {
      const middle = (from + to + 1) >> 1;
      if (begins[middle] <= date) from = middle; else to = middle - 1;
    }
    return from;
  }
  function colours() {
    const style = getComputedStyle(document.documentElement);
    return Array.from({ length: CLASSES }, (_, place) => {
      const digits = style.getPropertyValue(`--c${place}`).trim().slice(1);
      return [0, 2, 4].map((at) => parseInt(digits.slice(at, at + 2), 16)).concat(place === data.nothing ? 0 : 255);
    });
  }
  // Of one row the share of each class in each column.
  function sharesOf(row, width, shares) {
    shares.fill(0);
    const scale = width / (high - low);
    for (let i = segmentAt(row, low); i < firsts[row + 1] && begins[i] < high; i += 1) {
      const place = classOf[codes[i]], from = Math.max(0, (begins[i] - low) * scale);
      const to = Math.min(width, (begins[i] + lengths[i] - low) * scale);
      for (let x = Math.floor(from); x < to; x += 1) shares[x * CLASSES + place] += Math.min(to, x + 1) - Math.max(from, x);
    }
  }
  function draw() {
    const ratio = Math.min(2, window.devicePixelRatio || 1), width = Math.max(1, Math.round(canvas.clientWidth * ratio));
    const tall = Math.max(1, Math.round(HEIGHT * (HEIGHT >= 2 ? ratio : 1))), gap = tall >= 6 ? Math.round(tall / 6) : 0;
    canvas.width = width;
    canvas.height = tall * ROWS;
    const image = pen.createImageData(width, tall * ROWS), shares = new Float32Array(width * CLASSES), palette = colours();
    for (let row = 0; row < ROWS; row += 1) {
      sharesOf(row, width, shares);
      for (let x = 0; x < width; x += 1) {
        let place = 0, sum = shares[x * CLASSES];
        for (let y = tall - gap - 1; y >= 0; y -= 1) {
          const level = 1 - (y + 0.5) / (tall - gap);
          while (sum < level && place < CLASSES - 1) { place += 1; sum += shares[x * CLASSES + place]; }
          image.data.set(palette[place], 4 * ((row * tall + y) * width + x));
        }
      }
    }
    pen.putImageData(image, 0, 0);
    label();
  }
  function seconds(date) { return data.low_s + (date / TICKS) * data.whole_s; }
  function written(value_s, unit, digits) { return `${(value_s * unit[1]).toFixed(digits)} ${unit[0]}`; }
  function length(value_s) {
    const unit = [["s", 1], ["ms", 1e3], ["µs", 1e6], ["ns", 1e9]].find(([, factor]) => value_s * factor >= 1) || ["ns", 1e9];
    return `${Number((value_s * unit[1]).toPrecision(3))} ${unit[0]}`;
  }
  function digits() { return Math.max(0, 2 - Math.floor(Math.log10(seconds(high) * data.unit[1] - seconds(low) * data.unit[1]))); }
  function span(words, kind, style) {
    const made = document.createElement("span");
    made.textContent = words;
    made.className = kind;
    Object.assign(made.style, style);
    return made;
  }
  function label() {
    const most = canvas.clientWidth < 500 ? 3 : 8, from = seconds(low) * data.unit[1], to = seconds(high) * data.unit[1];
    const scale = 10 ** Math.floor(Math.log10((to - from) / most));
    const step = scale * [1, 2, 5, 10].find((factor) => factor * scale * most >= (to - from) * 0.999);
    const digits = Math.max(0, -Math.floor(Math.log10(step) + 1e-9)), made = [];
    for (let at = Math.ceil(from / step - 1e-9); at * step <= to + 1e-9 * step; at += 1) {
      const share = (at * step - from) / (to - from), kind = share < 0.03 ? "date first" : share > 0.97 ? "date last" : "date";
      made.push(span(`${(at * step).toFixed(digits)} ${data.unit[0]}`, kind, { left: `${100 * share}%` }));
    }
    let last = -Infinity;
    for (const [step, date] of data.steps) {
      const x = ((date - low) / (high - low)) * canvas.clientWidth;
      if (date < low || date > high || x - last < 26 || x > canvas.clientWidth - 12) continue;
      made.push(span(String(step), "step", { left: `${(100 * (date - low)) / (high - low)}%` }));
      last = x;
    }
    marks.replaceChildren(...made);
  }
  function name() {
    const every = Math.max(1, Math.ceil(13 / HEIGHT)), made = [];
    for (let row = 0; row < ROWS; row += every) {
      const node = data.nodes[row] && canvas.clientWidth > 600 ? ` · ${data.nodes[row]}` : "";
      made.push(span(`${data.ranks[row]}${node}`, "", { top: `calc(1.4rem + ${(row + 0.45) * HEIGHT}px)` }));
    }
    const names = part("names");
    names.replaceChildren(...made);
    names.style.minWidth = `${Math.max(16, ...made.map((each) => each.offsetWidth))}px`;
  }
  function show(from, to) {
    const width = Math.min(TICKS, Math.max(LEAST, to - from));
    low = Math.min(TICKS - width, Math.max(0, (from + to - width) / 2));
    high = low + width;
    draw();
  }
  const zoom = (factor, at = 0.5) => {
    const width = (high - low) * factor, centre = low + at * (high - low);
    show(centre - at * width, centre + (1 - at) * width);
  };
  const move = (share) => { const width = high - low, from = Math.min(TICKS - width, Math.max(0, low + share * width)); show(from, from + width); };
  const all = () => show(0, TICKS);
  const actions = [["all", all], ["+", () => zoom(0.5)], ["−", () => zoom(2)], ["←", () => move(-0.5)], ["→", () => move(0.5)]];
  const said = { "+": "zoom in", "−": "zoom out", "←": "earlier", "→": "later" };
  for (const [words, from, to] of data.windows) actions.push([words, () => show(from, to)]);
  document.querySelector(".buttons").replaceChildren(...actions.map(([words, act]) => {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = words;
    if (said[words]) button.setAttribute("aria-label", said[words]);
    button.addEventListener("click", act);
    return button;
  }));
  const keys = { "+": () => zoom(0.5), "=": () => zoom(0.5), "-": () => zoom(2), 0: all, ArrowLeft: () => move(-0.25), ArrowRight: () => move(0.25) };
  canvas.addEventListener("keydown", (event) => {
    if (!keys[event.key] || event.ctrlKey || event.metaKey) return;
    event.preventDefault();
    keys[event.key]();
  });
  canvas.addEventListener("dblclick", all);
  canvas.addEventListener("wheel", (event) => {
    if (!event.ctrlKey) return; // a wheel alone scrolls the page
    event.preventDefault();
    zoom(event.deltaY < 0 ? 0.7 : 1 / 0.7, event.offsetX / canvas.clientWidth);
  }, { passive: false });
  let start = null;
  const place = (event) => Math.min(1, Math.max(0, event.offsetX / canvas.clientWidth));
  canvas.addEventListener("pointerdown", (event) => { if (event.pointerType === "mouse") start = place(event); });
  canvas.addEventListener("pointermove", (event) => {
    const x = place(event), date = low + x * (high - low);
    if (start !== null) Object.assign(chosen.style, { display: "block", left: `${100 * Math.min(start, x)}%`, width: `${100 * Math.abs(x - start)}%` });
    const row = Math.min(ROWS - 1, Math.max(0, Math.floor(event.offsetY / HEIGHT))), i = segmentAt(row, date);
    const [call, where, words] = data.kinds[codes[i]], whole = length((lengths[i] / TICKS) * data.whole_s);
    const what = where === data.nothing || call === words ? words : `${call}, ${words}`;
    output.textContent = `rank ${data.ranks[row]} at ${written(seconds(date), data.unit, digits() + 1)}: ${what}, ${whole}`;
  });
  const end = (event) => {
    if (start === null) return;
    const one = low + start * (high - low), other = low + place(event) * (high - low), far = Math.abs(start - place(event)) > 0.01;
    start = null;
    chosen.style.display = "none";
    if (far) show(Math.min(one, other), Math.max(one, other));
  };
  canvas.addEventListener("pointerup", end);
  canvas.addEventListener("pointerleave", end);
  name();
  draw();
  new ResizeObserver(() => { name(); draw(); }).observe(part("strips"));
  window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
  window.addEventListener("beforeprint", draw);
  document.documentElement.dataset.ready = "yes";
})();
