"use strict";
// Figures: as wide as their column, values at a place, a part of their axis, series on and off.
(function () {
  const { all, panelsOf } = gpuctl;

  // ---- figures: values at the place that is pointed at

  const round = (value) => {
    const size = Math.abs(value);
    return value.toLocaleString("en", { maximumFractionDigits: size >= 100 ? 0 : size >= 10 ? 1 : 2 });
  };
  const place = {
    minutes: (x) => (x < 1 ? round(x * 60) + " s" : x < 60 ? round(x) + " min" : x < 1440 ? round(x / 60) + " h" : round(x / 1440) + " d"),
    share: (x) => round(x) + " %",
    elapsed: (x) => place.minutes(x / 60),
    number: (x) => round(x),
    ratio: (x) => round(x),
    // What is before 1980 counts from a start of the trace's own.
    time: (x) => x < 315532800000 ? "day " + Math.floor(x / 86400000) + " " + new Date(x).toISOString().slice(11, 16) : new Date(x).toISOString().slice(0, 16).replace("T", " ") + " UTC",
  };

  // Figures are drawn for a narrow column; in any other they are stretched, and their letters are not.
  const DRAWN = 560, PHONE = 400;
  const stretched = new WeakMap();
  function stretch(svg) {
    const height = svg.viewBox.baseVal.height, wide = svg.parentElement.clientWidth;
    // A phone shows all of it smaller, with larger letters.
    const factor = wide < PHONE ? 1 : wide / DRAWN;
    if (!wide || stretched.get(svg) === factor) return;
    stretched.set(svg, factor);
    svg.setAttribute("viewBox", `0 0 ${DRAWN * factor} ${height}`);
    all("path", svg).forEach((path) => path.setAttribute("transform", `scale(${factor} 1)`));
    all("text", svg).forEach((label) => {
      label.dataset.x = label.dataset.x || label.getAttribute("x");
      label.setAttribute("x", label.dataset.x * factor);
    });
  }
  const widths = new ResizeObserver((entries) => entries.forEach(({ target }) => all("svg.chart", target).forEach(stretch)));
  all(".figure").forEach((figure) => { all("svg.chart", figure).forEach(stretch); widths.observe(figure); });
  const boxOf = (svg, panel) => panel.box.map((size, i) => (i % 2 ? size : size * (stretched.get(svg) || 1)));

  // What each zoomed figure shows of its axis: [from, to], as far apart as they look.
  const views = new WeakMap();
  const logarithmic = (panel) => panel.scale === "minutes" || panel.scale === "ratio";
  const even = (panel, v) => (logarithmic(panel) ? Math.log(v) : v);
  const whole = (panel) => panel.x.map((v) => even(panel, v));
  function scales(svg, panel, [left, top, width, height] = boxOf(svg, panel)) {
    const log = logarithmic(panel);
    const [a, b] = views.get(svg) || whole(panel);
    const [low, high] = panel.y;
    return {
      value: (x) => { const v = a + ((x - left) / width) * (b - a); return log ? Math.exp(v) : v; },
      across: (v) => left + (((log ? Math.log(v) : v) - a) / (b - a)) * width,
      down: (y) => top + (1 - (y - low) / (high - low)) * height,
    };
  }

  // The last point at or before x: between its points a curve is level.
  function level(curve, x) {
    let low = 0, high = curve.x.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (curve.x[middle] <= x) low = middle + 1; else high = middle;
    }
    return low === 0 ? null : curve.y[low - 1];
  }

  // Nothing is known between the values that were tried.
  function nearest(panel, x) {
    const tried = panel.curves.flatMap((curve) => curve.x);
    return tried.reduce((best, one) => (Math.abs(one - x) < Math.abs(best - x) ? one : best), tried[0]);
  }

  function element(name, attributes) {
    const made = document.createElementNS("http://www.w3.org/2000/svg", name);
    Object.entries(attributes).forEach(([key, value]) => made.setAttribute(key, value));
    return made;
  }

  // ---- figures: a part of the axis, drawn from the same values

  const MINUTE = 6e4, HOUR = 36e5, DAY = 864e5;
  const STEPS = [1, 5, 10, 30, 60, 180, 360, 720, 1440, 2880, 10080, 40320, 131040].map((m) => m * MINUTE);
  const SPANS = [1 / 60, 1 / 30, 1 / 12, 1 / 6, 1 / 3, 1 / 2, 1, 1.5, 2, 3, 5, 7, 10, 15, 20, 25, 30, 45, 60, 90, 120, 180, 300, 480, 720, 1080, 1440, 2880, 7200, 14400, 28800, 72000, 144000];
  const RATIOS = [-3, -2, -1, 0, 1, 2, 3, 4, 5, 6, 7].flatMap((k) => [1, 2, 5].map((digit) => digit * 10 ** k));
  const multiples = (from, to, step) => {
    const found = [];
    for (let at = Math.ceil(from / step) * step; at <= to; at += step) found.push(at);
    return found;
  };
  function ticks(panel, from, to) {
    if (logarithmic(panel)) {
      const some = (panel.scale === "ratio" ? RATIOS : SPANS).filter((v) => v >= from && v <= to), few = Math.ceil(some.length / 6);
      return (some.length > 1 ? some : [from, to]).filter((_, i) => i % Math.max(1, few) === 0).map((v) => [v, place[panel.scale](v)]);
    }
    if (panel.scale === "time") {
      const step = STEPS.find((s) => (to - from) / s <= 5) || (to - from) / 4;
      return multiples(from, to, step).map((v) => {
        const clock = new Date(v).toISOString().slice(11, 16);
        const date = v < 315532800000 ? "day " + Math.floor(v / 86400000) : new Date(v).toLocaleDateString("en-GB", { day: "2-digit", month: "short", timeZone: "UTC" });
        return [v, step >= DAY ? date : to - from < 6 * HOUR ? clock : date + " " + clock];
      });
    }
    const rough = (to - from) / 5, power = 10 ** Math.floor(Math.log10(rough));
    const unit = panel.scale === "elapsed" ? [86400, 3600, 60, 1].find((s) => to - from >= 3 * s) || 1 : 1;
    if (unit > 1) return ticks({ scale: "number" }, from / unit, to / unit).map(([v]) => [v * unit, place.elapsed(v * unit)]);
    return multiples(from, to, power * [1, 2, 5, 10].find((k) => power * k >= rough)).map((v) => [v, round(v)]);
  }

  const digits = (v) => Math.round(v * 10) / 10;
  // Level between its points, as all but means over a number that was varied.
  function outline(panel, scale, curve, values, from, to) {
    const points = [];
    const straight = panel.scale === "number";
    curve.x.forEach((x, i) => {
      const v = values[i];
      if (v === null || v === undefined) return;
      const next = i + 1 < curve.x.length ? curve.x[i + 1] : straight ? x : Infinity;
      const before = i > 0 ? curve.x[i - 1] : x;
      if (straight ? next < from || before > to : next < from || x > to) return;
      if (straight) { points.push([x, v]); return; }
      points.push([Math.max(x, from), v], [Math.min(next, to), v]);
    });
    return points.map(([x, v]) => [digits(scale.across(x)), digits(scale.down(v))]);
  }
  const joined = (points) => points.map(([x, y], i) => (i ? "L" : "M") + x + " " + y).join("");

  function redraw(svg, panels) {
    const view = views.get(svg);
    all(".zoomed", svg).forEach((one) => one.remove());
    all("[data-a]", svg).forEach((axis) => axis.classList.toggle("away", Boolean(view)));
    panels.forEach((panel, number) => {
      const [left, top, width, height] = panel.box, scale = scales(svg, panel, panel.box);
      const [from, to] = [scale.value(left), scale.value(left + width)];
      panel.curves.forEach((curve) => all(`[data-p="${number}"] [data-k="${curve.s}"] path`, svg).forEach((path) => {
        path.dataset.d = path.dataset.d || path.getAttribute("d");
        if (!view) { path.setAttribute("d", path.dataset.d); return; }
        const area = path.hasAttribute("fill");
        let points = outline(panel, scale, curve, area && curve.high ? curve.high : curve.y, from, to);
        if (!area && panel.unit === "%" && curve.x[0] >= from && curve.x[0] <= to) points.unshift([digits(scale.across(curve.x[0])), top + height]);
        if (area && curve.low) points = points.concat(outline(panel, scale, curve, curve.low, from, to).reverse());
        else if (area && points.length) points = [[points[0][0], top + height], ...points, [points[points.length - 1][0], top + height]];
        path.setAttribute("d", joined(points) || "M0 0");
      }));
      if (!view) return;
      const group = element("g", { class: "zoomed" });
      ticks(panel, from, to).forEach(([v, label]) => {
        const x = scale.across(v);
        group.append(element("path", { d: `M${x} ${top + height}V${top}`, stroke: "var(--grid)" }));
        const text = element("text", { x: x, y: top + height + 19.6, "text-anchor": "middle" });
        text.textContent = label;
        group.append(text);
      });
      const panelGroup = svg.querySelector(`[data-p="${number}"]`);
      panelGroup.insertBefore(group, panelGroup.firstChild);
    });
    stretched.delete(svg);
    stretch(svg);
  }

  function zoom(figure, svg, panels, view) {
    const [first, last] = whole(panels[0]);
    if (view) {
      const wide = Math.min(last - first, Math.max(view[1] - view[0], (last - first) / 1000));
      const from = Math.min(Math.max(first, view[0]), last - wide);
      if (wide < last - first) views.set(svg, [from, from + wide]); else views.delete(svg);
    } else views.delete(svg);
    figure.querySelector(".reset").hidden = !views.has(svg);
    redraw(svg, panels);
  }

  // A legend switches its series.
  function legend(figure, change) {
    all(".legend li[data-k]", figure).forEach((entry) => {
      const button = document.createElement("button");
      button.type = "button";
      button.setAttribute("aria-pressed", "true");
      button.append(...entry.childNodes);
      entry.append(button);
      button.addEventListener("click", () => {
        const hide = button.getAttribute("aria-pressed") === "true";
        button.setAttribute("aria-pressed", String(!hide));
        change(Number(entry.dataset.k), hide);
      });
    });
  }

  // Bars are known by their colour; a value that is written behind bars goes with the last of them.
  function bars(figure) {
    const svg = figure.querySelector("svg.chart");
    const drawn = all("[fill^='var(--s'], [stroke^='var(--s']", svg);
    const values = svg.querySelector("[stroke='var(--grid)']") ? [] : all("text", svg);
    legend(figure, (number, hide) => {
      const colour = `var(--s${number})`;
      drawn.filter((one) => [one.getAttribute("fill"), one.getAttribute("stroke")].includes(colour))
        .forEach((one) => one.classList.toggle("away", hide));
      values.forEach((text) => {
        const at = Number(text.getAttribute("y")) - 4;
        const own = drawn.filter((one) => one.lane && one.lane[0] <= at && at <= one.lane[1]);
        text.classList.toggle("away", own.length > 0 && own.every((one) => one.classList.contains("away")));
      });
    });
    // what is not shown has no size
    svg.parentElement.querySelector(".legend").addEventListener("click", () => {
      drawn.forEach((one) => {
        if (one.classList.contains("away")) return;
        const box = one.getBBox();
        one.lane = [box.y, box.y + box.height];
      });
    }, true);
  }

  all(".figure").forEach((figure) => {
    const island = figure.querySelector(".points");
    if (!island) {
      if (figure.querySelector(".legend")) bars(figure);
      return;
    }
    const panels = panelsOf(island);
    const svg = figure.querySelector("svg.chart");
    const readout = figure.querySelector(".readout");
    const hint = "Hover or use arrow keys for values; drag or press + \u2212 to zoom.";
    const off = new Set();
    const reset = document.createElement("button");
    Object.assign(reset, { type: "button", className: "reset", textContent: "Reset zoom", hidden: true });
    reset.addEventListener("click", () => { zoom(figure, svg, panels, null); svg.focus(); });
    svg.before(reset);
    legend(figure, (number, hide) => {
      if (hide) off.add(number); else off.delete(number);
      all(`[data-k="${number}"]`, svg).forEach((one) => one.classList.toggle("away", hide));
    });
    readout.textContent = hint;
    const marks = element("g", { class: "marks", "aria-hidden": "true" });
    svg.append(marks);
    let focus = { panel: 0, share: 0.5 };

    function read() {
      const panel = panels[focus.panel], [left, , width] = boxOf(svg, panel);
      const pointed = scales(svg, panel).value(left + focus.share * width);
      const x = panel.scale === "number" ? nearest(panel, pointed) : pointed;
      const at = scales(svg, panel).across(x);
      marks.replaceChildren();
      // Panels that share their axis of time are read together.
      const together = panel.scale === "time" || panel.scale === "elapsed" ? panels : [panel];
      const named = together.length > 1 && panel.title;
      const list = together.map((one) => {
        const scale = scales(svg, one), [, top, , height] = one.box;
        marks.append(element("line", { x1: at, x2: at, y1: top, y2: top + height, class: "cursor" }));
        return (named ? one.title + " " : "") + one.curves.filter((curve) => !off.has(curve.s)).map((curve) => reading(one, scale, curve, x, at)).join(" · ");
      });
      const title = panel.title && !named ? panel.title + ", " : "";
      readout.textContent = title + place[panel.scale](x) + ": " + list.join(named ? "; " : " · ");
    }

    function reading(panel, scale, curve, x, at) {
      const y = level(curve, x);
      const shown = y === null ? (panel.unit === "%" ? 0 : null) : y;
      if (shown === null) return curve.name + " –";
      const fill = curve.s ? "var(--s" + curve.s + ")" : "currentColor";
      marks.append(element("circle", { cx: at, cy: scale.down(shown), r: 4, fill: fill }));
      const tried = curve.low ? curve.x.indexOf(x) : -1;
      const ends = tried >= 0 && curve.low[tried] !== null ? " (" + round(curve.low[tried]) + " to " + round(curve.high[tried]) + ")" : "";
      return curve.name + " " + round(shown) + (panel.unit ? " " + panel.unit : "") + ends;
    }

    let began = null;
    const range = element("rect", { class: "range" });
    function where(event) {
      const box = svg.getBoundingClientRect(), view = svg.viewBox.baseVal;
      const x = ((event.clientX - box.left) / box.width) * view.width;
      const y = ((event.clientY - box.top) / box.height) * view.height;
      const places = panels.map((panel) => boxOf(svg, panel));
      const index = places.findIndex(([l, t, w, h]) => x >= l - 8 && x <= l + w + 8 && y >= t - 12 && y <= t + h + 24);
      if (index < 0) return null;
      const [left, , width] = places[index];
      return { panel: index, share: Math.min(1, Math.max(0, (x - left) / width)) };
    }
    function point(event) {
      const found = where(event);
      if (!found) return;
      focus = found;
      read();
      if (!began) return;
      const [left, top, width, height] = boxOf(svg, panels[began.panel]);
      const [from, to] = [began.share, focus.share].sort((a, b) => a - b);
      Object.entries({ x: left + from * width, y: top, width: (to - from) * width, height }).forEach(([k, v]) => range.setAttribute(k, v));
      svg.append(range);
    }
    // Shares of what is shown become a part of the axis.
    function part(from, to) {
      const [a, b] = views.get(svg) || whole(panels[0]);
      zoom(figure, svg, panels, [a + from * (b - a), a + to * (b - a)]);
    }
    function release(event) {
      const [from, to] = began && focus.panel === began.panel ? [began.share, focus.share].sort((a, b) => a - b) : [0, 0];
      began = null;
      range.remove();
      if (event.type === "pointerup" && to - from > 0.02) { part(from, to); marks.replaceChildren(); }
    }

    svg.addEventListener("pointermove", point);
    svg.addEventListener("pointerdown", (event) => {
      began = where(event);
      if (began && event.pointerType === "mouse") svg.setPointerCapture(event.pointerId);
      point(event);
    });
    ["pointerup", "pointercancel"].forEach((name) => svg.addEventListener(name, release));
    svg.addEventListener("pointerleave", () => {
      if (document.activeElement !== svg) { marks.replaceChildren(); readout.textContent = hint; }
    });
    svg.addEventListener("blur", () => { marks.replaceChildren(); readout.textContent = hint; });
    svg.addEventListener("keydown", (event) => {
      const step = { ArrowLeft: -0.01, ArrowRight: 0.01 }[event.key];
      const turn = { ArrowUp: -1, ArrowDown: 1 }[event.key];
      if (step) {
        const to = focus.share + step * (event.shiftKey ? 10 : 1);
        // beyond an edge of what is shown it moves on
        if (views.has(svg) && (to < 0 || to > 1)) part(Math.sign(step) / 4, 1 + Math.sign(step) / 4);
        focus.share = Math.min(1, Math.max(0, to));
      }
      else if (turn && panels.length > 1) focus.panel = (focus.panel + turn + panels.length) % panels.length;
      else if ("+=".includes(event.key)) { part(focus.share - 0.25, focus.share + 0.25); focus.share = 0.5; }
      else if ("-_".includes(event.key)) part(-0.5, 1.5);
      else if (event.key === "0" || (event.key === "Escape" && views.has(svg))) zoom(figure, svg, panels, null);
      else if (event.key === "Home" || event.key === "End") focus.share = event.key === "Home" ? 0 : 1;
      else return;
      event.preventDefault();
      read();
    });
  });
})();
