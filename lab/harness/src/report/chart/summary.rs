//! How many times faster Terrace is than every other engine: a line for each engine, and on it a
//! panel for writes and one for reads, on one scale. A dot is a workload, hollow where one of the two
//! was cut short; the bar and the number are the geometric mean of the filled ones, and beside it
//! stands how many of how many workloads these are. The README shows it; for narrow screens there is
//! one with the panels one below the other.

use super::super::number;
use super::super::palette;
use super::super::ratios::Ratio;
use super::super::scale::Scale;
use super::super::svg::{Canvas, Chart, Tip, fit, width};
use super::{SIZE, label_room};

/// An engine, or the best of all.
#[derive(Debug)]
pub(crate) struct Row {
    /// With its version.
    pub(crate) title: String,
    /// None for the best of the rest.
    pub(crate) column: Option<usize>,
    /// Of its colour; likewise.
    pub(crate) slot: Option<usize>,
    /// Whether its writes promise less: it stands in grey, behind the others.
    pub(crate) weaker: bool,
    /// Writes, reads.
    pub(crate) panels: [Panel; 2],
}

/// The workloads of one kind.
#[derive(Debug, Default)]
pub(crate) struct Panel {
    /// Of the workloads that both have done to the end.
    pub(crate) mean: Option<f64>,
    /// The ratio of each workload, and what the dot says.
    pub(crate) dots: Vec<(Ratio, Tip)>,
}

/// The words around the rows.
#[derive(Debug)]
pub(crate) struct Words {
    pub(crate) heading: String,
    pub(crate) note: String,
    /// Lines below the chart.
    pub(crate) caption: Vec<String>,
}

/// Where the panels stand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Layout {
    Beside,
    Below,
}

const ABOVE: f64 = 92.0;
const ROW: f64 = 26.0;
/// Between labels and panels beside each other.
const SPACE: f64 = 22.0;
/// The same where they are below each other.
const LITTLE_SPACE: f64 = 10.0;
/// Beside a panel: for the mean, and for how many workloads it is of.
const MEAN: f64 = 52.0;
const COUNT: f64 = 38.0;
/// Below a panel, for its axis.
const AXIS: f64 = 35.0;
/// Between panels, one below the other: for a title.
const TITLE: f64 = 50.0;
const NAMES: [&str; 2] = ["Writes", "Reads"];
const SLOWER: &str = "← slower";
/// The first that has room.
const FASTER: [&str; 3] = ["Terrace faster →", "faster →", "→"];

impl Layout {
    fn width(self) -> f64 {
        match self {
            Layout::Beside => 920.0,
            Layout::Below => 400.0,
        }
    }

    /// The texts above the chart, in lines.
    fn lines(self, text: &str, size: f64) -> Vec<String> {
        match self {
            Layout::Beside => vec![fit(text, size, self.width())],
            Layout::Below => lines(text, size, self.width()),
        }
    }
}

/// The text in lines that fit `room`.
fn lines(text: &str, size: f64, room: f64) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split(' ') {
        let last = lines.last_mut().expect("a line was begun");
        let longer = if last.is_empty() { word.to_owned() } else { format!("{last} {word}") };
        if last.is_empty() || width(&longer, size) <= room {
            *last = longer;
        } else {
            lines.push(word.to_owned());
        }
    }
    lines.iter().map(|line| fit(line, size, room)).collect()
}

/// The place of a panel.
#[derive(Clone, Copy)]
struct Place {
    /// Of the plot.
    left: f64,
    right: f64,
    /// Of the first row, and below the last.
    top: f64,
    bottom: f64,
}

/// Draws the rows in their order.
pub(crate) fn draw(rows: &[Row], words: &Words, layout: Layout) -> Chart {
    let total = layout.width();
    let most = if layout == Layout::Beside { 240.0 } else { 150.0 };
    let room = label_room(rows.iter().map(|row| row.title.as_str()), 60.0, most) + 6.0;
    let wide = match layout {
        Layout::Beside => (total - room - 2.0 * SPACE) / 2.0,
        Layout::Below => total - room - LITTLE_SPACE,
    };
    let mut canvas = Canvas::default();
    let mut y = 15.0;
    for line in layout.lines(&words.heading, 17.0) {
        canvas.text("large", (0.0, y), &line);
        y += 22.0;
    }
    for line in layout.lines(&words.note, SIZE) {
        canvas.text("soft", (0.0, y), &line);
        y += 17.0;
    }
    let top = ABOVE + (y - 54.0);
    let high = ROW * rows.len() as f64 + 4.0;
    let places = [0, 1].map(|panel| match layout {
        Layout::Beside => {
            let left = room + SPACE + f64::from(panel) * (wide + SPACE);
            Place { left, right: left + wide, top, bottom: top + high }
        }
        Layout::Below => {
            let top = top + f64::from(panel) * (high + AXIS + TITLE);
            let left = room + LITTLE_SPACE;
            Place { left, right: left + wide, top, bottom: top + high }
        }
    });
    let plots = places.map(|place| Place { right: place.right - MEAN - COUNT, ..place });
    // Panels beside each other share the labels of their rows.
    let labelled = if layout == Layout::Beside { &places[..1] } else { &places[..] };
    for (at, _) in rows.iter().enumerate().filter(|(_, row)| row.column.is_none()) {
        for place in labelled {
            canvas.rect("wash", 0.0, place.top + ROW * at as f64, total, ROW - 1.0);
        }
    }
    let scales = scales(rows, plots);
    for (panel, plot) in plots.iter().enumerate() {
        draw_panel(&mut canvas, NAMES[panel], *plot, places[panel].right, &scales[panel]);
    }
    let counts = [0, 1].map(|panel| rows.iter().map(|row| row.panels[panel].dots.len()).max());
    for (at, row) in rows.iter().enumerate() {
        canvas.group_of("row", row.column, None);
        let class = match (row.column.is_none(), row.weaker) {
            (true, _) => "end strong",
            (false, true) => "end soft",
            (false, false) => "end",
        };
        for place in labelled {
            let top = place.top + ROW * at as f64;
            canvas.rect("hit", 0.0, top, total, ROW);
            let label = fit(&row.title, SIZE, room);
            canvas.text(class, (room, top + ROW / 2.0 + 4.0), &label);
        }
        for (panel, scale) in scales.iter().enumerate() {
            let middle = places[panel].top + ROW * (at as f64 + 0.5);
            let of = counts[panel].unwrap_or_default();
            let tips = layout == Layout::Beside;
            draw_row(&mut canvas, row, panel, scale, (middle, places[panel].right), (of, tips));
        }
        canvas.close();
    }
    let mut y = places[1].bottom + 40.0;
    let caption = words.caption.iter().flat_map(|line| layout.lines(line, 11.0));
    for line in caption {
        canvas.text("soft small", (0.0, y), &line);
        y += 15.0;
    }
    let said = rows.iter().map(|row| {
        let mean = |panel: usize| {
            row.panels[panel].mean.map_or_else(|| number::NONE.to_owned(), number::ratio)
        };
        format!("{}: writes {}, reads {}", row.title, mean(0), mean(1))
    });
    let label =
        format!("{}. {}. {}.", words.heading, words.note, said.collect::<Vec<_>>().join("; "));
    canvas.finish(total, y - 5.0, label)
}

