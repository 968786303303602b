//! Drawing: a canvas that writes SVG, and the finished chart, inside the page or as a file of its
//! own.
//!
//! Colours and fonts come from `assets/chart.css` by class. Inside the page its variables are set
//! by the page's theme; a file carries the rules with the values of both themes filled in, because
//! programs other than browsers know no variables.
//!
//! Invariants:
//! 1. Every text is escaped on its way to the canvas; nothing else puts text there.
//! 2. Coordinates are finite.
//! 3. A tip that names its cell (`Tip::Figure`) is a title in the file only: the page's script makes
//!    it from the suite's figures.

use std::fmt::Write;

use super::palette;

const RULES: &str = include_str!("../../assets/chart.css");

/// Escapes a text for SVG and HTML. What XML cannot hold becomes a replacement character.
pub(crate) fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            '\t' | '\n' | '\r' => out.push(' '),
            '\0'..='\x1f' | '\u{fffe}' | '\u{ffff}' => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
    out
}

/// About how wide a text is, in units of the font size. Fonts differ; this errs on the wide side.
pub(crate) fn width(text: &str, size: f64) -> f64 {
    let units: f64 = text
        .chars()
        .map(|c| match c {
            'i' | 'j' | 'l' | '.' | ',' | ':' | ';' | '\'' | '|' | '!' => 0.31,
            ' ' | 'f' | 't' | 'r' | '(' | ')' | '-' | 'I' => 0.4,
            'm' | 'w' | 'M' | 'W' | '@' | '%' => 0.92,
            'A'..='Z' => 0.69,
            c if c.is_ascii() => 0.62,
            c if c > '\u{2e7f}' => 1.05,
            _ => 0.65,
        })
        .sum();
    units * size
}

/// The text, cut with an ellipsis to fit `room`.
pub(crate) fn fit(text: &str, size: f64, room: f64) -> String {
    if width(text, size) <= room {
        return text.to_owned();
    }
    let mut cut = String::new();
    for c in text.chars() {
        cut.push(c);
        if width(&cut, size) > room - size * 0.8 {
            cut.pop();
            break;
        }
    }
    format!("{}…", cut.trim_end())
}

/// What a part of a chart shows when pointed at.
#[derive(Clone, Debug)]
pub(crate) enum Tip {
    /// Words that only this chart has.
    Words(String),
    /// What can be said of a column's figure in the cell with this number of the suite.
    Figure { cell: usize, words: String },
    /// Of the same, one of its latencies: its place among the percentiles.
    Latency { cell: usize, at: usize, words: String },
}

impl Tip {
    pub(crate) fn words(&self) -> &str {
        match self {
            Tip::Words(words) | Tip::Figure { words, .. } | Tip::Latency { words, .. } => words,
        }
    }

    /// The number of the cell, 0 where it has none.
    fn cell(&self) -> usize {
        match self {
            Tip::Figure { cell, .. } | Tip::Latency { cell, .. } => *cell,
            Tip::Words(_) => 0,
        }
    }
}

/// A corner of a line.
#[derive(Clone, Debug)]
pub(crate) struct Corner<'a> {
    pub(crate) at: (f64, f64),
    /// How high each round stands, if there was more than one.
    pub(crate) rounds: Vec<f64>,
    pub(crate) tip: &'a Tip,
}

/// A picture being drawn.
#[derive(Debug, Default)]
pub(crate) struct Canvas {
    out: String,
}

/// Before and after a title that the page leaves out. Texts cannot hold them: `escape`.
const LEFT_OUT: [char; 2] = ['\u{1}', '\u{2}'];

impl Canvas {
    /// Opens a group. What is drawn until `close` belongs to it and takes its colour.
    pub(crate) fn group(&mut self, class: &str) {
        self.group_of(class, None, None);
    }

    /// The same for what belongs to one column, so that a reader can hide it, and shows `tip` when
    /// pointed at.
    pub(crate) fn group_of(&mut self, class: &str, column: Option<usize>, tip: Option<&Tip>) {
        let _ = write!(self.out, "<g class=\"{}\"", escape(class));
        if let Some(column) = column {
            let _ = write!(self.out, " data-e=\"{column}\"");
        }
        self.tip(tip);
    }

