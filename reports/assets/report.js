"use strict";
(function () {
  const root = document.documentElement;
  const { all, exact } = gpuctl;

  // ---- theme

  const themeButton = document.querySelector(".theme");
  function showTheme(theme) {
    root.dataset.theme = theme;
    themeButton.setAttribute("aria-pressed", String(theme === "dark"));
    themeButton.textContent = theme === "dark" ? "Light" : "Dark";
    themeButton.setAttribute("aria-label", theme === "dark" ? "Change to the light theme" : "Change to the dark theme");
  }
  showTheme(root.dataset.theme);
  themeButton.addEventListener("click", () => {
    showTheme(root.dataset.theme === "dark" ? "light" : "dark");
    try { localStorage.setItem("gpuctl-theme", root.dataset.theme); } catch (error) { /* not remembered, then */ }
  });

  // ---- contents and caveats: closed on a narrow screen, and the section in view is marked

  const contents = document.querySelector(".contents details");
  const narrow = matchMedia("(max-width: 60rem)");
  const fold = () => {
    [contents, ...all(".warnings details")].forEach((one) => { one.open = !narrow.matches; });
  };
  narrow.addEventListener("change", fold);
  fold();
  contents.addEventListener("click", (event) => {
    if (narrow.matches && event.target.closest("a")) contents.open = false;
  });
  const links = new Map(all(".contents a").map((a) => [a.getAttribute("href").slice(1), a]));
  const inView = new Set();
  // Contents longer than the window move with the reader.
  function follow(link) {
    const box = contents.getBoundingClientRect(), at = link.getBoundingClientRect();
    if (at.top < box.top) contents.scrollTop -= box.top - at.top + 40;
    else if (at.bottom > box.bottom) contents.scrollTop += at.bottom - box.bottom + 40;
  }
  const watcher = new IntersectionObserver((entries) => {
    entries.forEach((e) => (e.isIntersecting ? inView.add(e.target.id) : inView.delete(e.target.id)));
    const first = all("#summary, .card, #provenance").find((s) => inView.has(s.id) && links.has(s.id));
    links.forEach((a, id) => (first && id === first.id ? a.setAttribute("aria-current", "true") : a.removeAttribute("aria-current")));
    if (first && !narrow.matches) follow(links.get(first.id));
  }, { rootMargin: "-10% 0px -55% 0px" });
  all("#summary, .card, #provenance").forEach((section) => watcher.observe(section));

  // ---- tables

  const collator = new Intl.Collator("en", { numeric: true });
  const compare = { number: (a, b) => a - b, time: (a, b) => (a < b ? -1 : a > b ? 1 : 0), text: collator.compare };

  function sortBy(table, heads, index, rows) {
    const head = heads[index];
    const next = { none: "ascending", ascending: "descending", descending: "none" }[head.getAttribute("aria-sort")];
    heads.forEach((h) => h.setAttribute("aria-sort", h === head ? next : "none"));
    let ordered = rows;
    if (next !== "none") {
      const sign = next === "ascending" ? 1 : -1;
      const order = compare[head.dataset.kind];
      const keyed = rows.map((row) => [exact(row.cells[index]), row]);
      const missing = (value) => value === null || value === undefined;
      keyed.sort(([a], [b]) => (missing(a) || missing(b) ? missing(a) - missing(b) : sign * order(a, b)));
      ordered = keyed.map(([, row]) => row);
    }
    table.tBodies[0].append(...ordered);
  }

  all(".grid").forEach((grid) => {
    const table = grid.querySelector("table");
    if (!table) return;
    const heads = all("thead th", table);
    const rows = all("tbody tr", table);
    const count = grid.querySelector(".count");
    const whole = count.textContent;
    heads.forEach((head, index) => {
      head.querySelector("button").addEventListener("click", () => sortBy(table, heads, index, rows));
    });
    const filter = grid.querySelector(".filter");
    if (filter) filter.addEventListener("input", () => {
      const wanted = filter.value.trim().toLowerCase();
      rows.forEach((row) => { row.hidden = wanted !== "" && !row.textContent.toLowerCase().includes(wanted); });
      const left = rows.filter((row) => !row.hidden).length;
      count.textContent = left === rows.length ? whole : left.toLocaleString("en") + " of " + whole;
    });
  });

  // What a column means stands once in the page, and shows over each heading of it.
  all("[data-means]").forEach((one) => {
    const list = document.getElementById(one.dataset.means);
    const meant = new Map(all("dt", list).map((dt) => [dt.querySelector("code").textContent, dt.nextElementSibling.textContent]));
    all("[data-name]", one).forEach((head) => { head.title = meant.get(head.dataset.name); });
  });
  const reveal = () => {
    const list = document.getElementById(location.hash.slice(1));
    if (list && list.closest(".definitions")) { list.closest(".definitions").open = true; list.scrollIntoView(); }
  };
  addEventListener("hashchange", reveal);
  reveal();

  // On paper a row with very many columns becomes a block, in which every value has its name.
  function nameValues() {
    all("table.many").forEach((table) => {
      const names = all("thead button", table).map((head) => Array.from(head.childNodes, (node) => node.textContent).join(", "));
      all("tbody tr", table).forEach((row) => Array.from(row.cells).forEach((cell, i) => { cell.dataset.label = names[i]; }));
    });
  }
  addEventListener("beforeprint", nameValues);
  matchMedia("print").addEventListener("change", (change) => { if (change.matches) nameValues(); });

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
    time: (x) => new Date(x).toISOString().slice(0, 16).replace("T", " ") + " UTC",
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

  function scales(svg, panel) {
    const log = panel.scale === "minutes";
    const [a, b] = panel.x.map((v) => (log ? Math.log(v) : v));
    const [left, top, width, height] = boxOf(svg, panel);
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

  all(".figure").forEach((figure) => {
    const island = figure.querySelector(".points");
    if (!island) return;
    const panels = JSON.parse(island.textContent);
    const svg = figure.querySelector("svg.chart");
    const readout = figure.querySelector(".readout");
    const hint = readout.innerHTML;
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
        return (named ? one.title + " " : "") + one.curves.map((curve) => reading(one, scale, curve, x, at)).join(" · ");
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
      return curve.name + " " + round(shown) + (panel.unit ? " " + panel.unit : "");
    }

    function point(event) {
      const box = svg.getBoundingClientRect(), view = svg.viewBox.baseVal;
      const x = ((event.clientX - box.left) / box.width) * view.width;
      const y = ((event.clientY - box.top) / box.height) * view.height;
      const places = panels.map((panel) => boxOf(svg, panel));
      const index = places.findIndex(([l, t, w, h]) => x >= l - 8 && x <= l + w + 8 && y >= t - 12 && y <= t + h + 24);
      if (index < 0) return;
      const [left, , width] = places[index];
      focus = { panel: index, share: Math.min(1, Math.max(0, (x - left) / width)) };
      read();
    }

    svg.addEventListener("pointermove", point);
    svg.addEventListener("pointerdown", point);
    svg.addEventListener("pointerleave", () => {
      if (document.activeElement !== svg) { marks.replaceChildren(); readout.innerHTML = hint; }
    });
    svg.addEventListener("blur", () => { marks.replaceChildren(); readout.innerHTML = hint; });
    svg.addEventListener("keydown", (event) => {
      const step = { ArrowLeft: -0.01, ArrowRight: 0.01 }[event.key];
      const turn = { ArrowUp: -1, ArrowDown: 1 }[event.key];
      if (step) focus.share = Math.min(1, Math.max(0, focus.share + step * (event.shiftKey ? 10 : 1)));
      else if (turn && panels.length > 1) focus.panel = (focus.panel + turn + panels.length) % panels.length;
      else if (event.key === "Home" || event.key === "End") focus.share = event.key === "Home" ? 0 : 1;
      else return;
      event.preventDefault();
      read();
    });
  });
})();
