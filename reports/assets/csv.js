"use strict";
// What the page holds, as CSV: one table, one figure, or all of it in a ZIP file.
const gpuctl = (function () {
  const all = (selector, from) => Array.from((from || document).querySelectorAll(selector));

  // The exact value of a cell: a number or time as text, or null where there is none.
  const exact = (cell) => {
    if (cell.dataset.j !== undefined) return JSON.parse(cell.dataset.j);
    if (cell.dataset.v !== undefined) return cell.dataset.v;
    const unit = cell.querySelector(".unit");
    return unit ? cell.textContent.slice(0, -unit.textContent.length) : cell.textContent;
  };
  const quoted = (value) => {
    if (value === null || value === undefined) return "";
    const text = typeof value === "object" ? JSON.stringify(value) : String(value);
    return text === "" || /[",\r\n]/.test(text) ? '"' + text.replace(/"/g, '""') + '"' : text;
  };
  const csv = (lines) => lines.map((line) => line.map(quoted).join(",") + "\n").join("");
  const text = (element) => (element ? element.textContent.trim().replace(/\s+/g, " ") : null);

  // ---- tables

  const heads = (grid) => all("thead th", grid).map((head) => head.dataset.name);
  const cells = (rows) => rows.map((row) => Array.from(row.cells, exact));
  const shown = (grid) => [heads(grid), ...cells(all("tbody tr:not([hidden])", grid))];
  const upright = (list) => [all("dt", list).map((dt) => dt.dataset.name), all("dd", list).map(exact)];
  // Before anything is sorted.
  const rows = new Map(all(".grid").map((grid) => [grid, all("tbody tr", grid)]));

  // ---- figures

  const instant = (ms) => ms < 315532800000 ? "day " + Math.floor(ms / 86400000) + " " + new Date(ms).toISOString().slice(11, 19) : new Date(ms).toISOString().replace(".000Z", "Z");
  const named = (one, shownAs) => (one.raw === undefined ? shownAs : one.raw);

  function curves(panels, columns) {
    const kept = columns.map((name) => name !== "");
    const lines = [columns];
    panels.forEach((panel) => panel.curves.forEach((curve) => {
      const of = curve.of === undefined ? named(panel, panel.title) : curve.of;
      curve.x.forEach((x, i) => lines.push([of, named(curve, curve.name), panel.scale === "time" ? instant(x) : x, curve.y[i]]));
    }));
    return lines.map((line) => line.filter((_, i) => kept[i]));
  }

  // Tenths of a per cent, two digits of base 32 each; no digits at all: 0 throughout.
  const unpacked = (digits, i) => (digits === "" ? 0 : parseInt(digits.slice(2 * i, 2 * i + 2), 32) / 10);

  function cellsOf(map) {
    const lines = [map.columns];
    map.panels.forEach(([panel, list]) => list.forEach(([name, ...values]) => map.x.forEach((x, i) => {
      lines.push([panel, name, map.dated ? instant(x) : x, ...values.map((digits) => unpacked(digits, i))]);
    })));
    return lines;
  }

  // Bars of a Gantt chart, nodes first.
  function barsOf(data) {
    const named = (k) => (k < 0 ? null : data.names[k]);
    const at = (t) => (data.dated ? instant(Math.round(data.start + 1000 * t)) : Math.round(10 * (data.start + t)) / 10);
    const lines = [data.columns];
    data.panels.forEach(([, policy, nodes]) => nodes.forEach(([node]) => {
      lines.push([policy, named(node), "node", null, null, null, null, null, null, ...data.span.map(at)]);
    }));
    data.bars.forEach(([panel, row, what, job, user, queue, gpus, counted, beside, from, to]) => {
      const [, policy, nodes] = data.panels[panel];
      lines.push([policy, named(nodes[row][0]), named(what), named(job), named(user), named(queue), gpus || null, counted || null, named(beside), at(from), at(to)]);
    });
    return lines;
  }

  // Places that an earlier curve has are told by its number; times by the first, and by steps: [ms, how many in a row].
  function panelsOf(island) {
    const data = JSON.parse(island.textContent), places = [];
    data.forEach((panel) => panel.curves.forEach((curve) => {
      if (typeof curve.x === "number") { curve.x = places[curve.x]; return; }
      if (!Array.isArray(curve.x)) {
        const times = [curve.x.from];
        curve.x.steps.forEach(([step, count]) => { for (let k = 0; k < count; k++) times.push(times[times.length - 1] + step); });
        curve.x = times;
      }
      places.push(curve.x);
    }));
    return data;
  }

  function figure(element) {
    const island = element.querySelector(".points, .values");
    if (island.className === "points") return curves(panelsOf(island), island.dataset.columns.split(","));
    const data = JSON.parse(island.textContent);
    if (data.bars) return barsOf(data);
    return data.panels ? cellsOf(data) : [data.columns, ...data.rows];
  }

  // ---- everything

  const figures = all(".figure[data-name]").filter((one) => one.querySelector(".points, .values"));

  function around() {
    const parts = all(".standouts li").map((li) => [
      text(li.querySelector("strong")), text(li.querySelector(".finding")), text(li.querySelector("a")), text(li.querySelector(".rule")),
    ]);
    const boxes = all(".headlines a").map((a) => {
      const unit = a.querySelector(".unit");
      const value = text(a.querySelector(".value"));
      return [a.closest("ul").dataset.part || null, text(a.querySelector(".label")), unit ? value.slice(0, -text(unit).length).trim() : value, text(unit), text(a.querySelector(".detail"))];
    });
    const of = (one, box) => one.closest(box).dataset.part || null;
    const facts = all("#provenance .facts dt").map((dt) => [of(dt, ".facts"), text(dt), text(dt.nextElementSibling)]);
    const warned = all(".warnings li").map((li) => [of(li, ".warnings"), "warning", text(li)]);
    const meanings = all(".card").flatMap((card) => all(".definitions dt", card).map((dt) => [
      card.id, text(dt.querySelector("code")), text(dt.querySelector(".unit")), text(dt.nextElementSibling),
    ]));
    return [
      ["standout", [["result", "finding", "table", "rule"], ...parts]],
      ["headlines", [["result", "label", "value", "unit", "detail"], ...boxes]],
      ["provenance", [["result", "name", "value"], ...facts, ...warned]],
      ["definitions", [["table", "column", "unit", "definition"], ...meanings]],
    ].filter(([, lines]) => lines.length > 1);
  }

  function everything() {
    const files = [], contents = [["file", "title", "result", "rows", "rows_in_all"]];
    const add = (name, lines, title, result, total) => {
      files.push([name + ".csv", csv(lines)]);
      contents.push([name + ".csv", title, result, lines.length - 1, total]);
    };
    const place = (one) => {
      const head = one.closest(".card").querySelector("h3");
      return head ? [text(head.firstChild), text(head.querySelector(".part"))] : [null, null];
    };
    all(".grid, .upright").forEach((one) => {
      const [title, result] = place(one);
      if (one.className === "upright") return add(one.dataset.name, upright(one), title, result, 1);
      return add(one.dataset.name, [heads(one), ...cells(rows.get(one))], title, result, one.dataset.total);
    });
    figures.forEach((one) => add(one.dataset.name, figure(one), text(one.querySelector("figcaption")), place(one)[1], null));
    around().forEach(([name, lines]) => add(name, lines, null, null, lines.length - 1));
    return [["contents.csv", csv(contents)], ...files];
  }

  // A page of blocks, as of one job: each fact, line and sentence with what it is about.
  function story() {
    const lines = [["block", "about", "label", "text"]];
    all(".card").forEach((card) => {
      const title = text(card.querySelector("h3"));
      let about = null;
      all("h4, dt, .evidence, p", card).forEach((one) => {
        if (one.tagName === "H4") { about = text(one); return; }
        if (one.tagName === "DT") lines.push([title, about, text(one), text(one.nextElementSibling)]);
        else if (one.tagName === "P") lines.push([title, about, null, text(one)]);
        else lines.push([title, about, text(one.querySelector("figcaption")), one.querySelector("code").textContent]);
      });
    });
    return lines;
  }

  // ---- files

  const CRC = Uint32Array.from({ length: 256 }, (_, n) => {
    for (let k = 0; k < 8; k++) n = n & 1 ? 0xedb88320 ^ (n >>> 1) : n >>> 1;
    return n >>> 0;
  });
  const crc = (bytes) => (bytes.reduce((c, byte) => CRC[(c ^ byte) & 255] ^ (c >>> 8), 0xffffffff) ^ 0xffffffff) >>> 0;

  // Numbers of 2 or 4 bytes, the lowest byte first: [size, value] each.
  function record(fields) {
    const view = new DataView(new ArrayBuffer(fields.reduce((sum, [size]) => sum + size, 0)));
    let at = 0;
    fields.forEach(([size, value]) => {
      if (size === 2) view.setUint16(at, value, true); else view.setUint32(at, value, true);
      at += size;
    });
    return new Uint8Array(view.buffer);
  }

  // A ZIP archive of stored files (APPNOTE.TXT 6.3, sections 4.3.7, 4.3.12 and 4.3.16): version 2.0, names in UTF-8,
  // all of them of 1980-01-01, so that the same page gives the same archive.
  function zip(files) {
    const encoder = new TextEncoder(), body = [], directory = [];
    let at = 0, long = 0;
    files.forEach(([name, content]) => {
      const label = encoder.encode(name), bytes = encoder.encode(content);
      const shared = [[2, 20], [2, 0x0800], [2, 0], [2, 0], [2, 0x21], [4, crc(bytes)], [4, bytes.length], [4, bytes.length], [2, label.length], [2, 0]];
      const local = record([[4, 0x04034b50], ...shared]);
      const entry = record([[4, 0x02014b50], [2, 20], ...shared, [2, 0], [2, 0], [2, 0], [4, 0], [4, at]]);
      body.push(local, label, bytes);
      directory.push(entry, label);
      at += local.length + label.length + bytes.length;
      long += entry.length + label.length;
    });
    const count = [2, files.length];
    return [...body, ...directory, record([[4, 0x06054b50], [2, 0], [2, 0], count, count, [4, long], [4, at], [2, 0]])];
  }

  function download(name, pieces, type) {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob(pieces, { type: type }));
    link.download = name;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 1000);
  }
  // ---- drawings

  // A figure as a file of its own: colours and type of the page's style, in light, and the legend below.
  function drawing(one) {
    const source = one.querySelector("svg.chart"), style = getComputedStyle(document.documentElement);
    const colour = (name) => style.getPropertyValue(name).trim();
    const svg = source.cloneNode(true), make = (tag) => document.createElementNS("http://www.w3.org/2000/svg", tag);
    const [, , width, height] = source.getAttribute("viewBox").split(" ").map(Number);
    all(".marks", svg).forEach((marks) => marks.remove());
    all("*", svg).forEach((part) => Array.from(part.attributes).forEach((attribute) => {
      const value = attribute.value.replace(/var\((--[a-z0-9]+)\)/g, (_, name) => colour(name));
      if (value !== attribute.value) part.setAttribute(attribute.name, value);
    }));
    all("path:not([fill])", svg).forEach((path) => path.setAttribute("fill", "none"));
    all("text:not([fill])", svg).forEach((label) => label.setAttribute("fill", "currentColor"));
    let y = height + 8;
    all(".legend li", one).forEach((key) => {
      const line = make("g"), mark = key.querySelector("svg"), label = make("text");
      line.setAttribute("transform", "translate(0 " + y + ")");
      if (mark) {
        const copy = mark.cloneNode(true);
        all("*", copy).concat(copy).forEach((part) => Array.from(part.attributes).forEach((attribute) => {
          part.setAttribute(attribute.name, attribute.value.replace(/var\((--[a-z0-9]+)\)/g, (_, name) => colour(name)));
        }));
        copy.setAttribute("width", 26); copy.setAttribute("height", 12);
        line.append(copy);
      }
      label.textContent = key.textContent.trim(); label.setAttribute("x", 32); label.setAttribute("y", 10);
      label.setAttribute("fill", "currentColor");
      line.append(label); svg.append(line); y += 17;
    });
    svg.setAttribute("xmlns", "http://www.w3.org/2000/svg");
    svg.setAttribute("viewBox", "0 0 " + width + " " + y);
    svg.setAttribute("width", width); svg.setAttribute("height", y);
    svg.setAttribute("color", colour("--ink")); svg.setAttribute("font-family", "sans-serif"); svg.setAttribute("font-size", "11.5");
    svg.removeAttribute("class"); svg.removeAttribute("tabindex");
    return new XMLSerializer().serializeToString(svg);
  }
  all("figure.figure").forEach((one) => all(".drawing", one).forEach((button) => button.addEventListener("click", () => {
    download(one.dataset.name + ".svg", [drawing(one)], "image/svg+xml");
  })));

  const offer = (from, lines) => from.querySelector(".csv").addEventListener("click", () => {
    download(from.dataset.name + ".csv", [csv(lines(from))], "text/csv;charset=utf-8");
  });
  all(".grid").forEach((grid) => offer(grid, shown));
  all(".upright").forEach((list) => offer(list, upright));
  figures.forEach((one) => offer(one, figure));
  all(".story").forEach((button) => button.addEventListener("click", () => {
    download("job.csv", [csv(story())], "text/csv;charset=utf-8");
  }));
  all(".everything").forEach((button) => button.addEventListener("click", () => {
    download("gpuctl-report.zip", zip(everything()), "application/zip");
  }));

  return { all: all, exact: exact, panelsOf: panelsOf };
})();