    /// Ends a tag with what its element shows when pointed at.
    fn tip(&mut self, tip: Option<&Tip>) {
        match tip {
            Some(Tip::Figure { cell, .. }) => {
                let _ = write!(self.out, " data-c=\"{cell}\"");
            }
            Some(Tip::Latency { cell, at, .. }) => {
                let _ = write!(self.out, " data-c=\"{cell}\" data-p=\"{at}\"");
            }
            Some(Tip::Words(_)) | None => {}
        }
        self.out.push('>');
        let Some(tip) = tip else { return };
        let title = format!("<title>{}</title>", escape(tip.words()));
        let [from, to] = LEFT_OUT;
        match tip {
            Tip::Words(_) => self.out.push_str(&title),
            Tip::Figure { .. } | Tip::Latency { .. } => {
                let _ = write!(self.out, "{from}{title}{to}");
            }
        }
    }

    pub(crate) fn close(&mut self) {
        self.out.push_str("</g>");
    }

    pub(crate) fn rect(&mut self, class: &str, x: f64, y: f64, width: f64, height: f64) {
        let (x, y, width, height) =
            (place(x), place(y), place(width.max(0.0)), place(height.max(0.0)));
        let _ = write!(
            self.out,
            "<rect class=\"{}\" x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{height}\"/>",
            escape(class)
        );
    }

    pub(crate) fn line(&mut self, class: &str, from: (f64, f64), to: (f64, f64)) {
        let (x1, y1, x2, y2) = (place(from.0), place(from.1), place(to.0), place(to.1));
        let _ = write!(
            self.out,
            "<line class=\"{}\" x1=\"{x1}\" y1=\"{y1}\" x2=\"{x2}\" y2=\"{y2}\"/>",
            escape(class)
        );
    }

    /// A line through all points.
    pub(crate) fn polyline(&mut self, class: &str, points: &[(f64, f64)]) {
        let _ = write!(
            self.out,
            "<polyline class=\"{}\" points=\"{}\"/>",
            escape(class),
            places(points)
        );
    }

    /// The area between the points, the last joined with the first.
    pub(crate) fn polygon(&mut self, class: &str, points: &[(f64, f64)]) {
        let _ = write!(
            self.out,
            "<polygon class=\"{}\" points=\"{}\"/>",
            escape(class),
            places(points)
        );
    }

    pub(crate) fn circle(&mut self, class: &str, at: (f64, f64), radius: f64, tip: Option<&Tip>) {
        let (x, y, radius) = (place(at.0), place(at.1), place(radius));
        let _ = write!(
            self.out,
            "<circle class=\"{}\" cx=\"{x}\" cy=\"{y}\" r=\"{radius}\"",
            escape(class)
        );
        self.tip(tip);
        self.out.push_str("</circle>");
    }

    /// Dots, as one path: lines without length whose ends are round.
    pub(crate) fn dots(&mut self, points: impl Iterator<Item = (f64, f64)>) {
        let path: String = points.map(|(x, y)| format!("M{} {}h0", place(x), place(y))).collect();
        if path.is_empty() {
            return;
        }
        let _ = write!(self.out, "<path class=\"rounds\" d=\"{path}\"/>");
    }

    pub(crate) fn text(&mut self, class: &str, at: (f64, f64), text: &str) {
        let (x, y) = (place(at.0), place(at.1));
        let _ = write!(
            self.out,
            "<text class=\"{}\" x=\"{x}\" y=\"{y}\">{}</text>",
            escape(class),
            escape(text)
        );
    }

