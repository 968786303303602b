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
  function valueOf(row, column) {
    var at = 0;
    for (var cell of row.cells) {
      if (column >= at && column < at + cell.colSpan) {
        if (cell.dataset.sort !== undefined) return Number(cell.dataset.sort);
        var empty = cell.classList.contains("none") || cell.textContent.trim() === "";
        return empty ? null : cell.textContent.trim().toLowerCase();
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
  function sort(table, head, column) {
    var heads = table.tHead.rows[0].cells;
    // Figures are wanted highest first, words from A.
    var figures = head.classList.contains("figure");
    var now = head.getAttribute("aria-sort");
    var up = now ? now !== "ascending" : !figures;
    for (var other of heads) other.removeAttribute("aria-sort");
    head.setAttribute("aria-sort", up ? "ascending" : "descending");
    var body = table.tBodies[0];
    var rows = Array.from(body.rows, function (row, at) { return { row: row, at: at, value: valueOf(row, column) }; });
    rows.sort(function (a, b) {
      if (a.value === null || b.value === null) return (a.value === null) - (b.value === null) || a.at - b.at;
      return (up ? 1 : -1) * compare(a.value, b.value) || a.at - b.at;
    });
    for (var entry of rows) body.appendChild(entry.row);
  }
  function sortable(table) {
    Array.from(table.tHead.rows[0].cells).forEach(function (head, column) {
      var press = document.createElement("button");
      press.type = "button";
      press.append.apply(press, Array.from(head.childNodes));
      head.appendChild(press);
      press.addEventListener("click", function () { sort(table, head, column); });
    });
  }
  document.querySelectorAll("table.sortable").forEach(sortable);

  // Values when pointed at. Without scripts the titles in the first chart and in the files of the
  // others have them.
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
  function prepare(chart) {
    chart.querySelectorAll("title").forEach(function (title) {
      title.parentNode.dataset.tip = title.textContent;
      title.remove();
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
  document.querySelectorAll("svg.chart").forEach(prepare);

  // Tables and charts are packed. Charts replace the labels that stand for them, in the order of the
  // page.
  function unpack(part, labels) {
    var packed = part.dataset.packed;
    part.removeAttribute("data-packed");
    if (!window.DecompressionStream) {
      document.getElementById("undrawn").hidden = false;
      return Promise.resolve();
    }
    return Promise.resolve().then(function () {
      var bytes = Uint8Array.from(atob(packed), function (c) { return c.charCodeAt(0); });
      var stream = new ReadableStream({
        start: function (to) { to.enqueue(bytes); to.close(); }
      });
      return new Response(stream.pipeThrough(new DecompressionStream("deflate"))).text();
    }).then(function (text) {
      if (!labels.length) {
        part.innerHTML = text;
        part.querySelectorAll("table").forEach(sortable);
      } else text.split("\n").forEach(function (svg, at) {
        labels[at].insertAdjacentHTML("afterend", svg);
        prepare(labels[at].nextElementSibling);
        labels[at].remove();
      });
      var suite = part.closest("article");
      if (suite && suite.follow) suite.follow();
      part.dataset.drawn = "";
    }).catch(function (problem) {
      root.dataset.error = String(problem);
      document.getElementById("undrawn").hidden = false;
    });
  }
  // Folded parts are drawn when they are opened, everything else at once.
  document.querySelectorAll("details.folded").forEach(function (fold) {
    fold.addEventListener("toggle", function () {
      var part = fold.querySelector("[data-packed]");
      if (fold.open && part) unpack(part, part.querySelectorAll(".label"));
    });
  });
  var open = Array.from(document.querySelectorAll("section[data-packed], .for-narrow[data-packed]"));
  var drawn = Promise.all(open.map(function (part) {
    return unpack(part, Array.from(part.querySelectorAll(".label")).filter(function (label) { return !label.closest("details"); }));
  })).then(function () {
    // Charts have moved what the address names.
    var named = document.querySelector(":target");
    if (named) named.scrollIntoView();
  });

  // The choice of engines and of the baseline. What the page said before is kept, so that the whole
  // choice brings it back.
  function ratioText(value) {
    function cut(factor) { return Math.floor(value * factor + 1e-9) / factor; }
    if (value === null || !isFinite(value)) return "–";
    if (value >= 100) return cut(1).toLocaleString("en-US") + "×";
    if (value >= 10) return cut(10).toFixed(1) + "×";
    if (value >= 0.1 || value <= 0) return cut(100).toFixed(2) + "×";
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
  document.querySelectorAll("article.suite").forEach(function (suite) {
    var bar = suite.querySelector(".choice");
    if (!bar) return;
    var data = JSON.parse(suite.querySelector("script.figures").textContent);
    var boxes = Array.from(bar.querySelectorAll("input"));
    var select = bar.querySelector("select");
    var note = bar.querySelector(".note");
    var off = new Set();
    var base = null;
    function hidden(engine) { return off.has(engine) || (off.size > 0 && !data.engines[engine].ran); }
    function cells(place) { return place === "all" ? [].concat.apply([], data.sections) : data.sections[place]; }
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
    function tally(place, engine, kind) {
      var ratios = [], cut = 0;
      cells(place).forEach(function (cell) {
        var other = engine === null ? best(cell, kind) : engine;
        var ratio = other === null ? null : ratioOf(cell, other, kind);
        if (ratio === null) return;
        if (isCut(cell, other) || isCut(cell, base === null ? data.terrace : base)) cut += 1;
        else ratios.push(ratio);
      });
      var logs = ratios.reduce(function (sum, ratio) { return sum + Math.log(ratio); }, 0);
      var led = ratios.filter(function (ratio) { return ratio >= 1; }).length;
      return { mean: ratios.length ? Math.exp(logs / ratios.length) : null, led: led, all: ratios.length, cut: cut };
    }
    function keep(node) {
      if (!node.was) node.was = { text: node.textContent, html: node.innerHTML, title: node.title, sort: node.dataset.sort, names: node.className };
      return node.was;
    }
    function whole() { return off.size === 0 && base === null; }
    function fill(node, text, value, title) {
      var was = keep(node);
      if (whole()) {
        node.innerHTML = was.html;
        node.title = was.title;
        if (was.sort === undefined) delete node.dataset.sort; else node.dataset.sort = was.sort;
        node.className = was.names;
        return;
      }
      node.innerHTML = "";
      node.append(text);
      if (title !== undefined) node.title = title;
      if (node.tagName === "TD") {
        if (value === null) delete node.dataset.sort; else node.dataset.sort = value;
        node.classList.toggle("none", value === null);
      }
      node.classList.toggle("bad", value !== null && value < 1);
    }
    function meanItem(item, row, kind, place) {
      var engine = row.dataset.e === undefined ? null : Number(row.dataset.e);
      var found = tally(place, engine, kind);
      fill(item, ratioText(found.mean), found.mean, "geometric mean of " + found.all + " cells; " + found.led + " at 1 or more; " + found.cut + " cut short");
      if (!whole() && found.all) {
        var small = document.createElement("small");
        small.textContent = found.led + "/" + found.all;
        item.append(small);
      }
    }
    function follow() {
      var way = base === null ? "Terrace ÷ engine" : "engine ÷ " + data.engines[base].title;
      suite.querySelectorAll("tr[data-e], .card[data-e], .engine[data-e], .promises div[data-e]").forEach(function (part) {
        part.hidden = hidden(Number(part.dataset.e));
      });
      suite.querySelectorAll("table[data-s], table[data-means]").forEach(function (table) {
        var caption = table.caption.querySelector("span");
        caption.textContent = keep(caption).text.replace("Terrace ÷ engine", way);
        Array.from(table.tHead.rows[0].cells).forEach(function (head) {
          var label = head.querySelector("button") || head;
          if (keep(label).text.trim() === "Terrace ÷") label.textContent = base === null ? label.was.text : "÷ " + data.engines[base].title;
        });
        Array.from(table.tBodies[0].rows).forEach(function (row) {
          var engine = Number(row.dataset.e);
          // The best of the rest is Terrace's opponent, no other engine's.
          if (row.dataset.e === undefined) row.hidden = base !== null;
          if (table.dataset.means !== undefined && engine === data.terrace) row.hidden = base === null || hidden(engine);
          ["ratio", "debt"].forEach(function (kind) {
            row.querySelectorAll("[data-" + kind + "]").forEach(function (node) {
              var cell = data.sections[table.dataset.s][node.dataset[kind]];
              var value = base === null && engine === data.terrace ? null : ratioOf(cell, engine, kind === "debt" ? "d" : "r");
              var inTable = node.tagName === "TD";
              var text = value === null ? (inTable ? "–" : "") : (kind === "debt" && !inTable ? "debt " : "") + ratioText(value);
              fill(node, text, value);
            });
          });
          row.querySelectorAll("[data-mean]").forEach(function (item) { meanItem(item, row, "r", item.dataset.mean); });
          row.querySelectorAll("[data-debts]").forEach(function (item) { meanItem(item, row, "d", "all"); });
        });
      });
      suite.querySelectorAll("svg.chart").forEach(function (chart) {
        if (chart.querySelector("[data-e]")) lay(chart, hidden);
      });
      bar.querySelector("summary b").textContent = (boxes.length - off.size) + " of " + boxes.length;
      note.hidden = whole();
    }
    suite.follow = function () { if (!whole()) follow(); };
    function chosen() {
      off = new Set(boxes.filter(function (box) { return !box.checked; }).map(function (box) { return Number(box.value); }));
      base = select.value === "" ? null : Number(select.value);
      follow();
    }
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
    bar.querySelector("summary b").textContent = boxes.length + " of " + boxes.length;
    bar.hidden = false;
  });

  // Paper cannot be unfolded, and does not wait for what has to be inflated first.
  window.addEventListener("beforeprint", function () {
    document.querySelectorAll("details:not([open])").forEach(function (part) {
      if (part.querySelector("[data-packed]")) return;
      part.open = true;
      part.dataset.folded = "";
    });
  });
  window.addEventListener("afterprint", function () {
    document.querySelectorAll("details[data-folded]").forEach(function (part) { part.open = false; delete part.dataset.folded; });
  });
  drawn.then(function () { root.dataset.ready = ""; });
})();
