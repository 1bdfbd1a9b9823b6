"use strict";
// Draws Vega over the still pictures and lets a reader ask them. The specifications and their data come from the JSON
// beside this script; text of a run is only ever put into the page as text.
(function () {
  const source = document.getElementById("charts");
  if (!source || !window.vegaEmbed) return;
  const { config, datasets, charts } = JSON.parse(source.textContent);
  const narrow = window.matchMedia("(max-width: 44rem)");
  const open = new Map();
  let shown = null;

  const rows = {};
  const rowsOf = (name) => {
    if (!rows[name]) {
      const columns = Object.entries(datasets[name]);
      const count = columns.length ? columns[0][1].length : 0;
      rows[name] = Array.from({ length: count }, (_, at) => Object.fromEntries(columns.map(([key, cells]) => [key, cells[at]])));
    }
    return rows[name];
  };
  const spell = (value) => value === null ? "not finite" : String(Number(value.toPrecision(4))).replace("-", "\u2212");
  const element = (tag, name, text) => {
    const made = document.createElement(tag);
    made.className = name;
    if (text !== undefined) made.textContent = text;
    return made;
  };

  // One box for the words of whatever is pointed at.
  const tip = element("div", "tip");
  tip.setAttribute("role", "status");
  tip.hidden = true;
  document.body.append(tip);
  const hide = () => { tip.hidden = true; };
  const tell = (lines, x, y) => {
    tip.replaceChildren(...lines.map((line, at) => element("div", at ? "" : "head", line)));
    tip.hidden = false;
    const box = tip.getBoundingClientRect();
    const left = x + 14 + box.width > window.innerWidth - 8 ? x - 14 - box.width : x + 14;
    tip.style.left = `${Math.max(8, Math.min(left, window.innerWidth - 8 - box.width))}px`;
    tip.style.top = `${Math.max(8, y + 14 + box.height > window.innerHeight - 8 ? y - 14 - box.height : y + 14)}px`;
  };

  // The inner ground of a chart, in pixels of the window.
  const ground = (chart) => chart.live.querySelector(".role-frame.root > g > path.background").getBoundingClientRect();

  // Tasks: buttons that show and hide the rows, columns, panels and episodes of tasks.
  const bars = [...document.querySelectorAll(".tasks")];
  const buttons = bars.flatMap((bar) => [...bar.querySelectorAll("button")]);
  const places = [...new Set(buttons.map((button) => Number(button.dataset.task)))];
  const chosen = new Set(places);

  // Panels of tasks that are not shown leave the rest their room; the first of a row carries the axis of the seeds.
  const hidden = () => new Set(buttons.filter((button) => !chosen.has(Number(button.dataset.task))).map((button) => button.textContent));
  const rowsOfPanels = (spec) => (spec.vconcat ?? (spec.hconcat ? [spec] : [])).map((row) => row.hconcat ?? [row]);
  const hasPanels = (spec) => rowsOfPanels(spec).length > 0;
  const keepPanels = (spec) => {
    const rows = rowsOfPanels(spec);
    const gone = hidden();
    const kept = rows.flat().filter((panel) => !gone.has(panel.title?.text));
    if (!kept.length || kept.length === rows.flat().length) return;
    const across = rows[0].length;
    const gap = spec.spacing ?? 0;
    const whole = rows[0].reduce((sum, panel) => sum + panel.width + gap, -gap);
    const axis = (panel) => panel.layer.find((part) => part.encoding.y).encoding.y;
    const [first, other] = [axis(rows[0][0]), across > 1 ? axis(rows[0][1]) : null];
    const inRow = Math.min(kept.length, across);
    kept.forEach((panel, at) => {
      panel.width = Math.floor((whole - gap * (inRow - 1)) / inRow);
      for (const part of panel.layer)
        if (part.encoding.y) part.encoding.y = structuredClone(at % across && other ? other : first);
    });
    const rest = [];
    for (let at = 0; at < kept.length; at += across) rest.push({ hconcat: kept.slice(at, at + across), spacing: gap });
    delete spec.hconcat;
    delete spec.vconcat;
    if (rest.length === 1) spec.hconcat = kept;
    else spec.vconcat = rest;
  };

  class Marks {
    constructor(chart) {
      this.chart = chart;
      this.at = -1;
    }
    items() {
      const told = new Map();
      for (const node of this.chart.live.querySelectorAll("svg path, svg rect"))
        if (node.__data__?.tooltip) told.set(node.__data__.tooltip, node);
      const found = [...told.values()];
      const places = new Map(found.map((node) => [node, node.getBoundingClientRect()]));
      return found.sort((a, b) => Math.round((places.get(a).y - places.get(b).y) / 4) || places.get(a).x - places.get(b).x);
    }
    key(name) {
      const turn = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[name];
      const items = this.items();
      if (!turn || !items.length) return false;
      this.at = Math.max(0, Math.min(items.length - 1, this.at + turn));
      const box = items[this.at].getBoundingClientRect();
      this.chart.ring(box);
      tell(items[this.at].__data__.tooltip.split("\n"), box.right, box.bottom);
      return true;
    }
    rest() { this.at = -1; }
  }

  class Curve {
    constructor(chart, form) {
      this.chart = chart;
      this.words = form.spec.usermeta;
      this.rows = rowsOf(form.data[0]);
      this.steps = [...new Set(this.rows.map((row) => row.step))].sort((a, b) => a - b);
      this.span = [...this.words.ends];
      this.at = null;
      const start = { x: null };
      const plot = chart.plot;
      plot.classList.add("curve");
      this.rule = element("div", "rule");
      this.brush = element("div", "brush");
      this.rule.hidden = this.brush.hidden = true;
      chart.over.append(this.rule, this.brush);
      const tools = element("div", "tools");
      for (const [sign, name, act] of [["+", "Look closer", () => this.zoom(0.5)], ["\u2212", "Look from farther", () => this.zoom(2)],
        ["All", "Show all steps", () => this.look(...this.words.ends)]]) {
        const button = element("button", "", sign);
        button.type = "button";
        button.tabIndex = -1;
        button.title = name;
        button.setAttribute("aria-label", name);
        button.addEventListener("click", act);
        tools.append(button);
      }
      chart.over.append(tools);
      chart.listen("pointermove", (event) => {
        if (start.x !== null) this.stretch(start.x, event.clientX);
        else if (event.target.closest(".tools")) this.rest();
        else this.read(this.nearest(event.clientX), event.clientY);
      });
      chart.listen("pointerdown", (event) => {
        if (event.button === 0 && !event.target.closest(".tools")) start.x = event.clientX;
      });
      chart.listen("pointerup", (event) => {
        if (start.x !== null && Math.abs(event.clientX - start.x) > 6) {
          const ends = [this.step(start.x), this.step(event.clientX)].sort((a, b) => a - b);
          this.look(...ends);
        }
        start.x = null;
        this.brush.hidden = true;
      });
      for (const name of ["pointerleave", "pointercancel"])
        chart.listen(name, () => { start.x = null; this.brush.hidden = true; this.rest(); });
      chart.listen("dblclick", (event) => { if (!event.target.closest(".tools")) this.look(...this.words.ends); });
      chart.listen("wheel", (event) => {
        // A plain wheel scrolls the page, as everywhere.
        if (!event.ctrlKey && !event.metaKey) return;
        event.preventDefault();
        this.zoom(event.deltaY < 0 ? 0.8 : 1.25, this.step(event.clientX));
      }, { passive: false });
    }
    step(x) {
      const box = ground(this.chart);
      const share = Math.max(0, Math.min(1, (x - box.left) / box.width));
      return this.span[0] + share * (this.span[1] - this.span[0]);
    }
    nearest(x) {
      const wanted = this.step(x);
      const visible = this.steps.filter((step) => step >= this.span[0] && step <= this.span[1]);
      return visible.reduce((best, step) => (best === null || Math.abs(step - wanted) < Math.abs(best - wanted) ? step : best), null);
    }
    read(step, y) {
      if (step === null) { this.rest(); return; }
      this.at = step;
      const box = ground(this.chart);
      const origin = this.chart.plot.getBoundingClientRect();
      const x = box.left + ((step - this.span[0]) / (this.span[1] - this.span[0])) * box.width;
      const scale = this.chart.view.scale("y");
      const height = scale.range()[0];
      const lines = [`${this.words.x} ${step}`];
      const dots = [];
      for (const row of this.rows.filter((found) => found.step === step)) {
        for (const [field, name] of this.words.fields) {
          const label = row.curve ? `${row.curve}, ${name}` : name;
          if (row[field] !== null || field === "value") lines.push(`${label}: ${spell(row[field])}`);
          if (row[field] === null) continue;
          const dot = element("div", "dot");
          dot.style.left = `${x - origin.left}px`;
          dot.style.top = `${box.top - origin.top + (scale(row[field]) / height) * box.height}px`;
          dot.style.background = this.words.hues[row.curve ?? ""];
          dots.push(dot);
        }
        if (row.line) lines.push(`line ${row.line} of the log`);
      }
      this.chart.dots.replaceChildren(...dots);
      this.rule.style.left = `${x - origin.left}px`;
      this.rule.style.top = `${box.top - origin.top}px`;
      this.rule.style.height = `${box.height}px`;
      this.rule.hidden = false;
      tell(lines, x, y ?? box.top);
    }
    stretch(from, to) {
      const box = ground(this.chart);
      const origin = this.chart.plot.getBoundingClientRect();
      const [left, right] = [from, to].map((x) => Math.max(box.left, Math.min(box.right, x))).sort((a, b) => a - b);
      Object.assign(this.brush.style, { left: `${left - origin.left}px`, width: `${right - left}px`,
        top: `${box.top - origin.top}px`, height: `${box.height}px` });
      this.brush.hidden = false;
      this.rest();
    }
    look(first, last) {
      const [low, high] = this.words.ends;
      const least = Math.min(2, high - low);
      const middle = (first + last) / 2;
      const width = Math.min(high - low, Math.max(least, last - first));
      first = Math.max(low, Math.min(high - width, middle - width / 2));
      this.span = [first, first + width];
      this.chart.plot.classList.toggle("zoomed", width < high - low);
      this.rest();
      this.chart.view.signal("first", this.span[0]).signal("last", this.span[1]).runAsync();
    }
    zoom(factor, around) {
      const [first, last] = this.span;
      const center = around ?? this.at ?? (first + last) / 2;
      this.look(center - (center - first) * factor, center + (last - center) * factor);
    }
    key(name, shift) {
      const visible = this.steps.filter((step) => step >= this.span[0] && step <= this.span[1]);
      const turn = { ArrowRight: 1, ArrowLeft: -1 }[name];
      if (turn && shift) {
        const move = turn * (this.span[1] - this.span[0]) / 4;
        this.look(this.span[0] + move, this.span[1] + move);
      } else if (turn && visible.length) {
        const at = visible.indexOf(this.at);
        this.read(visible[at < 0 ? (turn > 0 ? 0 : visible.length - 1) : Math.max(0, Math.min(visible.length - 1, at + turn))]);
      } else if (name === "+" || name === "=") this.zoom(0.5);
      else if (name === "-") this.zoom(2);
      else if (name === "0") this.look(...this.words.ends);
      else return false;
      return true;
    }
    rest() {
      this.at = null;
      this.rule.hidden = true;
      this.chart.dots.replaceChildren();
      hide();
    }
  }

  class Chart {
    constructor(plot) {
      this.plot = plot;
      this.live = plot.querySelector(".live");
      this.over = plot.querySelector(".over");
      this.ears = new AbortController();
    }
    listen(name, act, options) {
      this.plot.addEventListener(name, act, { ...options, signal: this.ears.signal });
    }
    ring(box) {
      const origin = this.plot.getBoundingClientRect();
      const ring = element("div", "ring");
      Object.assign(ring.style, { left: `${box.left - origin.left - 4}px`, top: `${box.top - origin.top - 4}px`,
        width: `${box.width + 8}px`, height: `${box.height + 8}px` });
      this.dots.replaceChildren(ring);
    }
    async draw() {
      const forms = charts[this.plot.dataset.chart];
      const form = (narrow.matches && forms.narrow) || forms.wide;
      const spec = structuredClone(form.spec);
      const isCurve = Boolean(spec.usermeta);
      keepPanels(spec);
      spec.config = structuredClone(config);
      spec.datasets = Object.fromEntries(form.data.map((name) => [name, structuredClone(rowsOf(name))]));
      for (const signal of spec.params ?? []) if (signal.name === "shown" && shown) signal.value = shown;
      const drawn = await window.vegaEmbed(this.live, spec, {
        mode: "vega-lite", renderer: "svg", actions: false, ast: true, defaultStyle: false, hover: false,
        tooltip: (_handler, event, _item, value) => {
          if (value) tell(String(value).split("\n"), event.clientX, event.clientY);
          else if (!isCurve) hide();
        },
      });
      this.view = drawn.view;
      this.drawn = drawn;
      this.hasPanels = hasPanels(form.spec);
      this.takesTasks = (spec.params ?? []).some((signal) => signal.name === "shown");
      this.dots = element("div", "dots");
      this.over.replaceChildren(this.dots);
      this.reader = isCurve ? new Curve(this, form) : new Marks(this);
      const picture = this.live.querySelector("svg");
      picture.setAttribute("aria-hidden", "true");
      picture.setAttribute("focusable", "false");
      this.listen("keydown", (event) => {
        if (event.target !== this.plot || event.altKey || event.ctrlKey || event.metaKey) return;
        const done = event.key === "Escape" ? (this.rest(), true) : this.reader.key(event.key, event.shiftKey);
        if (done) event.preventDefault();
      });
      this.listen("blur", () => this.rest());
      this.listen("mouseleave", hide);
      this.plot.setAttribute("role", "application");
      this.plot.setAttribute("aria-roledescription", "chart");
      this.plot.setAttribute("aria-label", this.plot.querySelector("title").textContent);
      this.plot.setAttribute("aria-describedby", isCurve ? "keys-curve" : "keys-marks");
      this.plot.tabIndex = 0;
      this.plot.classList.add("drawn");
    }
    rest() {
      this.reader.rest();
      this.dots.replaceChildren();
      hide();
    }
    close() {
      this.ears.abort();
      this.drawn?.finalize();
      this.plot.classList.remove("drawn", "zoomed");
    }
  }

  const draw = async (plot) => {
    const chart = new Chart(plot);
    open.set(plot, chart);
    try {
      await chart.draw();
    } catch (error) {
      // The still picture stays.
      console.error(`${plot.dataset.chart}: ${error.message}`);
      open.delete(plot);
    }
  };

  const plots = [...document.querySelectorAll(".plot")].filter((plot) => charts[plot.dataset.chart]);
  const watcher = new IntersectionObserver((entries) => {
    for (const entry of entries)
      if (entry.isIntersecting && !open.has(entry.target)) draw(entry.target);
  }, { rootMargin: "600px" });
  const faces = ["400", "500", "600"].map((weight) => document.fonts.load(`${weight} 11px Inter`));
  // Vega measures text before it places it: in a face that is not there yet it would measure another.
  Promise.all(faces).then(() => plots.forEach((plot) => watcher.observe(plot)));
  narrow.addEventListener("change", () => {
    for (const [plot, chart] of [...open])
      if (charts[plot.dataset.chart].narrow) { chart.close(); draw(plot); }
  });
  document.querySelectorAll(".ask").forEach((words) => { words.hidden = false; });

  const show = (pressed) => {
    // The row behind the tasks is the mean, which is always over all of them.
    shown = [...places.filter((place) => chosen.has(place)), places.length];
    for (const button of buttons) button.setAttribute("aria-pressed", String(chosen.has(Number(button.dataset.task))));
    for (const part of document.querySelectorAll("[data-task]:not(button)")) part.hidden = !chosen.has(Number(part.dataset.task));
    for (const words of document.querySelectorAll(".none-left"))
      words.hidden = [...words.parentElement.querySelectorAll("article")].some((script) => !script.closest("[hidden]"));
    for (const bar of bars) {
      const told = bar.querySelector("[role=status]");
      // Every bar says it; only the one that was pressed is read out.
      told.setAttribute("aria-live", bar === pressed ? "polite" : "off");
      told.textContent = chosen.size < places.length
        ? `${chosen.size} of ${places.length} tasks shown; the mean is over all of them.` : "";
    }
    for (const [plot, chart] of [...open]) {
      if (chart.takesTasks) { chart.rest(); chart.view.signal("shown", shown).runAsync(); }
      if (chart.hasPanels) { chart.close(); draw(plot); }
    }
  };
  for (const button of buttons)
    button.addEventListener("click", () => {
      const place = Number(button.dataset.task);
      if (!chosen.delete(place)) chosen.add(place);
      if (!chosen.size) places.forEach((found) => chosen.add(found));
      show(button.closest(".tasks"));
    });
  bars.forEach((bar) => { bar.hidden = false; });
})();
