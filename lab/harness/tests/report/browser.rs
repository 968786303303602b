//! The report in headless Chromium: scripts run without an error, tables sort, the theme switches,
//! values show, nothing makes a phone scroll sideways. Skipped, loudly, where there is no Chromium.
//! With `LAB_SCREENSHOTS=DIR` pictures are kept.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use lab_harness::report::{self, Source};
use tempfile::TempDir;

use crate::{data, suites};

/// Where Chromium is; `None`, said on standard error, if there is none.
fn chromium() -> Option<PathBuf> {
    let names = ["chromium", "chromium-browser", "google-chrome", "chrome"];
    let path = env::var_os("PATH").unwrap_or_default();
    let found = env::split_paths(&path)
        .flat_map(|dir| names.map(|name| dir.join(name)))
        .find(|file| file.is_file());
    if found.is_none() {
        eprintln!(
            "SKIPPED: no Chromium in PATH ({}); the report was not tried in a browser",
            names.join(", ")
        );
    }
    found
}

/// A directory with a report and a browser to look at it.
struct Browser {
    program: PathBuf,
    dir: TempDir,
}

impl Browser {
    /// A browser and the report of a suite in `report.html`.
    fn with_report(suite: &str) -> Option<Browser> {
        let program = chromium()?;
        let dir = TempDir::new().expect("a directory");
        let run = suites::all().into_iter().find(|run| run.suite == suite).expect("a suite");
        report::write(&run, &data::measure(&run, 7, true), dir.path()).expect("a report");
        Some(Browser { program, dir })
    }

    /// Writes a page that is the report with something at its end.
    fn page(&self, name: &str, end: &str) {
        let page = fs::read_to_string(self.dir.path().join("report.html")).expect("a report");
        // A script's part that has to wait for the page's own.
        let when_ready = "(f => { const r = document.documentElement; const go = () => r.dataset.ready === undefined ? setTimeout(go, 5) : f(); go(); })";
        let end = end.replace("WHEN_READY", when_ready);
        fs::write(self.dir.path().join(name), format!("{page}\n{end}")).expect("a page");
    }

