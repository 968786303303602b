//! How many times faster Terrace is than every other engine: a line for each engine, and on it a
//! panel for writes and one for reads. A dot is a workload, hollow where one of the two was cut
//! short; the bar and the number are the geometric mean of the filled ones. The README shows it.

use super::super::number;
use super::super::palette;
use super::super::ratios::Ratio;
use super::super::scale::Scale;
use super::super::svg::{Canvas, Chart, fit};
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
    pub(crate) dots: Vec<(Ratio, String)>,
}

/// The words around the rows.
#[derive(Debug)]
pub(crate) struct Words {
    pub(crate) heading: String,
    pub(crate) note: String,
    /// Lines below the chart.
    pub(crate) caption: Vec<String>,
}

const WIDTH: f64 = 860.0;
const TOP: f64 = 92.0;
const ROW: f64 = 26.0;
/// Between labels and panels.
const GAP: f64 = 22.0;
/// For the mean beside a panel.
const MEAN: f64 = 52.0;
const NAMES: [&str; 2] = ["Writes", "Reads"];

/// Draws the rows in their order.
pub(crate) fn draw(rows: &[Row], words: &Words) -> Chart {
    let room = label_room(rows.iter().map(|row| row.title.as_str()), 60.0, 240.0) + 6.0;
    let wide = (WIDTH - room - 2.0 * GAP) / 2.0;
    let bottom = TOP + ROW * rows.len() as f64 + 4.0;
    let mut canvas = Canvas::default();
    canvas.text("large", (0.0, 15.0), &fit(&words.heading, 17.0, WIDTH));
    canvas.text("soft", (0.0, 37.0), &fit(&words.note, SIZE, WIDTH));
    for (at, _) in rows.iter().enumerate().filter(|(_, row)| row.column.is_none()) {
        canvas.rect("wash", 0.0, TOP + ROW * at as f64, WIDTH, ROW - 1.0);
    }
    let scales = [0, 1].map(|panel| {
        let left = room + GAP + panel as f64 * (wide + GAP);
        draw_panel(&mut canvas, rows, panel, (left, left + wide - MEAN), bottom)
    });
    for (at, row) in rows.iter().enumerate() {
        let top = TOP + ROW * at as f64;
        canvas.group_of("row", row.column, None);
        canvas.rect("hit", 0.0, top, WIDTH, ROW);
        let class = match (row.column.is_none(), row.weaker) {
            (true, _) => "end strong",
            (false, true) => "end soft",
            (false, false) => "end",
        };
        canvas.text(class, (room, top + ROW / 2.0 + 4.0), &fit(&row.title, SIZE, room));
        for (panel, scale) in scales.iter().enumerate() {
            let right = room + GAP + wide + panel as f64 * (wide + GAP);
            draw_row(&mut canvas, row, panel, scale, (top + ROW / 2.0, right));
        }
        canvas.close();
    }
    for (at, line) in words.caption.iter().enumerate() {
        let at = bottom + 40.0 + 15.0 * at as f64;
        canvas.text("soft small", (0.0, at), &fit(line, 11.0, WIDTH));
    }
    let said = rows.iter().map(|row| {
        let mean = |panel: usize| {
            row.panels[panel].mean.map_or_else(|| number::NONE.to_owned(), number::ratio)
        };
        format!("{}: writes {}, reads {}", row.title, mean(0), mean(1))
    });
    let label =
        format!("{}. {}. {}.", words.heading, words.note, said.collect::<Vec<_>>().join("; "));
    canvas.finish(WIDTH, bottom + 35.0 + 15.0 * words.caption.len() as f64, label)
}

/// The frame of a panel; returns its axis.
fn draw_panel(
    canvas: &mut Canvas,
    rows: &[Row],
    panel: usize,
    (left, right): (f64, f64),
    bottom: f64,
) -> Scale {
    let dots = rows.iter().flat_map(|row| &row.panels[panel].dots);
    // 1 is always on the axis, with some room on either side.
    let x =
        Scale::log(dots.map(|(ratio, _)| ratio.value).chain([0.8, 4.0]), left + 4.0, right - 4.0);
    let one = x.at(1.0);
    canvas.text("title", (left, TOP - 32.0), NAMES[panel]);
    canvas.rect("below", left, TOP - 4.0, one - left, bottom - TOP + 4.0);
    for tick in x.ticks() {
        canvas.line("grid", (x.at(tick), TOP - 4.0), (x.at(tick), bottom));
        let text = format!("{}×", number::tick(tick));
        canvas.text("axis middle", (x.at(tick), bottom + 17.0), &text);
    }
    canvas.line("one", (one, TOP - 10.0), (one, bottom));
    canvas.text("axis", (one + 6.0, TOP - 13.0), "Terrace faster →");
    x
}

/// A row in one panel: its middle, and where the mean ends.
fn draw_row(canvas: &mut Canvas, row: &Row, panel: usize, x: &Scale, (middle, right): (f64, f64)) {
    let shown = &row.panels[panel];
    let one = x.at(1.0);
    let class = match row.slot {
        _ if row.weaker => "grey".to_owned(),
        None => "c0".to_owned(),
        Some(slot) => palette::class(slot),
    };
    canvas.group(&class, None);
    if let Some(mean) = shown.mean {
        let (from, to) = (one.min(x.at(mean)), one.max(x.at(mean)));
        canvas.rect("bar", from, middle - 3.0, to - from, 6.0);
    }
    for (ratio, tip) in &shown.dots {
        canvas.group("mark", Some(tip));
        let class = if ratio.cut { "hollow" } else { "dot" };
        canvas.circle(class, (x.at(ratio.value), middle), 3.4);
        canvas.close();
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
    canvas.text(class, (right - 4.0, middle + 4.0), &text);
}
