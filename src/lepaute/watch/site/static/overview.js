// A row a CPU, a point a job: coloured by its test, by that of the mean of several, or by its value; events as lines.
// Hundreds of thousands of points: a canvas, drawn here.
"use strict";
document.addEventListener("DOMContentLoaded", () => {
  const data = window.lepaute, canvas = document.getElementById("overview"), output = document.getElementById("point");
  const pen = canvas.getContext("2d"), LABELS = 96, AXIS = 36;
  const rowHeight = data.machines.length > 60 ? 7 : 14;
  let first = Infinity, last = -Infinity, view = "jobs";
  for (const machine of data.machines) {
    for (let job = 1; job < machine.day.length; job++) machine.day[job] += machine.day[job - 1]; // differences
    first = Math.min(first, machine.day[0]);
    last = Math.max(last, machine.day[machine.day.length - 1]);
  }
  const sorted = data.machines.flatMap((machine) => machine.value.filter((value) => value !== null)).sort((one, other) => one - other);
  const low = sorted[Math.floor(0.01 * sorted.length)], high = sorted[Math.ceil(0.99 * sorted.length) - 1];
  // The paths of the view by their colours: letters of tests, or steps of the value between the first and last hundredth.
  function group(machine, job) {
    if (view === "values") return machine.value[job] === null ? machine.code[job] : Math.max(0, Math.min(site.STEPS - 1, Math.round(((machine.value[job] - low) / (high - low || 1)) * (site.STEPS - 1))));
    return (view === "means" ? machine.codeM : machine.code)[job];
  }
  const whole = [first - 0.5, last + 1.5];
  let shown = whole.slice(), at = null; // at: the machine and the job that are pointed at

  const x = (day) => LABELS + ((day - shown[0]) / (shown[1] - shown[0])) * (canvas.clientWidth - LABELS - 4);
  const name = (machine) => machine.node + (machine.cpu < 0 ? "" : `:${machine.cpu}`);

  function draw() {
    const ratio = window.devicePixelRatio || 1, width = canvas.parentElement.clientWidth;
    const height = AXIS + data.machines.length * rowHeight + 2;
    canvas.style.width = `${width}px`;
    canvas.style.height = `${height}px`;
    canvas.width = width * ratio;
    canvas.height = height * ratio;
    pen.setTransform(ratio, 0, 0, ratio, 0, 0);
    pen.clearRect(0, 0, width, height);
    pen.font = `${Math.min(11, rowHeight + 3)}px system-ui, sans-serif`;
    pen.textBaseline = "middle";
    const ink = site.style("--ink"), size = Math.max(1.5, Math.min(rowHeight - 2, x(1) - x(0) - 0.5));
    const every = Math.max(1, Math.ceil(11 / rowHeight)), paths = new Map();
    data.machines.forEach((machine, row) => {
      const top = AXIS + row * rowHeight + (rowHeight - Math.min(size, rowHeight - 1)) / 2;
      if (row % every === 0) {
        pen.fillStyle = ink;
        pen.fillText(name(machine), 4, AXIS + (row + 0.5) * rowHeight, LABELS - 8);
      }
      machine.day.forEach((day, job) => {
        if (day < shown[0] || day > shown[1]) return;
        const code = group(machine, job);
        if (!paths.has(code)) paths.set(code, new Path2D());
        paths.get(code).rect(x(day), top, size, Math.min(size, rowHeight - 1));
      });
    });
    for (const [code, path] of paths) {
      pen.fillStyle = typeof code === "number" ? site.step(code) : site.colour(code);
      pen.fill(path);
    }
    pen.fillStyle = ink;
    const ticks = Math.max(2, Math.min(8, Math.floor((width - LABELS) / 110))), step = (shown[1] - shown[0]) / ticks;
    for (let tick = 0; tick < ticks; tick++) pen.fillText(site.date(Math.round(shown[0] + tick * step)), x(Math.round(shown[0] + tick * step)), 10);
    let free = -Infinity; // letters that would cover each other are left out
    pen.textAlign = "center";
    pen.lineWidth = 1.5;
    data.events.forEach((event, place) => {
      if (event.day < shown[0] || event.day > shown[1]) return;
      const at = x(event.day) - 1;
      pen.strokeStyle = pen.fillStyle = site.style(`--${event.kind}`);
      pen.setLineDash(event.kind === "platform" ? [] : [4, 3]);
      pen.beginPath();
      pen.moveTo(at, AXIS - 7);
      pen.lineTo(at, height);
      pen.stroke();
      if (at > free) pen.fillText(site.letter(place), at, AXIS - 14);
      if (at > free) free = at + 12;
    });
    pen.textAlign = "start";
    pen.lineWidth = 1;
    pen.setLineDash([]);
    pen.strokeStyle = ink;
    if (at !== null) {
      pen.lineWidth = 2;
      pen.strokeRect(x(data.machines[at[0]].day[at[1]]) - 2, AXIS + at[0] * rowHeight, size + 4, rowHeight);
      pen.lineWidth = 1;
    }
    site.legend(document.getElementById("legend"), new Set([...paths.keys()].filter((code) => typeof code === "string")), view === "values" && sorted.length ? [site.short(low), site.short(high, data.unit)] : null);
    canvas.dataset.drawn = view;
  }

  function tell() {
    if (at === null) return;
    const machine = data.machines[at[0]], job = at[1], page = data.pages[machine.node], link = document.createElement("a");
    link.href = page;
    link.textContent = name(machine);
    const value = machine.value.length ? `, ${site.short(machine.value[job], data.unit)}` : "";
    const chance = view === "means" ? machine.pM[job] : machine.p[job], code = view === "means" ? machine.codeM[job] : machine.code[job];
    const p = chance === null || chance === undefined ? "" : `, p ${chance}`;
    const near = data.events.filter((event) => event.day === machine.day[job]).map((event) => `; event: ${event.text}`).join("");
    output.replaceChildren(link, ` ${site.date(machine.day[job])}${value}${p}: ${site.CODES[code][0]}${near}`);
  }

  function nearest(machine, day) {
    let best = 0;
    machine.day.forEach((each, job) => { if (Math.abs(each - day) < Math.abs(machine.day[best] - day)) best = job; });
    return best;
  }

  function show(range, pressed) {
    shown = [Math.max(whole[0], range[0]), Math.min(whole[1], range[1])];
    for (const button of document.querySelectorAll("[data-days]")) button.setAttribute("aria-pressed", String(button === pressed));
    draw();
  }

  function zoom(factor, centre) {
    if ((shown[1] - shown[0]) * factor < 5 && factor < 1) return;
    show([centre - (centre - shown[0]) * factor, centre + (shown[1] - centre) * factor], null);
  }

  function place(event) {
    const box = canvas.getBoundingClientRect(), row = Math.floor((event.clientY - box.top - AXIS) / rowHeight);
    const day = shown[0] + ((event.clientX - box.left - LABELS) / (box.width - LABELS - 4)) * (shown[1] - shown[0]);
    return [row, day];
  }

  let waiting = false;
  canvas.addEventListener("pointermove", (event) => {
    const [row, day] = place(event);
    if (row < 0 || row >= data.machines.length || waiting) return;
    at = [row, nearest(data.machines[row], day - 0.4)];
    tell();
  });
  canvas.addEventListener("click", (event) => {
    const [row] = place(event);
    if (row >= 0 && row < data.machines.length) open(data.machines[row]);
  });
  canvas.addEventListener("wheel", (event) => {
    if (!event.ctrlKey && !event.shiftKey) return; // the page scrolls
    event.preventDefault();
    zoom(event.deltaY < 0 || event.deltaX < 0 ? 0.8 : 1.25, place(event)[1]);
  }, { passive: false });
  function open(machine) {
    window.location.href = `${data.pages[machine.node]}#${encodeURIComponent(data.name)}`;
  }
  canvas.addEventListener("keydown", (event) => {
    const moves = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] };
    if (event.key === "Enter" && at !== null) open(data.machines[at[0]]);
    else if (event.key === "+" || event.key === "-") zoom(event.key === "+" ? 0.7 : 1.4, at === null ? (shown[0] + shown[1]) / 2 : data.machines[at[0]].day[at[1]]);
    else if (event.key in moves) {
      event.preventDefault();
      if (at === null) at = [0, data.machines[0].day.length - 1];
      else {
        const [down, right] = moves[event.key], row = Math.max(0, Math.min(data.machines.length - 1, at[0] + down));
        const job = down ? nearest(data.machines[row], data.machines[at[0]].day[at[1]]) : at[1] + right;
        at = [row, Math.max(0, Math.min(data.machines[row].day.length - 1, job))];
      }
      draw();
      tell();
      const view = canvas.parentElement, top = at[0] * rowHeight;
      if (top < view.scrollTop || top > view.scrollTop + view.clientHeight - 3 * AXIS) view.scrollTop = top - view.clientHeight / 2;
    }
  });
  for (const button of document.querySelectorAll("[data-days]")) {
    const days = Number(button.dataset.days);
    button.addEventListener("click", () => show(days ? [whole[1] - days, whole[1]] : whole, button));
  }
  for (const button of document.querySelectorAll("[data-view]")) button.addEventListener("click", () => {
    view = button.dataset.view;
    for (const each of document.querySelectorAll("[data-view]")) each.setAttribute("aria-pressed", String(each === button));
    draw();
  });
  window.addEventListener("resize", draw);
  site.onTheme(draw);
  draw();
});
