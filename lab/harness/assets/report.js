"use strict";
(function () {
  var root = document.documentElement;
  window.addEventListener("error", function (event) { root.dataset.error = event.message; });

  // The theme: the system's, until the reader chooses. A page opened from a file may have no
  // storage.
  var button = document.getElementById("theme");
  var system = window.matchMedia("(prefers-color-scheme: dark)");
  function stored(value) {
    try {
      if (value === undefined) return localStorage.getItem("terrace-lab-theme");
      localStorage.setItem("terrace-lab-theme", value);
    } catch (_) { /* without storage the choice lasts as long as the page */ }
    return null;
  }
  function isDark() { return root.dataset.theme ? root.dataset.theme === "dark" : system.matches; }
  function showTheme() { button.textContent = isDark() ? "Light" : "Dark"; button.title = "Switch to the " + (isDark() ? "light" : "dark") + " theme"; }
  var before = stored();
  if (before === "dark" || before === "light") root.dataset.theme = before;
  button.addEventListener("click", function () {
    root.dataset.theme = isDark() ? "light" : "dark";
    stored(root.dataset.theme);
    showTheme();
  });
  system.addEventListener("change", showTheme);
  button.hidden = false;
  showTheme();

  // Sorting. Cells without a figure stay at the end in either direction.
  var UNITS = { ns: 1e-9, "µs": 1e-6, ms: 1e-3, kB: 1e3, MB: 1e6, GB: 1e9, TB: 1e12, PB: 1e15 };
  // The figure that a text begins with; null if it begins with none.
  function figureIn(text) {
    var found = /^(−?)([\d.,]+(?:e-?\d+)?) ?([^ ]*)/.exec(text.trim());
    return found && (found[1] ? -1 : 1) * Number(found[2].replace(/,/g, "")) * (UNITS[found[3]] || 1);
  }
  function valueOf(row, column, figures) {
    var at = 0;
    for (var cell of row.cells) {
      if (column >= at && column < at + cell.colSpan) {
        if (figures) return cell.firstChild ? figureIn(cell.firstChild.textContent) : null;
        var text = cell.textContent.trim().toLowerCase();
        return cell.classList.contains("none") || text === "" ? null : text;
      }
      at += cell.colSpan;
    }
    return null;
  }
  function compare(a, b) {
    if (typeof a === "number" && typeof b === "number") return a - b;
    if (typeof a === typeof b) return a < b ? -1 : a > b ? 1 : 0;
    return typeof a === "number" ? -1 : 1;
  }
  function sort(table, header, column) {
    var headers = table.tHead.rows[0].cells;
    // Figures are wanted highest first, words from A.
    var figures = header.classList.contains("figure");
    var now = header.getAttribute("aria-sort");
    var up = now ? now !== "ascending" : !figures;
    for (var other of headers) other.removeAttribute("aria-sort");
    header.setAttribute("aria-sort", up ? "ascending" : "descending");
    var body = table.tBodies[0];
    var rows = Array.from(body.rows, function (row, at) { return { row: row, at: at, value: valueOf(row, column, figures) }; });
    rows.sort(function (a, b) {
      if (a.value === null || b.value === null) return (a.value === null) - (b.value === null) || a.at - b.at;
      return (up ? 1 : -1) * compare(a.value, b.value) || a.at - b.at;
    });
    for (var entry of rows) body.appendChild(entry.row);
  }
  function sortable(table) {
    Array.from(table.tHead.rows[0].cells).forEach(function (header, column) {
      var press = document.createElement("button");
      press.type = "button";
      press.append.apply(press, Array.from(header.childNodes));
      header.appendChild(press);
      press.addEventListener("click", function () { sort(table, header, column); });
    });
  }
  document.querySelectorAll("table.sortable").forEach(sortable);

  // Values when pointed at. Without scripts the titles in the files of the charts have them.
  var tip = document.getElementById("tip");
  function say(text, x, y) {
    tip.textContent = text;
    tip.hidden = false;
    var box = tip.getBoundingClientRect();
    var left = Math.min(x + 14, window.innerWidth - box.width - 8);
    var top = y + 18 + box.height > window.innerHeight ? y - box.height - 12 : y + 18;
    tip.style.transform = "translate(" + Math.max(8, left) + "px," + Math.max(8, top) + "px)";
  }
  function hush() { tip.hidden = true; }
  function prepare(chart, tipOf) {
    chart.querySelectorAll("title").forEach(function (title) {
      title.parentNode.dataset.tip = title.textContent;
      title.remove();
    });
    // Lines have a marker at each corner, and the rounds above and below it.
    chart.querySelectorAll("[data-mark]").forEach(function (line) {
      function each(name) { return line.dataset[name] === undefined ? [] : line.dataset[name].split(" "); }
      function path(names, d) {
        var made = document.createElementNS(chart.namespaceURI, "path");
        made.setAttribute("class", names);
        made.setAttribute("d", d);
        return made;
      }
      var cells = each("cells"), percentiles = each("p"), rounds = each("rounds");
      line.after.apply(line, line.getAttribute("points").split(" ").map(function (corner, at) {
        var mark = document.createElementNS(chart.namespaceURI, "g");
        mark.dataset.c = cells[at];
        if (percentiles[at]) mark.dataset.p = percentiles[at];
        if (rounds[at]) mark.append(path("rounds", rounds[at].split(",").map(function (y) { return "M" + corner.split(",")[0] + " " + y + "h0"; }).join("")));
        mark.append(path("f", "M" + corner + line.dataset.mark));
        return mark;
      }));
    });
    chart.querySelectorAll("[data-c]").forEach(function (mark) {
      mark.dataset.tip = tipOf(mark);
      mark.classList.add("mark");
    });
    function lift(mark) {
      var line = mark && mark.closest(".line");
      var several = chart.querySelectorAll(".line").length > 1;
      chart.classList.toggle("focus", Boolean(line) && several);
      chart.querySelectorAll(".line.on").forEach(function (other) { other.classList.remove("on"); });
      if (line) line.classList.add("on");
    }
    chart.addEventListener("pointermove", function (event) {
      var mark = event.target.closest("[data-tip]");
      lift(event.target);
      if (mark) say(mark.dataset.tip, event.clientX, event.clientY); else hush();
    });
    chart.addEventListener("pointerleave", function () { lift(null); hush(); });
    // By keyboard: the arrows go from mark to mark.
    var marks = Array.from(chart.querySelectorAll(".mark[data-tip]"));
    if (!marks.length) return;
    var at = -1;
    chart.tabIndex = 0;
    function leave() { if (marks[at]) marks[at].classList.remove("at"); lift(null); hush(); }
    chart.addEventListener("blur", leave);
    chart.addEventListener("keydown", function (event) {
      var step = { ArrowDown: 1, ArrowRight: 1, ArrowUp: -1, ArrowLeft: -1 }[event.key];
      if (event.key === "Escape") leave();
      if (!step) return;
      event.preventDefault();
      leave();
      at = (at + step + marks.length) % marks.length;
      var box = marks[at].getBoundingClientRect();
      marks[at].classList.add("at");
      lift(marks[at]);
      say(marks[at].dataset.tip, box.left + box.width / 2, box.bottom - 10);
    });
  }
  // The figures and charts of a suite are packed, and beside other suites all but its first words.
  function unpack(packed, kind) {
    if (!window.DecompressionStream) return Promise.reject(new Error("no DecompressionStream"));
    var bytes = Uint8Array.from(atob(packed), function (c) { return c.charCodeAt(0); });
    var stream = new ReadableStream({ start: function (to) { to.enqueue(bytes); to.close(); } });
    return new Response(stream.pipeThrough(new DecompressionStream("deflate")))[kind]();
  }

  // The choice of engines and of the reference. What the page said before is kept, so that the whole
  // choice brings it back.
  function ratioText(value) {
    function cut(factor) { return Math.floor(value * factor + 1e-9) / factor; }
    if (value === null || !isFinite(value)) return "–";
    if (value >= 100) return cut(1).toLocaleString("en-US") + "×";
    if (value >= 10) return cut(10).toFixed(1) + "×";
    if (value >= 0.1 || value <= 0) return cut(100).toFixed(2) + "×";
    if (value < 0.001) return "<0.001×";
    return cut(1000).toFixed(3) + "×";
  }
  // Rows are `mark`s or `row`s with a place to hit; those that are hidden close up.
  function lay(chart, hidden) {
    if (!chart.was) chart.was = { box: chart.getAttribute("viewBox"), height: chart.getAttribute("height") };
    var parts = Array.from(chart.children).map(function (part) {
      var hit = part.tagName === "g" ? part.querySelector(":scope > .hit") : null;
      var number = function (name) { return Number((hit || part).getAttribute(name)); };
      var tall = part.tagName === "line" ? "y2" : "height";
      if (!part.was) part.was = { y: part.tagName === "line" ? number("y1") : number("y"), end: number(tall), tall: tall };
      return { part: part, hit: hit, gone: Boolean(hit) && part.dataset.e !== undefined && hidden(Number(part.dataset.e)) };
    });
    var gone = parts.filter(function (row) { return row.gone; });
    function closed(from, to) {
      return gone.reduce(function (sum, row) { return sum + (row.part.was.y >= from && row.part.was.y < to ? row.part.was.end : 0); }, 0);
    }
    parts.forEach(function (row) {
      var part = row.part, was = part.was;
      part.classList.toggle("gone", row.gone || (!row.hit && part.dataset.e !== undefined && hidden(Number(part.dataset.e))));
      if (part.classList.contains("line") || (part.tagName === "g" && !row.hit)) return;
      var up = closed(-Infinity, was.y);
      if (part.tagName === "line" && was.end > was.y) part.setAttribute("y2", was.end - closed(was.y, was.end));
      if (part.tagName === "rect" && was.end > 60) part.setAttribute("height", was.end - closed(was.y, was.y + was.end));
      if (up || part.hasAttribute("transform")) part.setAttribute("transform", "translate(0," + -up + ")");
    });
    var less = closed(-Infinity, Infinity);
    var box = chart.was.box.split(" ");
    box[3] = Number(box[3]) - less;
    chart.setAttribute("viewBox", box.join(" "));
    chart.setAttribute("height", Number(chart.was.height) - less);
    if (chart.dataset.from !== undefined) stretchBars(parts, Number(chart.dataset.from));
  }
  // The longest bar that is shown is as long as the longest of all was.
  function stretchBars(parts, from) {
    var bars = [];
    parts.forEach(function (row) {
      var bar = row.hit && row.part.querySelector(".f, .weak");
      if (!bar) return;
      var dots = row.part.querySelector(".rounds");
      var texts = Array.from(row.part.querySelectorAll(".number"));
      if (!bar.was) {
        bar.was = Number(bar.getAttribute("width"));
        if (dots) dots.was = dots.getAttribute("d").split("M").slice(1).map(function (dot) { return dot.split(/[ h]/).slice(0, 2).map(Number); });
        texts.forEach(function (text) { text.was = Number(text.getAttribute("x")); });
      }
      var places = (dots ? dots.was : []).map(function (dot) { return dot[0] - from; });
      bars.push({ gone: row.gone, bar: bar, dots: dots, texts: texts, end: Math.max.apply(null, places.concat(bar.was)) });
    });
    function longest(all) { return all.reduce(function (most, one) { return Math.max(most, one.end); }, 0); }
    var most = longest(bars), shown = longest(bars.filter(function (one) { return !one.gone; }));
    var factor = shown > 0 ? most / shown : 1;
    bars.forEach(function (one) {
      one.bar.setAttribute("width", one.bar.was * factor);
      if (one.dots) one.dots.setAttribute("d", one.dots.was.map(function (dot) { return "M" + (from + (dot[0] - from) * factor) + " " + dot[1] + "h0"; }).join(""));
      one.texts.forEach(function (text) { text.setAttribute("x", text.was + one.end * (factor - 1)); });
    });
  }
  function element(name, names, text) {
    var made = document.createElement(name);
    if (names) made.className = names;
    if (text !== undefined) made.textContent = text;
    return made;
  }
  // Makes of a suite's figures what is not in the page.
  function begin(suite, data) {
    var bar = suite.querySelector(".choice");
    var boxes = bar ? Array.from(bar.querySelectorAll("input")) : [];
    var select = bar && bar.querySelector("select");
    var off = new Set();
    var base = null;
    var all = [];
    data.sections.forEach(function (section) {
      section.cells.forEach(function (cell) {
        cell.section = section;
        cell.f = cell.f.map(function (list) { return list.split("|"); });
        cell.p = cell.p.map(function (list) { return list.split("|"); });
        all.push(cell);
      });
    });
    function hidden(engine) { return off.has(engine) || (off.size > 0 && !data.engines[engine].ran); }
    function isCut(cell, engine) { return (cell.c || []).indexOf(engine) >= 0; }
    // The ratio of an engine in a cell, of its rates or of those with debt; null if there is none.
    function ratioOf(cell, engine, kind) {
      var rates = cell[kind] || [];
      var own = base === null ? rates[data.terrace] : rates[engine];
      var other = base === null ? rates[engine] : rates[base];
      return own && other ? own / other : null;
    }
    // The best of the rest among those that are chosen.
    function best(cell, kind) {
      var found = null;
      (cell[kind] || []).forEach(function (rate, engine) {
        var counts = rate && !data.engines[engine].own && !hidden(engine) && (cell.l || []).indexOf(engine) < 0;
        if (counts && (found === null || rate > cell[kind][found])) found = engine;
      });
      return found;
    }
    function tally(cells, engine, kind) {
      var ratios = [], cut = 0, without = 0;
      cells.forEach(function (cell) {
        var other = engine === null ? best(cell, kind) : engine;
        var ratio = other === null ? null : ratioOf(cell, other, kind);
        if (ratio === null) without += kind === "r" ? 1 : 0;
        else if (isCut(cell, other) || isCut(cell, base === null ? data.terrace : base)) cut += 1;
        else ratios.push(ratio);
      });
      var logs = ratios.reduce(function (sum, ratio) { return sum + Math.log(ratio); }, 0);
      var led = ratios.filter(function (ratio) { return ratio >= 1; }).length;
      return { mean: ratios.length ? Math.exp(logs / ratios.length) : null, ratios: ratios, led: led, cut: cut, without: without };
    }
    function tallyTip(found) {
      if (!found.ratios.length) return "no cell that both have done to the end";
      return "geometric mean of " + found.ratios.length + " cells from " + ratioText(Math.min.apply(null, found.ratios)) + " to "
        + ratioText(Math.max.apply(null, found.ratios)) + "; " + found.led + (base === null ? " led; " : " at 1 or more; ")
        + found.cut + " cut short; " + found.without + " without a comparison";
    }
    // What is said of a figure, or why there is none.
    function figureTip(cell, engine, where) {
      var title = data.engines[engine].title + where, absent = cell.a && cell.a[engine];
      if (absent) return title + ": " + absent.join(": ");
      var rate = cell.f.slice(0, 4).map(function (list) { return list[engine]; });
      var middle = cell.p[data.percentiles.indexOf("50%")][engine], late = cell.p[data.percentiles.indexOf("99%")][engine];
      return title + ": " + rate[0] + " " + cell.unit
        + (cell.n[engine] > 1 ? " (" + rate[1] + " to " + rate[2] + " in " + cell.n[engine] + " rounds, spread " + rate[3] + ")" : "")
        + (middle === "–" || late === "–" ? "" : "; median " + middle + ", p99 " + late)
        + (cell.m && cell.m[engine] ? "; " + cell.m[engine] : "");
    }
    function markTip(mark) {
      var cell = all[mark.dataset.c], row = mark.closest("[data-e]");
      var engine = row ? Number(row.dataset.e) : null;
      if (mark.closest(".row")) {
        var other = engine === null ? best(cell, "r") : engine;
        return cell.section.title + ", " + cell.name + ": " + ratioText(ratioOf(cell, other, "r"))
          + (engine === null ? " " + data.engines[other].title : "")
          + (isCut(cell, other) || isCut(cell, data.terrace) ? ", cut short, in no mean" : "");
      }
      if (mark.dataset.p !== undefined) {
        return data.engines[engine].title + ": " + data.percentiles[mark.dataset.p] + " " + cell.p[mark.dataset.p][engine];
      }
      return figureTip(cell, engine, row !== mark || cell.section.grouped ? ", " + cell.at : "");
    }
    // Charts take the places of the labels that stand for them.
    function draw(labels) {
      Array.from(labels).forEach(function (label) {
        label.insertAdjacentHTML("afterend", data.charts[label.parentNode.querySelector("a:last-child").getAttribute("href")]);
        prepare(label.nextElementSibling, markTip);
        label.remove();
      });
    }
    function headerOfRow(engine) {
      var found = data.engines[engine];
      var header = element("th");
      header.scope = "row";
      header.append(element("i", "swatch " + found.swatch), found.title + (found.weaker ? " †" : ""));
      header.title = found.weaker || "";
      return header;
    }
    // A row of the table of all figures.
    function detailsRow(cell, engine) {
      var row = element("tr");
      row.dataset.e = engine;
      row.append(headerOfRow(engine), element("td", "words", cell.name));
      var absent = cell.a && cell.a[engine];
      if (absent) {
        row.append(element("td", "none", absent.join(": ")));
        row.lastChild.colSpan = data.headers.length + 1;
        return row;
      }
      row.cell = cell;
      var next = 0;
      data.headers.forEach(function (header) {
        var kind = header[2];
        var list = kind === "f" ? cell.f[next++] : cell.p[kind];
        row.append(element("td", "", list ? list[engine] : ""));
      });
      var spread = row.cells[5];
      if ((cell.s || []).indexOf(engine) >= 0) spread.className = "mark";
      if (cell.n[engine] < 2) spread.title = "one round only";
      var writer = cell.w && cell.w[engine];
      var remarks = [cell.m && cell.m[engine], writer && "the writer beside it: " + writer + " op/s"];
      row.append(element("td", "remark", remarks.filter(Boolean).join("; ")));
      return row;
    }
    function details(section, name) {
      var scroll = element("div", "scroll");
      scroll.tabIndex = 0;
      scroll.setAttribute("role", "region");
      scroll.setAttribute("aria-label", name);
      var table = element("table", "sortable details");
      table.createCaption().append(element("span", "", name));
      var headers = table.createTHead().insertRow();
      [["Engine", ""], ["Workload", ""]].concat(data.headers, [["Remarks", ""]]).forEach(function (header) {
        var made = element("th", header.length > 2 ? "figure" : "", header[0]);
        made.scope = "col";
        made.title = header[1];
        headers.append(made);
      });
      var body = table.createTBody();
      section.cells.forEach(function (cell) {
        data.engines.forEach(function (_, engine) { body.append(detailsRow(cell, engine)); });
      });
      scroll.append(table);
      sortable(table);
      return scroll;
    }
    function unfold(fold) {
      if (!fold.open || fold.dataset.drawn !== undefined) return;
      draw(fold.querySelectorAll(".label"));
      if (fold.dataset.s !== undefined) fold.append(details(data.sections[fold.dataset.s], "All figures of this section"));
      follow();
      fold.dataset.drawn = "";
    }
    function whole() { return off.size === 0 && base === null; }
    function keep(node) {
      if (node.was === undefined) node.was = node.innerHTML;
      return node.was;
    }
    function paint(item, ratio) {
      item.classList.toggle("nil", ratio === null);
      item.classList.toggle("bad", ratio !== null && ratio < 1);
    }
    function meanItem(item, cells, engine, kind) {
      var found = tally(cells, engine, kind), was = keep(item);
      item.title = tallyTip(found);
      paint(item, found.mean);
      if (whole()) item.innerHTML = was;
      else item.replaceChildren(ratioText(found.mean), found.mean === null ? "" : element("small", "", found.led + "/" + found.ratios.length));
    }
    function ratioFor(cell, engine, kind) {
      return base === null && engine === data.terrace ? null : ratioOf(cell, engine, kind);
    }
    // Below a figure: its ratio, that with debt, and what else stood there.
    function ratiosBelow(item, cell, engine) {
      item.innerHTML = keep(item);
      if (whole()) return;
      var small = item.querySelector("small") || item.appendChild(element("small"));
      var rest = small.querySelector("i");
      small.replaceChildren();
      [["r", ""], ["d", "debt "]].forEach(function (kind) {
        var ratio = ratioFor(cell, engine, kind[0]);
        if (ratio !== null) small.append(element(ratio < 1 ? "b" : "span", "", kind[1] + ratioText(ratio)), " ");
      });
      if (rest) small.append(rest);
    }
    function followTable(table) {
      var way = base === null ? "Terrace ÷ engine" : "engine ÷ " + data.engines[base].title;
      var caption = table.caption.querySelector("span");
      caption.innerHTML = keep(caption);
      caption.textContent = caption.textContent.replace("Terrace ÷ engine", way);
      var cells = table.dataset.s !== undefined && data.sections[table.dataset.s].cells;
      Array.from(table.tBodies[0].rows).forEach(function (row) {
        var engine = row.dataset.e === undefined ? null : Number(row.dataset.e);
        // The best of the rest is Terrace's opponent, no other engine's.
        if (engine === null) row.hidden = base !== null;
        if (!cells && engine === data.terrace) row.hidden = base === null || hidden(engine);
        Array.from(row.cells).slice(1).forEach(function (item, at) {
          if (item.colSpan > 1) return;
          if (!cells) meanItem(item, at < 2 ? all : data.sections[at - 2].cells, engine, at === 1 ? "d" : "r");
          else if (!cells[at].a || !cells[at].a[engine]) ratiosBelow(item, cells[at], engine);
        });
      });
    }
    function followDetails(table) {
      data.headers.forEach(function (header, at) {
        if (header[2] !== "r" && header[2] !== "d") return;
        var label = table.tHead.rows[0].cells[at + 2].querySelector("button");
        if (header[2] === "r") label.textContent = base === null ? header[0] : "÷ " + data.engines[base].title;
        Array.from(table.tBodies[0].rows).forEach(function (row) {
          if (!row.cell) return;
          var ratio = ratioFor(row.cell, Number(row.dataset.e), header[2]), item = row.cells[at + 2];
          item.textContent = ratioText(ratio);
          paint(item, ratio);
        });
      });
    }
    function follow() {
      suite.querySelectorAll("tr[data-e], .card[data-e], .engine[data-e], .promises div[data-e]").forEach(function (part) {
        part.hidden = hidden(Number(part.dataset.e));
      });
      suite.querySelectorAll("table[data-s], table[data-means]").forEach(followTable);
      suite.querySelectorAll("table.details").forEach(followDetails);
      suite.querySelectorAll("svg.chart").forEach(function (chart) {
        if (chart.querySelector("[data-e]")) lay(chart, hidden);
      });
      if (!bar) return;
      bar.querySelector("summary b").textContent = (boxes.length - off.size) + " of " + boxes.length;
      bar.querySelector(".note").hidden = whole();
    }
    function chosen() {
      off = new Set(boxes.filter(function (box) { return !box.checked; }).map(function (box) { return Number(box.value); }));
      base = select.value === "" ? null : Number(select.value);
      follow();
    }
    suite.querySelectorAll("svg.chart").forEach(function (chart) { prepare(chart, markTip); });
    // What an engine's writes promise stands with the engine.
    suite.querySelectorAll(".promises").forEach(function (list) {
      list.replaceChildren.apply(list, Array.from(suite.querySelectorAll(".engine[data-e]"), function (engine) {
        var found = data.engines[engine.dataset.e];
        var row = element("div"), name = element("dt"), words = element("dd");
        row.dataset.e = engine.dataset.e;
        name.append(element("i", "swatch " + found.swatch), found.title);
        list.dataset.asked.split(" ").forEach(function (kind) {
          var said = engine.querySelector("dd." + kind);
          if (said) words.append(words.firstChild ? element("br") : "", said.textContent);
        });
        if (!words.firstChild) words.append("It does not say.");
        row.append(name, words);
        return row;
      }));
    });
    draw(Array.from(suite.querySelectorAll(".label")).filter(function (label) { return !label.closest("details"); }));
    suite.querySelectorAll("table[data-s] tr[data-e]").forEach(function (row) {
      var engine = Number(row.dataset.e), cells = data.sections[row.closest("table").dataset.s].cells;
      row.cells[0].title = data.engines[engine].weaker || "";
      if (row.cells[1] && row.cells[1].colSpan > 1) return;
      cells.forEach(function (cell, at) {
        var absent = cell.a && cell.a[engine];
        row.cells[at + 1].title = absent ? absent[1] : figureTip(cell, engine, "");
      });
    });
    suite.querySelectorAll("details.folded").forEach(function (fold) {
      fold.addEventListener("toggle", function () { unfold(fold); });
      unfold(fold);
    });
    follow();
    if (!bar) return;
    boxes.forEach(function (box) { box.addEventListener("change", chosen); });
    select.addEventListener("change", chosen);
    bar.querySelector(".none-of").addEventListener("click", function () {
      boxes.forEach(function (box) { box.checked = Number(box.value) === data.terrace; });
      bar.querySelector("details").open = true;
      chosen();
    });
    bar.querySelector(".all-of").addEventListener("click", function () {
      boxes.forEach(function (box) { box.checked = true; });
      select.value = "";
      chosen();
    });
    bar.hidden = false;
  }
  var drawn = Promise.all(Array.from(document.querySelectorAll("article.suite"), function (suite) {
    var article = suite.querySelector("script.article");
    var whole = article ? unpack(article.textContent, "text").then(function (text) {
      article.insertAdjacentHTML("afterend", text);
      article.remove();
      suite.querySelectorAll("table.sortable").forEach(sortable);
    }) : Promise.resolve();
    return whole.then(function () {
      return unpack(suite.querySelector("script.packed").textContent, "json");
    }).then(function (data) {
      begin(suite, data);
    }).catch(function (problem) {
      if (window.DecompressionStream) root.dataset.error = String(problem);
      document.getElementById("undrawn").hidden = false;
    });
  })).then(function () {
    // Charts have moved what the address names.
    var named = document.querySelector(":target");
    if (named) named.scrollIntoView();
  });

  // Paper cannot be unfolded. What a reader has not unfolded is not made for it.
  window.addEventListener("beforeprint", function () {
    document.querySelectorAll("details:not([open])").forEach(function (part) {
      if (part.matches(".folded:not([data-drawn])")) return;
      part.open = true;
      part.dataset.folded = "";
    });
  });
  window.addEventListener("afterprint", function () {
    document.querySelectorAll("details[data-folded]").forEach(function (part) { part.open = false; delete part.dataset.folded; });
  });
  drawn.then(function () { root.dataset.ready = ""; });
})();
