"use strict";
// Gantt charts: what a bar is, by pointer and keyboard, and what its colour stands for.
(function () {
  const { all } = gpuctl;
  const DRAWN = 560, OTHERS = 5;

  const number = (value) => value.toLocaleString("en", { maximumFractionDigits: 2 });
  const lasting = (s) => {
    const [unit, size] = [["d", 86400], ["h", 3600], ["min", 60]].find(([, one]) => s >= one) || ["s", 1];
    return Number((s / size).toPrecision(3)).toLocaleString("en") + " " + unit;
  };

  function element(name, attributes) {
    const made = document.createElementNS("http://www.w3.org/2000/svg", name);
    Object.entries(attributes).forEach(([key, value]) => made.setAttribute(key, value));
    return made;
  }

  function start(figure, data) {
    const svg = figure.querySelector("svg.chart"), readout = figure.querySelector(".readout");
    const hint = "Hover over a bar for details, or use arrow keys: \u2190 \u2192 along a node, \u2191 \u2193 between nodes.";
    const marks = element("g", { class: "marks", "aria-hidden": "true" });
    svg.append(marks);
    readout.textContent = hint;
    const bars = data.bars.filter((bar) => bar.length > 12).map((bar) => {
      const [panel, row, , job, user, queue, gpus, counted, beside, from, to, , ...parts] = bar;
      const [left, , width] = data.panels[panel][0];
      const across = (t) => left + (Math.min(Math.max(t, 0), data.span[1]) / data.span[1]) * width;
      const rects = [];
      for (let k = 0; k < parts.length; k += 2) rects.push([across(from), parts[k], Math.max(across(to) - across(from), width / 800), parts[k + 1]]);
      return { panel, row, job, user, queue, gpus, counted, beside, from, to, rects };
    });
    // Nodes from the top to the bottom, bars of each in order of time.
    const rows = data.panels.flatMap(([, , nodes], panel) => nodes.map((_, row) => bars.filter((bar) => bar.panel === panel && bar.row === row).sort((a, b) => a.from - b.from)));
    const lines = rows.filter((row) => row.length);
    let focus = null;

    const named = (k) => (k < 0 ? "" : data.names[k]);
    const moment = (t) => {
      if (!data.dated) return lasting(data.start + t);
      if (data.start + 1000 * t < 315532800000) return lasting(data.start / 1000 + t);
      return new Date(data.start + 1000 * t).toISOString().slice(0, 16).replace("T", " ");
    };
    function tell(bar) {
      const [, policy, nodes] = data.panels[bar.panel];
      const shared = bar.counted < 0.995 * bar.gpus ? " (" + number(bar.counted) + " counted, in turns)" : "";
      const parts = [
        policy + ", " + named(nodes[bar.row][0]) + ": " + named(bar.job),
        number(bar.gpus) + (bar.gpus === 1 ? " GPU" : " GPUs") + shared,
        bar.beside < 0 ? "" : "packed with " + named(bar.beside),
        bar.user < 0 ? "" : "user " + named(bar.user),
        bar.queue < 0 ? "" : "queue " + named(bar.queue),
        moment(bar.from) + " to " + moment(bar.to) + (data.dated ? " UTC" : "") + ", " + lasting(bar.to - bar.from),
      ];
      return parts.filter(Boolean).join(" \u00b7 ");
    }
    function show(bar) {
      focus = bar;
      marks.replaceChildren();
      if (!bar) { readout.textContent = hint; return; }
      const factor = svg.viewBox.baseVal.width / DRAWN;
      // all that the job has in this panel
      bars.filter((one) => one.job === bar.job && one.panel === bar.panel).forEach((one) => one.rects.forEach(([x, y, width, height]) => {
        marks.append(element("rect", { x: x * factor, y: y, width: width * factor, height: height }));
      }));
      readout.textContent = tell(bar);
    }
    function at(event) {
      const box = svg.getBoundingClientRect(), view = svg.viewBox.baseVal;
      const x = ((event.clientX - box.left) / box.width) * DRAWN, y = ((event.clientY - box.top) / box.height) * view.height;
      // the last one lies on top
      return bars.filter((bar) => bar.rects.some(([a, top, width, height]) => x >= a - 1 && x <= a + width + 1 && y >= top && y <= top + height)).pop() || null;
    }
    svg.addEventListener("pointermove", (event) => { const bar = at(event); if (bar !== focus && (bar || document.activeElement !== svg)) show(bar); });
    svg.addEventListener("pointerdown", (event) => show(at(event)));
    svg.addEventListener("pointerleave", () => { if (document.activeElement !== svg) show(null); });
    svg.addEventListener("blur", () => show(null));
    svg.addEventListener("keydown", (event) => {
      const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key], turn = { ArrowUp: -1, ArrowDown: 1 }[event.key];
      if (!lines.length || !(step || turn || ["Home", "End", "Escape"].includes(event.key))) return;
      event.preventDefault();
      if (event.key === "Escape") { show(null); return; }
      const place = focus ? lines.findIndex((row) => row.includes(focus)) : -1;
      if (place < 0) { show(lines[0][0]); return; }
      const line = lines[place], last = line.length - 1;
      if (turn) {
        const other = lines[Math.min(Math.max(place + turn, 0), lines.length - 1)];
        show(other.reduce((best, bar) => (Math.abs(bar.from - focus.from) < Math.abs(best.from - focus.from) ? bar : best), other[0]));
      } else show(line[event.key === "Home" ? 0 : event.key === "End" ? last : Math.min(Math.max(line.indexOf(focus) + step, 0), last)]);
    });

    if (data.ways.length > 1) choose(figure, svg, data.ways);
  }

  // What the colours stand for.
  function choose(figure, svg, ways) {
    const box = document.createElement("div"), list = document.createElement("ul");
    box.className = "ways";
    box.setAttribute("role", "group");
    box.setAttribute("aria-label", "Colour of the bars");
    box.append("Coloured by ");
    const buttons = ways.map(([way, colors], digit) => {
      const button = document.createElement("button");
      Object.assign(button, { type: "button", textContent: way });
      button.addEventListener("click", () => {
        buttons.forEach((one) => one.setAttribute("aria-pressed", String(one === button)));
        const drawn = all("[data-c] path", svg);
        drawn.forEach((path) => path.setAttribute("fill", "var(--s" + path.parentElement.dataset.c[digit] + ")"));
        const others = drawn.some((path) => path.parentElement.dataset.c[digit] === String(OTHERS)) ? [["others", OTHERS]] : [];
        // of jobs there are more than colours
        list.replaceChildren(...(digit ? [...colors, ...others] : []).map(([name, s]) => {
          const entry = document.createElement("li"), swatch = element("svg", { class: "swatch", viewBox: "6 0 12 12", "aria-hidden": "true" });
          swatch.append(element("path", { d: "M6 1H18V11H6z", fill: "var(--s" + s + ")" }));
          entry.append(swatch, name);
          return entry;
        }));
      });
      button.setAttribute("aria-pressed", String(digit === 0));
      box.append(button);
      return button;
    });
    box.append(list);
    svg.before(box);
  }

  all(".figure").forEach((figure) => {
    const island = figure.querySelector(".values");
    if (island && figure.querySelector(".readout")) start(figure, JSON.parse(island.textContent));
  });
})();