/// The axes of the panels, which show the same range, so that a bar is as long in either.
fn scales(rows: &[Row], plots: [Place; 2]) -> [Scale; 2] {
    let dots = || rows.iter().flat_map(|row| &row.panels).flat_map(|panel| &panel.dots);
    plots.map(|plot| {
        // 1 is always on the axis, with some room on either side.
        let values = dots().map(|(ratio, _)| ratio.value).chain([0.8, 4.0]);
        Scale::log(values, plot.left + 4.0, plot.right - 4.0)
    })
}

/// The frame of a panel, whose figures end at `end`.
fn draw_panel(canvas: &mut Canvas, name: &str, plot: Place, end: f64, x: &Scale) {
    let Place { left, top, bottom, .. } = plot;
    let one = x.at(1.0);
    canvas.text("title", (left, top - 32.0), name);
    canvas.rect("below", left, top - 4.0, one - left, bottom - top + 4.0);
    let mut free_from = f64::NEG_INFINITY;
    for tick in x.ticks() {
        canvas.line("grid", (x.at(tick), top - 4.0), (x.at(tick), bottom));
        let text = format!("{}×", number::tick(tick));
        let half = width(&text, SIZE) / 2.0;
        // In a narrow panel there is no room for all of them.
        if x.at(tick) - half >= free_from {
            canvas.text("axis middle", (x.at(tick), bottom + 17.0), &text);
            free_from = x.at(tick) + half + LITTLE_SPACE / 2.0;
        }
    }
    canvas.line("one", (one, top - 10.0), (one, bottom));
    let room = end - COUNT - width("mean", SIZE) - LITTLE_SPACE / 2.0 - (one + 6.0);
    if let Some(faster) = FASTER.into_iter().find(|text| width(text, SIZE) <= room) {
        canvas.text("axis", (one + 6.0, top - 13.0), faster);
    }
    if one - left > width(SLOWER, SIZE) {
        canvas.text("axis end", (one - 6.0, top - 13.0), SLOWER);
    }
    canvas.text("axis end", (end - COUNT, top - 13.0), "mean");
    canvas.text("axis end", (end, top - 13.0), "cells");
}

/// A row in one panel: its middle, and where its figures end. The panel is `of` so many workloads.
/// Without `tips` dots do not say which they are: nothing points at a narrow screen.
fn draw_row(
    canvas: &mut Canvas,
    row: &Row,
    panel: usize,
    x: &Scale,
    (middle, right): (f64, f64),
    (of, tips): (usize, bool),
) {
    let shown = &row.panels[panel];
    let one = x.at(1.0);
    let class = match row.slot {
        _ if row.weaker => "grey".to_owned(),
        None => "c0".to_owned(),
        Some(slot) => palette::class(slot),
    };
    canvas.group(&class);
    if let Some(mean) = shown.mean {
        let (from, to) = (one.min(x.at(mean)), one.max(x.at(mean)));
        canvas.rect("bar", from, middle - 3.0, to - from, 6.0);
    }
    for (ratio, tip) in &shown.dots {
        let class = if ratio.cut { "hollow" } else { "dot" };
        canvas.circle(class, (x.at(ratio.value), middle), 3.4, Some(tip).filter(|_| tips));
    }
    if let Some(mean) = shown.mean {
        canvas.rect("f", x.at(mean) - 1.5, middle - 8.0, 3.0, 16.0);
    }
    canvas.close();
    let (class, text) = match shown.mean {
        Some(mean) if mean < 1.0 => ("number strong end bad", number::ratio(mean)),
        Some(mean) => ("number strong end", number::ratio(mean)),
        None => ("number end soft", number::NONE.to_owned()),
    };
    canvas.text(class, (right - COUNT, middle + 4.0), &text);
    let counted = shown.dots.iter().filter(|(ratio, _)| !ratio.cut).count();
    let cells = if counted == of { of.to_string() } else { format!("{counted}/{of}") };
    canvas.text("axis end number", (right, middle + 4.0), &cells);
}
