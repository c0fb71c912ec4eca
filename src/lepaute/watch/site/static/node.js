// The evolution of each factor of a node: values, fluctuation interval, events; by job, by window, as p-values, raw.
"use strict";
document.addEventListener("DOMContentLoaded", () => {
  const data = window.lepaute, choice = document.getElementById("factor"), output = document.getElementById("point");
  const plot = document.getElementById("evolution"), names = [...new Set(data.series.map((each) => each.factor))];
  const asked = decodeURIComponent(window.location.hash.slice(1));
  // The factor that was asked for, or that regressed, or that stood out most in its last ten jobs.
  const least = (name) => Math.min(...data.series.filter((each) => each.factor === name).flatMap((each) => each.p.slice(-10).map((p) => (p === null ? 1 : p))));
  let factor = names.includes(asked) ? asked : names.includes(data.regressed) ? data.regressed : names.slice().sort((one, other) => least(one) - least(other))[0];
  let view = "single", rows = [], at = null, running = null;
  for (const name of names) choice.append(new Option(data.series.find((each) => each.factor === name).title, name, name === factor, name === factor));
  const EXPLAINED = {
    single: "Band: where 99.99 % of the next jobs would lie if nothing had changed, from the jobs before.",
    window: "Means of several jobs in a row, with the band for such a mean: slow and small changes show here first.",
    chance: "p-value of each job. If nothing had changed, 99.99 % of them would lie above the line.",
    raw: "Every value, also of jobs that are logged as outliers and of other ways of measuring (shapes).",
  };
  function rowsOf(series) {
    const mean = view === "window", lows = series.low ? (mean ? series.lowMean : series.low) : [];
    let band = 0; // a band ends where there is no interval
    return series.time.map((time, place) => {
      const archive = series.archives[series.archive[place]], code = mean ? series.codeMean[place] : series.code[place];
      if (place && lows[place] === null) band += 1;
      return {
        time: time * 1000, cpu: series.cpu < 0 ? "node" : `CPU ${series.cpu}`, code,
        value: series.value ? (mean ? series.mean[place] : series.value[place]) : null,
        low: series.low ? (mean ? series.lowMean[place] : series.low[place]) : null,
        high: series.high ? (mean ? series.highMean[place] : series.high[place]) : null,
        p: mean ? series.pMean[place] : series.p[place],
        band, stratum: String(series.stratum[place] + 1), job: series.job.length ? series.job[place] : archive, archive,
        meaning: site.CODES[code][0],
      };
    });
  }
  // Of the values: the intervals after few jobs are so wide that nothing else could be seen.
  function range() {
    const values = rows.map((row) => row.value).filter((value) => value !== null);
    const low = Math.min(...values), high = Math.max(...values), room = 0.4 * (high - low) || 0.01 * Math.abs(high) || 1;
    return [low - room, high + room];
  }
  function spec(series) {
    const times = rows.map((row) => row.time), first = Math.min(...times), last = Math.max(...times, first + 86400000, (data.last + 1) * 86400000);
    const width = Math.max(220, plot.clientWidth - 90), own = data.events.map((event, place) => ({ ...event, time: event.day * 86400000, name: site.letter(place) }));
    const events = own.filter((event) => event.time >= first && event.time <= last + 86400000);
    // A letter, and the reason where there is room for it up to the next line: the list below has it.
    events.forEach((event, at) => {
      const until = at + 1 < events.length ? events[at + 1].time : last, room = Math.floor(((until - event.time) / (last - first)) * (width / 6)) - 3;
      event.label = event.text.length > room ? event.name : `${event.name} ${event.text}`;
    });
    const kind = { field: "kind", legend: null, scale: { domain: ["platform", "protocol"], range: [site.style("--platform"), site.style("--protocol")] } };
    const dash = { field: "kind", legend: null, scale: { domain: ["platform", "protocol"], range: [[1, 0], [5, 3]] } };
    const ticks = Math.max(4, Math.min(8, Math.floor(plot.clientWidth / 120)));
    const x = { field: "time", type: "temporal", title: null, scale: { type: "utc", domain: [first, last] }, axis: { format: "%Y-%m-%d", tickCount: ticks, labelOverlap: true } };
    const chances = view === "chance" || !series[0].value;
    const y = chances
      ? { field: "p", type: "quantitative", title: "p-value", scale: { type: "log", domainMax: 1 }, axis: { format: "~e" } }
      : { field: "value", type: "quantitative", title: series[0].label, scale: { zero: false, domain: range(), nice: true } };
    const used = [...new Set(rows.map((row) => row.code))];
    const layers = [];
    if (!chances && view !== "raw") layers.push({
      mark: { type: "area", clip: true, opacity: 0.22, color: site.style("--blue"), interpolate: "step-after" },
      encoding: { x, y: { ...y, field: "low" }, y2: { field: "high" }, detail: [{ field: "stratum" }, { field: "band" }] },
      transform: [{ filter: "datum.low !== null" }],
    });
    if (chances) layers.push({ data: { values: [{ level: 0.0001 }] }, mark: { type: "rule", strokeDash: [4, 3] }, encoding: { y: { datum: 0.0001 } } });
    layers.push({
      name: "points", mark: { type: "point", filled: true, size: 36, opacity: 1 }, params: [{ name: "zoom", select: "interval", bind: "scales" }],
      transform: [{ filter: chances ? "datum.p !== null" : "datum.value !== null" }],
      encoding: {
        x, y, color: { field: "code", scale: { domain: used, range: used.map(site.colour) }, legend: null },
        ...(view === "raw" ? { shape: { field: "stratum", legend: null } } : {}),
        tooltip: [{ field: "time", type: "temporal", format: "%Y-%m-%d %H:%M", title: "started" }, { field: "cpu" }, { field: "value", format: ".4~r", title: series[0].unit || "value" }, { field: "p", format: ".2~g" },
                  { field: "meaning" }, { field: "job" }, { field: "archive" }],
      },
    });
    const tooltip = [{ field: "text", title: "event" }, { field: "kind" }, { field: "nodes" }], ofEvent = { x, tooltip, href: { field: "page" } };
    if (events.length) layers.push(
      { data: { values: events }, mark: { type: "rule", size: 1.5 }, encoding: { ...ofEvent, color: kind, strokeDash: dash } },
      { data: { values: events }, mark: { type: "text", align: "left", baseline: "top", dx: 4, fontSize: 11 }, encoding: { ...ofEvent, y: { value: 3 }, text: { field: "label" }, color: kind } },
    );
    return {
      data: { values: rows }, facet: { row: { field: "cpu", title: null, header: { labelColor: site.style("--ink"), labelOrient: "top", labelAnchor: "start" } } },
      spec: { width, height: 230, layer: layers, resolve: { scale: { color: "independent", strokeDash: "independent" } } },
    };
  }
  async function draw() {
    const series = data.series.filter((each) => each.factor === factor);
    const window_ = series[0].window, vector = !series[0].value;
    if (vector && view !== "chance") view = "chance";
    if (!window_ && view === "window") view = "single";
    rows = series.flatMap(rowsOf);
    at = null;
    for (const button of document.querySelectorAll("[data-view]")) {
      const kind = button.dataset.view;
      button.setAttribute("aria-pressed", String(kind === view));
      button.disabled = (vector && kind !== "chance") || (kind === "window" && !window_);
      if (kind === "window" && window_) button.textContent = `mean of ${window_} jobs`;
    }
    const used = new Set(rows.map((row) => row.code)), held = view === "single" && used.has("R");
    document.getElementById("explained").textContent = `${EXPLAINED[view]}${held ? " After the change it stays as it was before." : ""}`;
    site.legend(document.getElementById("legend"), used);
    history.replaceState(null, "", `#${encodeURIComponent(factor)}`);
    if (running) running.finalize();
    running = await site.embed("#evolution", spec(series));
    running.view.addEventListener("click", (_event, item) => { if (item && item.datum && item.datum.job !== undefined) tell(item.datum); });
    plot.dataset.drawn = `${factor} ${view}`;
  }
  function tell(row) {
    const { unit } = data.series.find((each) => each.factor === factor), interval = row.low === null ? "" : ` [${site.short(row.low)}, ${site.short(row.high)}]`;
    const value = row.value === null ? "" : ` ${site.short(row.value, unit)}`;
    const p = row.p === null ? "" : `, p ${row.p}`;
    output.textContent = `${new Date(row.time).toISOString().slice(0, 16).replace("T", " ")} UTC, ${row.cpu}:${value}${interval}${p}; ${row.meaning}; job ${row.job}${row.archive ? `, archive ${row.archive}` : ""}`;
  }
  choice.addEventListener("change", () => { factor = choice.value; draw(); });
  for (const button of document.querySelectorAll("[data-view]")) button.addEventListener("click", () => { view = button.dataset.view; draw(); });
  plot.addEventListener("keydown", (event) => {
    if (!["ArrowLeft", "ArrowRight", "Home", "End"].includes(event.key)) return;
    event.preventDefault();
    const end = rows.length - 1;
    at = event.key === "Home" ? 0 : event.key === "End" || at === null ? end : Math.max(0, Math.min(end, at + (event.key === "ArrowRight" ? 1 : -1)));
    tell(rows[at]);
  });
  let late = null;
  window.addEventListener("resize", () => { clearTimeout(late); late = setTimeout(draw, 150); });
  site.onTheme(draw);
  draw();
});
