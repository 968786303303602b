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
  document.querySelectorAll("table.sortable").forEach(function (table) {
    Array.from(table.tHead.rows[0].cells).forEach(function (head, column) {
      var press = document.createElement("button");
      press.type = "button";
      press.append.apply(press, Array.from(head.childNodes));
      head.appendChild(press);
      press.addEventListener("click", function () { sort(table, head, column); });
    });
  });

  // Values when pointed at. The titles inside the charts serve readers without scripts.
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
  document.querySelectorAll("svg.chart").forEach(function (chart) {
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
  });

  // Paper cannot be unfolded.
  window.addEventListener("beforeprint", function () {
    document.querySelectorAll("details:not([open])").forEach(function (part) { part.open = true; part.dataset.folded = ""; });
  });
  window.addEventListener("afterprint", function () {
    document.querySelectorAll("details[data-folded]").forEach(function (part) { part.open = false; delete part.dataset.folded; });
  });
  root.dataset.ready = "";
})();