    /// A line through all corners with a marker at each, whose shape tells engines apart where
    /// colours do not. In the page the script puts the markers there: they would be most of a chart.
    pub(crate) fn marked_line(&mut self, corners: &[Corner<'_>], shape: usize, r: f64) {
        let each = |text: &dyn Fn(&Corner<'_>) -> String| {
            corners.iter().map(text).collect::<Vec<_>>().join(" ")
        };
        let mark = marker(shape, r);
        let points: Vec<(f64, f64)> = corners.iter().map(|corner| corner.at).collect();
        let _ = write!(
            self.out,
            "<polyline class=\"l\" points=\"{}\" data-mark=\"{mark}\" data-cells=\"{}\"",
            places(&points),
            each(&|corner| corner.tip.cell().to_string())
        );
        if corners.iter().any(|corner| matches!(corner.tip, Tip::Latency { .. })) {
            let at = |corner: &Corner<'_>| match corner.tip {
                Tip::Latency { at, .. } => at.to_string(),
                Tip::Words(_) | Tip::Figure { .. } => String::new(),
            };
            let _ = write!(self.out, " data-p=\"{}\"", each(&at));
        }
        if corners.iter().any(|corner| !corner.rounds.is_empty()) {
            let rounds = |corner: &Corner<'_>| {
                corner.rounds.iter().map(|y| place(*y)).collect::<Vec<_>>().join(",")
            };
            let _ = write!(self.out, " data-rounds=\"{}\"", each(&rounds));
        }
        let [from, to] = LEFT_OUT;
        let _ = write!(self.out, "/>{from}");
        for Corner { at, rounds, tip } in corners {
            let _ = write!(self.out, "<g class=\"mark\"><title>{}</title>", escape(tip.words()));
            self.dots(rounds.iter().map(|y| (at.0, *y)));
            let _ = write!(self.out, "<path class=\"f\" d=\"M{}{mark}\"/></g>", places(&[*at]));
        }
        self.out.push(to);
    }

    /// The finished chart.
    pub(crate) fn finish(self, width: f64, height: f64, label: String) -> Chart {
        Chart { width, height, label, bars_from: None, body: self.out }
    }
}

/// A marker by steps from its place: the same text wherever it stands.
fn marker(shape: usize, r: f64) -> String {
    let steps: &[(f64, f64)] = match shape % 5 {
        0 => {
            let (r, across) = (place(r), place(2.0 * r));
            return format!("m-{r},0a{r},{r} 0 1 0 {across},0a{r},{r} 0 1 0-{across},0z");
        }
        1 => &[(-r * 0.9, -r * 0.9), (r * 1.8, 0.0), (0.0, r * 1.8), (-r * 1.8, 0.0)],
        2 => &[(0.0, -r * 1.25), (r * 1.2, r * 2.25), (-r * 2.4, 0.0)],
        3 => &[(0.0, -r * 1.4), (r * 1.4, r * 1.4), (-r * 1.4, r * 1.4), (-r * 1.4, -r * 1.4)],
        _ => &[(0.0, r * 1.25), (r * 1.2, -r * 2.25), (-r * 2.4, 0.0)],
    };
    format!("m{}z", places(steps))
}

/// A coordinate, to a tenth.
fn place(value: f64) -> String {
    let text = format!("{:.1}", if value.is_finite() { value } else { 0.0 });
    text.strip_suffix(".0").unwrap_or(&text).to_owned()
}

fn places(points: &[(f64, f64)]) -> String {
    points.iter().map(|(x, y)| format!("{},{}", place(*x), place(*y))).collect::<Vec<_>>().join(" ")
}

/// A finished chart.
#[derive(Debug)]
pub(crate) struct Chart {
    width: f64,
    height: f64,
    /// The text alternative.
    label: String,
    /// Where the bars of its rows begin, if it has such: the page draws them anew where a reader
    /// hides rows.
    bars_from: Option<f64>,
    body: String,
}

impl Chart {
    /// With bars that begin at `from`.
    pub(crate) fn with_bars(self, from: f64) -> Chart {
        Chart { bars_from: Some(from), ..self }
    }

    /// As an element of the page, on one line.
    pub(crate) fn inline(&self) -> String {
        let bars = self.bars_from.map(|from| format!(" data-from=\"{}\"", place(from)));
        format!(
            "<svg class=\"chart\"{} role=\"img\" aria-label=\"{}\" viewBox=\"0 0 {w} {h}\" width=\"{w}\" height=\"{h}\">{}</svg>",
            bars.unwrap_or_default(),
            escape(&self.label),
            self.without_known_tips(),
            w = place(self.width),
            h = place(self.height),
        )
    }

    fn without_known_tips(&self) -> String {
        let [from, to] = LEFT_OUT;
        let parts = self.body.split(from);
        parts.map(|part| part.split_once(to).map_or(part, |(_, rest)| rest)).collect()
    }

