//! A report read back: the page with what it packs, the table and the charts, and what holds of every
//! report.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use lab_harness::report;
use lab_harness::run::{Measurements, Run};
use serde_json::Value;
use tempfile::TempDir;

use crate::markup::assert_well_formed;

/// The page, the table and the charts of a run.
pub(crate) struct Report {
    /// The page with all that it packs: charts, and texts as they would stand in it.
    pub(crate) page: String,
    /// The page as readers without scripts have it.
    pub(crate) plain: String,
    /// What the script of each suite is given.
    pub(crate) packed: Vec<Value>,
    /// The bytes of the page as it is.
    pub(crate) size: usize,
    pub(crate) csv: String,
    pub(crate) charts: Vec<(String, String)>,
}

pub(crate) fn read(dir: &Path) -> Report {
    let text = |path: &Path| {
        fs::read_to_string(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
    };
    let mut charts: Vec<(String, String)> = fs::read_dir(dir.join("charts"))
        .expect("a directory of charts")
        .map(|entry| entry.expect("an entry").path())
        .map(|path| (path.file_name().expect("a name").to_string_lossy().into_owned(), text(&path)))
        .collect();
    charts.sort();
    let raw = text(&dir.join("report.html"));
    let (plain, packed) = unpacked(&raw);
    let mut page = plain.clone();
    packed.iter().for_each(|value| add_texts(value, &mut page));
    Report { page, plain, packed, size: raw.len(), csv: text(&dir.join("results.csv")), charts }
}

pub(crate) fn report(run: &Run, measurements: &Measurements) -> Report {
    let dir = TempDir::new().expect("a directory");
    report::write(run, measurements, dir.path()).expect("a report");
    let report = read(dir.path());
    check(&report);
    report
}

/// The page without its packed figures, and these. Packed articles are where they belong.
fn unpacked(page: &str) -> (String, Vec<Value>) {
    let text = |part: Vec<u8>| String::from_utf8(part).expect("text");
    let whole = replaced(page, "article", text);
    let mut parts = Vec::new();
    let plain = replaced(&whole, "packed", |part| {
        parts.push(serde_json::from_slice(&part).expect("JSON"));
        String::new()
    });
    (plain, parts)
}

/// The page with its packed parts of a class replaced.
fn replaced(page: &str, class: &str, mut by: impl FnMut(Vec<u8>) -> String) -> String {
    let start = format!("<script type=\"text/plain\" class=\"{class}\">");
    let (mut plain, mut rest) = (String::new(), page);
    while let Some((before, packed)) = rest.split_once(&start) {
        let (packed, after) = packed.split_once("</script>").expect("its end");
        let bytes = STANDARD.decode(packed).expect("base64");
        let part = miniz_oxide::inflate::decompress_to_vec_zlib(&bytes).expect("zlib");
        plain.push_str(before);
        plain.push_str(&by(part));
        rest = after;
    }
    plain.push_str(rest);
    plain
}

/// Adds all texts of a value, charts as they are and others escaped.
fn add_texts(value: &Value, page: &mut String) {
    match value {
        Value::String(text) if text.starts_with("<svg class=\"chart\"") => page.push_str(text),
        Value::String(text) => page.push_str(&escaped(text)),
        Value::Array(values) => values.iter().for_each(|value| add_texts(value, page)),
        Value::Object(values) => values.values().for_each(|value| add_texts(value, page)),
        _ => {}
    }
    page.push('\n');
}

/// How a text stands in the page.
pub(crate) fn escaped(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
        .replace('\'', "&#39;")
}

fn aria_label(chart: &str) -> Option<&str> {
    chart.split_once("aria-label=\"")?.1.split('"').next()
}

/// Properties of every report.
pub(crate) fn check(report: &Report) {
    assert_well_formed("report.html", &report.plain);
    check_packed_charts(report);
    check_lists(report);
    let mut anchors: Vec<&str> = report
        .plain
        .split(" id=\"")
        .skip(1)
        .map(|rest| rest.split('"').next().unwrap_or_default())
        .collect();
    let all = anchors.len();
    anchors.sort_unstable();
    anchors.dedup();
    assert_eq!(anchors.len(), all, "an anchor stands for one place");
    for (name, chart) in &report.charts {
        assert_well_formed(name, chart);
        assert!(chart.contains("aria-label=") && !chart.contains("var("), "{name}");
        assert!(report.plain.contains(&format!("\"charts/{name}\"")), "no link to {name}");
    }
    let texts = report
        .charts
        .iter()
        .map(|(name, text)| (name.as_str(), text))
        .chain([("report.html", &report.page)]);
    for (name, text) in texts {
        for odd in ["NaN", "=\"inf", " inf ", ">inf<", "-inf"] {
            assert!(!text.contains(odd), "{name} contains {odd:?}");
        }
        for outside in
            ["src=", "@import", "url(", "<link rel=\"stylesheet\"", "fetch(", "XMLHttpRequest"]
        {
            assert!(!text.contains(outside), "{name} contains {outside:?}");
        }
    }
    let fields = |line: &str| {
        let mut quoted = false;
        line.chars()
            .filter(|c| {
                quoted ^= *c == '"';
                *c == ',' && !quoted
            })
            .count()
    };
    let mut lines = report.csv.lines();
    let head = fields(lines.next().expect("a head"));
    lines.for_each(|line| assert_eq!(fields(line), head, "{line}"));
}

/// Each label stands for a packed chart, which is the one of its link.
fn check_packed_charts(report: &Report) {
    let charts: BTreeMap<&str, &str> = report
        .packed
        .iter()
        .flat_map(|part| part["charts"].as_object().expect("charts"))
        .map(|(name, chart)| (name.as_str(), chart.as_str().expect("a chart")))
        .collect();
    let places: Vec<&str> = report.plain.split("<p class=\"label\">").skip(1).collect();
    assert_eq!(charts.len(), places.len(), "a packed chart has a place");
    for place in places {
        let (_, link) = place.split_once("\"charts/").expect("a link");
        let name = link.split('"').next().unwrap_or_default();
        let chart = charts[format!("charts/{name}").as_str()];
        assert_well_formed(name, chart);
        let file = report.charts.iter().find(|(file, _)| file == name).expect("a file");
        assert_eq!(aria_label(&file.1), aria_label(chart), "{name} is drawn in its place");
    }
}

/// The script finds a figure by its column's place in a list.
fn check_lists(report: &Report) {
    for part in &report.packed {
        let engines = part["engines"].as_array().expect("engines").len();
        let sections = part["sections"].as_array().expect("sections");
        for cell in sections.iter().flat_map(|s| s["cells"].as_array().expect("cells")) {
            let lists = ["f", "p"].map(|key| cell[key].as_array().expect("lists"));
            for list in lists.into_iter().flatten() {
                let texts = list.as_str().expect("a list").split('|').count();
                assert_eq!(texts, engines.max(1), "{list}");
            }
            assert_eq!(cell["r"].as_array().map(Vec::len), Some(engines));
        }
    }
}
