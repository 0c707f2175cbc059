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
    contents.open = !narrow.matches;
    // those of several results stay folded
    if (document.querySelectorAll(".warnings").length === 1) document.querySelector(".warnings details").open = !narrow.matches;
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
      const order = compare[head.matches(".n") ? "number" : head.matches(".t") ? "time" : "text"];
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
      const button = document.createElement("button");
      button.type = "button";
      button.append(...head.childNodes);
      button.addEventListener("click", () => sortBy(table, heads, index, rows));
      head.append(button);
      head.setAttribute("aria-sort", "none");
    });
    const columns = grid.querySelector(".columns");
    if (columns) columns.addEventListener("click", () => {
      columns.setAttribute("aria-pressed", String(!table.classList.toggle("few")));
    });
    const more = grid.querySelector(".rows");
    if (more) more.addEventListener("click", () => {
      table.classList.remove("long");
      more.remove();
    });
    // What lies beyond an edge is pointed at.
    const scroll = grid.querySelector(".scroll");
    const cue = () => {
      const beyond = scroll.scrollWidth - scroll.clientWidth - scroll.scrollLeft;
      scroll.parentElement.classList.toggle("more", beyond > 1);
    };
    scroll.addEventListener("scroll", cue, { passive: true });
    const sizes = new ResizeObserver(cue);
    [scroll, table].forEach((one) => sizes.observe(one));
    const filter = grid.querySelector(".filter");
    if (filter) filter.addEventListener("input", () => {
      const wanted = filter.value.trim().toLowerCase();
      table.classList.toggle("filtered", wanted !== "");
      rows.forEach((row) => { row.hidden = wanted !== "" && !row.textContent.toLowerCase().includes(wanted); });
      const left = rows.filter((row) => !row.hidden).length;
      count.textContent = wanted === "" ? whole : left.toLocaleString("en") + " of " + whole;
    });
  });

  // What a column means stands once in the page, and shows over each heading of it.
  all("[data-means]").forEach((one) => {
    const list = document.getElementById(one.dataset.means);
    const meant = new Map(all("dt", list).map((dt) => [dt.querySelector("code").textContent, dt.nextElementSibling.textContent]));
    all("[data-name]", one).forEach((head) => { head.title = meant.get(head.dataset.name); });
  });
  // Where a link leads to is unfolded, and so is everything on paper.
  const unfold = (place) => {
    let was = false;
    const open = (one) => { was = was || !one.open; one.open = true; };
    for (let at = place; at; at = at.parentElement) if (at.tagName === "DETAILS") open(at);
    if (place && place.matches(".group")) open(place.querySelector("details"));
    return was;
  };
  const target = (address) => document.getElementById(decodeURIComponent(address.slice(1)));
  document.addEventListener("click", (event) => {
    const link = event.target.closest('a[href^="#"]');
    if (link) unfold(target(link.getAttribute("href")));
  });
  const reveal = () => { if (unfold(target(location.hash))) target(location.hash).scrollIntoView(); };
  addEventListener("hashchange", reveal);
  reveal();
  let folded = [];
  function paper(starts) {
    if (starts) folded = folded.concat(all(".group > details:not([open]), .warnings details:not([open])"));
    folded.forEach((one) => { one.open = starts; });
    if (!starts) folded = [];
  }
  addEventListener("beforeprint", () => paper(true));
  addEventListener("afterprint", () => paper(false));
  matchMedia("print").addEventListener("change", (change) => paper(change.matches));

  // On paper a row with very many columns becomes a block, in which every value has its name.
  function nameValues() {
    all("table.many").forEach((table) => {
      const names = all("thead button", table).map((head) => Array.from(head.childNodes, (node) => node.textContent).join(", "));
      all("tbody tr", table).forEach((row) => Array.from(row.cells).forEach((cell, i) => { cell.dataset.label = names[i]; }));
    });
  }
  addEventListener("beforeprint", nameValues);
  matchMedia("print").addEventListener("change", (change) => { if (change.matches) nameValues(); });

})();