    /// As a file that stands alone, on a background of its own, light or dark as the reader's
    /// system is.
    pub(crate) fn file(&self) -> String {
        const MARGIN: f64 = 16.0;
        let (width, height) = (self.width + 2.0 * MARGIN, self.height + 2.0 * MARGIN);
        let rules = format!("{}{}", palette::slot_rules(), RULES);
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"chart\" role=\"img\" aria-label=\"{label}\" \
             viewBox=\"-{MARGIN} -{MARGIN} {w} {h}\" width=\"{w}\" height=\"{h}\">\n\
             <style>\n{light}@media (prefers-color-scheme: dark) {{\n{dark}}}\n</style>\n\
             <rect class=\"page\" x=\"-{MARGIN}\" y=\"-{MARGIN}\" width=\"{w}\" height=\"{h}\" rx=\"10\"/>\n{body}\n</svg>\n",
            label = escape(&self.label),
            w = place(width),
            h = place(height),
            light = palette::fill_in(&rules, false),
            dark = palette::fill_in(&rules, true),
            body = self.body.replace(LEFT_OUT, ""),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_escaped() {
        let mut canvas = Canvas::default();
        canvas.group_of("c1", None, Some(&Tip::Words("a<b & \"c\"".to_owned())));
        canvas.text("v", (1.0, f64::NAN), "</svg>\u{1}");
        canvas.close();
        let chart = canvas.finish(10.0, 20.0, "<'>".to_owned());
        assert_eq!(
            chart.inline(),
            "<svg class=\"chart\" role=\"img\" aria-label=\"&lt;&#39;&gt;\" viewBox=\"0 0 10 20\" width=\"10\" height=\"20\">\
             <g class=\"c1\"><title>a&lt;b &amp; &quot;c&quot;</title><text class=\"v\" x=\"1\" y=\"0\">&lt;/svg&gt;\u{fffd}\
             </text></g></svg>"
        );
    }

    #[test]
    fn tips_that_the_script_knows_are_in_the_file_only() {
        let known = |at, words: &str| Tip::Latency { cell: 7, at, words: words.to_owned() };
        let (first, second) = (known(0, "first\u{1}"), known(2, "second"));
        let mut canvas = Canvas::default();
        canvas.group_of("mark", Some(3), Some(&Tip::Figure { cell: 7, words: "a figure".into() }));
        canvas.close();
        canvas.circle("f", (1.0, 2.0), 3.0, Some(&Tip::Words("words".to_owned())));
        let corner = |at, rounds: &[f64], tip| Corner { at, rounds: rounds.to_vec(), tip };
        let corners = [corner((1.0, 2.0), &[1.5, 3.0], &first), corner((3.0, 4.0), &[], &second)];
        canvas.marked_line(&corners, 1, 1.0);
        let chart = canvas.finish(10.0, 20.0, String::new());
        let (page, file) = (chart.inline(), chart.file());
        assert!(
            page.ends_with(
                "<g class=\"mark\" data-e=\"3\" data-c=\"7\"></g>\
                 <circle class=\"f\" cx=\"1\" cy=\"2\" r=\"3\"><title>words</title></circle>\
                 <polyline class=\"l\" points=\"1,2 3,4\" data-mark=\"m-0.9,-0.9 1.8,0 0,1.8 -1.8,0z\" \
                 data-cells=\"7 7\" data-p=\"0 2\" data-rounds=\"1.5,3 \"/></svg>"
            ),
            "{page}"
        );
        for title in ["a figure", "words", "first\u{fffd}", "second"] {
            assert!(file.contains(&format!("<title>{title}</title>")), "{title}: {file}");
        }
        assert!(file.contains("d=\"M3,4m-0.9,"), "{file}");
        assert!(!file.contains(LEFT_OUT) && !page.contains(LEFT_OUT));
    }

    #[test]
    fn a_file_needs_no_variables() {
        let file = Canvas::default().finish(10.0, 10.0, String::new()).file();
        assert!(!file.contains("var("), "{file}");
        assert!(file.contains("prefers-color-scheme"));
    }

    #[test]
    fn long_text_is_cut() {
        assert_eq!(fit("Terrace", 12.0, 100.0), "Terrace");
        let cut = fit("a name that never ends", 12.0, 60.0);
        assert!(cut.ends_with('…') && width(&cut, 12.0) <= 62.0, "{cut}");
        assert_eq!(fit("wwwwwwww", 12.0, 1.0), "…");
    }
}