    fn run(&self, page: &str, arguments: &[&str]) -> String {
        let profile = TempDir::new_in(self.dir.path()).expect("a directory");
        // Its own processes end with it; `timeout` ends it if it hangs.
        let mut command = Command::new("timeout");
        command.arg("--kill-after=5").arg("300").arg(&self.program).args([
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            // What a busy machine or a container would fail it for.
            "--disable-gpu-watchdog",
            "--disable-dev-shm-usage",
            "--disable-quic",
            "--no-first-run",
            "--disable-background-networking",
            "--disable-component-update",
            "--disable-sync",
            "--hide-scrollbars",
            "--virtual-time-budget=4000",
        ]);
        command.arg(format!("--user-data-dir={}", profile.path().display())).args(arguments);
        command.arg(format!("file://{}", self.dir.path().join(page).display()));
        let output = command.output().expect("timeout and Chromium");
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{}: {errors}", output.status);
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    /// The page after its scripts ran.
    fn dom(&self, page: &str) -> String {
        self.run(page, &["--dump-dom"])
    }

    fn screenshot(&self, page: &str, size: (u32, u32), name: &str) {
        let kept = env::var_os("LAB_SCREENSHOTS").map(PathBuf::from);
        let path = kept.as_deref().unwrap_or(self.dir.path()).join(name);
        let (file, window) = (
            format!("--screenshot={}", path.display()),
            format!("--window-size={},{}", size.0, size.1),
        );
        self.run(page, &[&file, &window]);
        assert_is_picture(&path, size);
    }
}

/// A PNG of that size with something on it.
fn assert_is_picture(path: &Path, size: (u32, u32)) {
    let bytes = fs::read(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    assert_eq!(bytes.get(..8), Some(&b"\x89PNG\r\n\x1a\n"[..]), "{}", path.display());
    let number = |at: usize| u32::from_be_bytes(bytes[at..at + 4].try_into().expect("four bytes"));
    assert_eq!((number(16), number(20)), size, "{}", path.display());
    // An empty page of any size is a few kilobytes.
    assert!(bytes.len() > 20_000, "{}: {} bytes", path.display(), bytes.len());
}

/// The result of a test's script: `key=value` in the attribute `data-found` of the page.
fn found(dom: &str, key: &str) -> String {
    let (_, rest) = dom
        .split_once("data-found=\"")
        .unwrap_or_else(|| panic!("the test's script did not end: {dom:.300}"));
    let all = rest.split('"').next().unwrap_or_default();
    let value = all.split('|').find_map(|entry| entry.strip_prefix(&format!("{key}=")));
    value.unwrap_or_else(|| panic!("{key} is not in {all}")).to_owned()
}

#[test]
fn every_suite_runs_without_a_script_error() {
    for run in suites::all() {
        let Some(browser) = Browser::with_report(&run.suite) else { return };
        let dom = browser.dom("report.html");
        let root = dom.split('>').nth(1).unwrap_or_default();
        assert!(
            root.contains("data-ready") && !root.contains("data-error"),
            "{}: {root}",
            run.suite
        );
        assert!(dom.contains("<button type=\"button\">Engine</button>"), "{}", run.suite);
    }
}

#[test]
fn tables_sort_themes_switch_and_values_show() {
    let Some(browser) = Browser::with_report("leveldb-2011") else { return };
    browser.page(
        "tried.html",
        r#"<script>
        const table = document.getElementById("leveldb-2011-1-baseline-overview");
        const head = table.tHead.rows[0].cells[1];
        const column = () => Array.from(table.tBodies[0].rows, row => Number(row.cells[1].firstChild.textContent.replace(/,/g, "")));
        const names = () => Array.from(table.tBodies[0].rows, row => row.cells[0].textContent);
        const ordered = (list, sign) => list.every((v, i) => i === 0 || sign * (v - list[i - 1]) >= 0);
        const numbers = list => list.filter(v => !Number.isNaN(v));
        const gapsLast = list => list.findIndex(Number.isNaN) === numbers(list).length;
        const found = {};
        const tried = () => {
        head.querySelector("button").click();
        found.down = ordered(numbers(column()), -1) && gapsLast(column()) && head.getAttribute("aria-sort") === "descending";
        head.querySelector("button").click();
        found.up = ordered(numbers(column()), 1) && gapsLast(column()) && head.getAttribute("aria-sort") === "ascending";
        found.figures = numbers(column()).length;
        table.tHead.rows[0].cells[0].querySelector("button").click();
        const sorted = names().slice().sort((a, b) => a.toLowerCase() < b.toLowerCase() ? -1 : 1);
        found.names = names().join() === sorted.join() && !head.hasAttribute("aria-sort");
        const theme = document.getElementById("theme");
        const ground = () => getComputedStyle(document.body).backgroundColor;
        const before = ground();
        theme.click();
        found.theme = before !== ground();
        theme.click();
        found.back = before === ground();
        const mark = document.querySelector("svg.chart .mark[data-tip]");
        mark.dispatchEvent(new PointerEvent("pointermove", { bubbles: true, clientX: 100, clientY: 100 }));
        const tip = document.getElementById("tip");
        found.tip = !tip.hidden && tip.textContent === mark.dataset.tip && tip.textContent.length > 10;
        const chart = mark.closest("svg");
        chart.dispatchEvent(new PointerEvent("pointerleave"));
        found.hush = tip.hidden;
        chart.focus();
        chart.dispatchEvent(new KeyboardEvent("keydown", { key: "ArrowDown", bubbles: true, cancelable: true }));
        found.keys = !tip.hidden && chart.querySelectorAll(".mark.at").length === 1;
        chart.dispatchEvent(new KeyboardEvent("keydown", { key: "Escape", bubbles: true }));
        found.titles = document.querySelectorAll("svg.chart title").length;
        window.dispatchEvent(new Event("beforeprint"));
        found.unfolded = document.querySelectorAll("details:not([open]):not(.folded)").length;
        window.dispatchEvent(new Event("afterprint"));
        found.outside = performance.getEntriesByType("resource").length;
        found.error = document.documentElement.dataset.error || "none";
        document.documentElement.dataset.found = Object.entries(found).map(e => e.join("=")).join("|");
        };
        WHEN_READY(tried);
        </script>"#,
    );
    let dom = browser.dom("tried.html");
    for key in ["down", "up", "names", "theme", "back", "tip", "hush", "keys"] {
        assert_eq!(found(&dom, key), "true", "{key}");
    }
    // Sixteen engines, two of them without a program.
    assert_eq!(found(&dom, "figures"), "14");
    for key in ["titles", "unfolded", "outside"] {
        assert_eq!(found(&dom, key), "0", "{key}");
    }
    assert_eq!(found(&dom, "error"), "none");
}

#[test]
fn engines_and_the_baseline_can_be_chosen() {
    let Some(browser) = Browser::with_report("leveldb-2011") else { return };
    browser.page(
        "chosen.html",
        r#"<script>
        const found = {};
        const bar = document.querySelector(".choice");
        const select = bar.querySelector("select");
        const table = document.getElementById("leveldb-2011-1-baseline-overview");
        const means = document.getElementById("leveldb-2011-ratios");
        const chosen = () => {
        const rowOf = (table, name) => Array.from(table.tBodies[0].rows).find(row => row.cells[0].textContent.replace(" †", "") === name);
        const ratioIn = (name, cell) => rowOf(table, name).cells[cell + 1].querySelector("small").firstElementChild.textContent;
        const box = name => Array.from(bar.querySelectorAll("label")).find(l => l.textContent.replace(" †", "") === name).querySelector("input");
        const texts = () => Array.from(document.querySelectorAll("article td, article th, article caption")).map(e => e.className + e.title + e.textContent).join("\n")
            + Array.from(document.querySelectorAll("svg.chart")).map(e => e.getAttribute("viewBox")).join();
        const before = texts();
        const mean = () => rowOf(means, "Best of the rest").cells[1].textContent;
        const all = mean();
        const chart = document.getElementById("leveldb-2011-1-baseline-readseq").querySelector(".now svg");
        const high = () => Number(chart.getAttribute("viewBox").split(" ")[3]);
        const was = high();
        const width = () => Number(chart.querySelector("[data-e='0'] .f").getAttribute("width"));
        const narrow = width();

        // Without the fastest others the best of the rest is slower, and rows close up.
        for (const name of ["LMDB", "LMDB, WRITEMAP", "Kyoto TreeDB", "WiredTiger B-tree", "redb"]) box(name).click();
        found.hidden = rowOf(table, "LMDB").hidden && rowOf(means, "LMDB").hidden && !rowOf(table, "LevelDB").hidden;
        found.mean = parseFloat(mean()) > parseFloat(all) && mean().includes("/");
        found.closed = Math.abs(was - high() - 7 * 21) < 0.1 && width() >= narrow;
        found.note = !bar.querySelector(".note").hidden && bar.textContent.includes("9 of 14");

        // Another baseline: its own ratio is 1, Terrace has one, and the best of the rest none.
        select.value = Array.from(select.options).find(o => o.text === "engine ÷ LevelDB").value;
        select.dispatchEvent(new Event("change"));
        found.one = ratioIn("LevelDB", 0) === "1.00×" && rowOf(means, "LevelDB").cells[1].textContent.startsWith("1.00×");
        const rate = name => Number(rowOf(table, name).cells[1].firstChild.textContent.replace(/,/g, ""));
        const cut = v => (Math.floor(v * 100 + 1e-4) / 100).toFixed(2) + "×";
        found.ratio = ratioIn("Terrace", 0) === cut(rate("Terrace") / rate("LevelDB"));
        found.caption = table.caption.textContent.includes("engine ÷ LevelDB") && rowOf(means, "Best of the rest").hidden && !rowOf(means, "Terrace").hidden;

        // Everything is as it was when the choice is taken back.
        bar.querySelector(".all-of").click();
        found.back = before === texts() && high() === was && width() === narrow && bar.querySelector(".note").hidden;
        bar.querySelector(".none-of").click();
        found.none = bar.textContent.includes("1 of 14");
        bar.querySelector(".all-of").click();

        // Curves are drawn when they are opened.
        const part = document.querySelector("details.folded");
        found.folded = part.querySelectorAll("svg").length === 0;
        const done = () => {
            found.drawn = part.querySelectorAll("svg.chart").length === part.querySelectorAll("figure").length && part.querySelectorAll("title").length === 0;
            found.error = document.documentElement.dataset.error || "none";
            document.documentElement.dataset.found = Object.entries(found).map(e => e.join("=")).join("|");
        };
        new MutationObserver(done).observe(part, { attributes: true, attributeFilter: ["data-drawn"] });
        part.open = true;
        };
        WHEN_READY(chosen);
        </script>"#,
    );
    let dom = browser.dom("chosen.html");
    for key in [
        "hidden", "mean", "closed", "note", "one", "ratio", "caption", "back", "none", "folded",
        "drawn",
    ] {
        assert_eq!(found(&dom, key), "true", "{key}: {}", found(&dom, "error"));
    }
    assert_eq!(found(&dom, "error"), "none");
}

/// The values of an attribute or the texts of an element, in the order of the page.
fn all_between(text: &str, start: &str, end: &str) -> Vec<String> {
    let parts = text.split(start).skip(1);
    parts.map(|part| part.split(end).next().unwrap_or_default().replace("&#39;", "'")).collect()
}

#[test]
fn pointers_say_what_the_titles_of_the_files_say() {
    // Bars and curves, threads, groups of settings, and figures over time.
    for suite in ["leveldb-2011", "modern", "configurations", "basho-2011"] {
        let Some(browser) = Browser::with_report(suite) else { return };
        browser.page(
            "said.html",
            r#"<script>
            WHEN_READY(() => {
                document.querySelectorAll("details.folded").forEach(part => { part.open = true; });
                setTimeout(() => {
                    const error = document.documentElement.dataset.error || "none";
                    document.documentElement.dataset.found = "error=" + error;
                }, 500);
            });
            </script>"#,
        );
        let dom = browser.dom("said.html");
        assert_eq!(found(&dom, "error"), "none");
        let mut compared = 0;
        for figure in dom.split("<figure class=\"drawing\">").skip(1) {
            let (figure, _) = figure.split_once("</figure>").expect("its end");
            let name = all_between(figure, "href=\"charts/", "\"").pop().expect("a link");
            let file = browser.dir.path().join("charts").join(&name);
            let file = fs::read_to_string(file).expect("a chart");
            let mut titles = all_between(&file, "<title>", "</title>");
            let mut tips = all_between(figure, "data-tip=\"", "\"");
            // A line's own title comes before those of its markers in either.
            titles.sort();
            tips.sort();
            assert_eq!(tips, titles, "{suite}: {name}");
            compared += tips.len();
        }
        assert!(compared > 100, "{suite}: {compared}");
        // The table of all figures says what the others do.
        let (_, details) = dom.split_once("sortable details").expect("a table");
        let (details, _) = details.split_once("</table>").expect("its end");
        let (head, body) = details.split_once("<tbody>").expect("a body");
        assert_eq!(head.matches("<th ").count(), 23, "{suite}");
        for row in body.split("<tr ").skip(1) {
            let cells = row.matches("<td").count();
            assert!(cells == 22 || row.contains("colspan=\"21\"") && cells == 2, "{suite}: {row}");
        }
    }
}

/// A page of several suites has all but the first words of each packed.
#[test]
fn several_suites_are_unpacked() {
    let Some(browser) = Browser::with_report("configurations") else { return };
    let sources = ["configurations", "modern"].map(|suite| {
        let run = suites::all().into_iter().find(|run| run.suite == suite).expect("a suite");
        Source { measurements: data::measure(&run, 7, true), run, paths: vec!["a".into()] }
    });
    report::write_together(&sources, browser.dir.path()).expect("a report");
    browser.page(
        "together.html",
        r#"<script>
        WHEN_READY(() => {
            const count = selector => document.querySelectorAll(selector).length;
            const found = {
                error: document.documentElement.dataset.error || "none",
                packed: count("script.article"),
                sections: ["modern-ycsb", "configurations-analytics"].filter(id => document.getElementById(id)).length,
                charts: count("article svg.chart") > 20,
                buttons: count("table.sortable th") === count("table.sortable th > button") + count("table.sortable tbody th"),
                choices: count(".choice:not([hidden])"),
            };
            document.documentElement.dataset.found = Object.entries(found).map(([name, value]) => name + "=" + value).join("|");
        });
        </script>"#,
    );
    let dom = browser.dom("together.html");
    let values = ["error", "packed", "sections", "charts", "buttons", "choices"];
    let values = values.map(|name| found(&dom, name));
    assert_eq!(values, ["none", "0", "2", "true", "true", "2"]);
}

#[test]
fn all_figures_sort_and_follow_the_baseline() {
    let Some(browser) = Browser::with_report("leveldb-2011") else { return };
    browser.page(
        "details.html",
        r#"<script>
        const found = {};
        const fold = document.getElementById("leveldb-2011-1-baseline-details");
        const bar = document.querySelector(".choice");
        const done = () => {
            const table = fold.querySelector("table");
            const rows = () => Array.from(table.tBodies[0].rows).filter(row => row.cells.length > 3);
            const units = { ns: 1, "µs": 1e3, ms: 1e6, s: 1e9 };
            const column = at => rows().map(row => row.cells[at].textContent);
            const ns = text => parseFloat(text) * units[text.split(" ")[1]];
            const headers = Array.from(table.tHead.rows[0].cells, cell => cell.textContent);
            const p50 = headers.indexOf("p50"), ratio = headers.indexOf("Terrace ÷");
            table.tHead.rows[0].cells[p50].querySelector("button").click();
            const times = column(p50).map(ns);
            found.sorted = times.length > 40 && times.every((t, i) => i === 0 || t <= times[i - 1]);
            found.units = new Set(column(p50).map(text => text.split(" ")[1])).size > 1;
            const before = column(ratio).join();
            const select = bar.querySelector("select");
            select.value = Array.from(select.options).find(o => o.text === "engine ÷ LevelDB").value;
            select.dispatchEvent(new Event("change"));
            found.one = rows().filter(row => row.cells[0].textContent === "LevelDB").every(row => row.cells[ratio].textContent === "1.00×");
            found.head = table.tHead.rows[0].cells[ratio].textContent === "÷ LevelDB";
            bar.querySelector(".all-of").click();
            found.back = column(ratio).join() === before && before.includes("0.") && before.includes("–");
            found.promises = document.querySelectorAll(".promises div[data-e]").length > 14
                && document.querySelector(".promises").textContent.includes("operating system's cache");
            found.error = document.documentElement.dataset.error || "none";
            document.documentElement.dataset.found = Object.entries(found).map(e => e.join("=")).join("|");
        };
        new MutationObserver(done).observe(fold, { attributes: true, attributeFilter: ["data-drawn"] });
        WHEN_READY(() => { fold.open = true; });
        </script>"#,
    );
    let dom = browser.dom("details.html");
    assert_eq!(found(&dom, "error"), "none");
    for key in ["sorted", "units", "one", "head", "back", "promises"] {
        assert_eq!(found(&dom, key), "true", "{key}");
    }
}

#[test]
fn a_phone_does_not_scroll_sideways() {
    for suite in ["leveldb-2011", "bangdb-2012", "configurations", "basho-2011"] {
        let Some(browser) = Browser::with_report(suite) else { return };
        // A window cannot be as narrow as a phone; a frame can. It may not look into the page, so
        // the page tells it.
        browser.page(
            "inner.html",
            r#"<script>
            document.querySelectorAll("details").forEach(part => { part.open = true; });
            const root = document.documentElement;
            const wide = Array.from(document.querySelectorAll("body *")).filter(e => e.getBoundingClientRect().right > 361
                && !e.closest(".scroll, .grid .card, .skip, #tip"));
            parent.postMessage("width=" + root.scrollWidth + "|wide=" + wide.slice(0, 3).map(e => e.tagName + "." + e.className).join(), "*");
            </script>"#,
        );
        let outer = r#"<!DOCTYPE html><html><body style="margin:0"><script>
            addEventListener("message", event => { document.documentElement.dataset.found = event.data; });
            </script><iframe src="inner.html" style="border:0;width:360px;height:1500px"></iframe></body></html>"#;
        fs::write(browser.dir.path().join("phone.html"), outer).expect("a page");
        let dom = browser.dom("phone.html");
        assert_eq!(
            (found(&dom, "width"), found(&dom, "wide")),
            ("360".to_owned(), String::new()),
            "{suite}"
        );
        browser.screenshot("phone.html", (500, 1500), &format!("{suite}-phone.png"));
    }
}

#[test]
fn pictures_in_both_themes() {
    for suite in ["leveldb-2011", "modern"] {
        let Some(browser) = Browser::with_report(suite) else { return };
        browser.screenshot("report.html", (1280, 2400), &format!("{suite}-light.png"));
        browser.page(
            "dark.html",
            r#"<script>document.documentElement.dataset.theme = "dark";</script>"#,
        );
        browser.screenshot("dark.html", (1280, 2400), &format!("{suite}-dark.png"));
        browser.screenshot("charts/summary.svg", (800, 600), &format!("{suite}-summary.png"));
    }
}

#[test]
fn without_scripts_the_first_chart_and_the_overviews_are_there() {
    let Some(browser) = Browser::with_report("modern") else { return };
    let page = fs::read_to_string(browser.dir.path().join("report.html")).expect("a report");
    let (before, rest) = page.split_once("<script>").expect("a script");
    let (_, after) = rest.split_once("</script>").expect("its end");
    fs::write(browser.dir.path().join("plain.html"), format!("{before}{after}")).expect("a page");
    let dom = browser.dom("plain.html");
    assert!(!dom.contains("data-ready"));
    // The first chart and the figures with their ratios are there, and each further chart is a link
    // to its file, whose titles have the values. The button that needs a script is not shown.
    assert_eq!(dom.matches("<svg class=\"chart\"").count(), 1);
    let (_, table) = dom.split_once("id=\"modern-ycsb-overview\"").expect("a table");
    let (table, _) = table.split_once("</table>").expect("its end");
    assert!(table.matches("×").count() > 50 && table.matches("<td>").count() > 80);
    assert!(dom.contains("Scripts draw the charts below the first"));
    let chart = browser.dir.path().join("charts/ycsb-ycsba.svg");
    assert!(fs::read_to_string(chart).expect("a chart").contains("; median "));
    assert!(dom.matches(".svg\">SVG</a>").count() > 20 && dom.contains("id=\"theme\" hidden"));
}
