//! Terrace against every other engine: for each a line with the geometric mean of its ratios and a
//! dot for every cell, on a logarithmic axis around 1. The README shows it.

use super::super::number;
use super::super::palette;
use super::super::scale::Scale;
use super::super::svg::{Canvas, Chart, fit};
use super::{SIZE, label_room};

/// An engine, or the best of all.
#[derive(Debug)]
pub(crate) struct Row {
    pub(crate) title: String,
    /// None for the best of the rest.
    pub(crate) slot: Option<usize>,
    pub(crate) mean: f64,
    /// The ratio of each cell, and what the dot says.
    pub(crate) cells: Vec<(f64, String)>,
    /// The text of the line.
    pub(crate) tip: String,
}

const WIDTH: f64 = 760.0;
const TOP: f64 = 84.0;
const ROW: f64 = 27.0;
/// Where 1 is nearer to the axis's beginning, the word before it would stand in the column of
/// means.
const SLOWER_ROOM: f64 = 44.0;

/// Draws the rows in their order. `heading` and `note` stand above.
pub(crate) fn draw(rows: &[Row], heading: &str, note: &str) -> Chart {
    let room = label_room(rows.iter().map(|row| row.title.as_str()), 60.0, 210.0) + 6.0;
    let (left, right) = (room + 84.0, WIDTH - 50.0);
    let bottom = TOP + ROW * rows.len() as f64 + 4.0;
    let ratios = rows.iter().flat_map(|row| row.cells.iter().map(|(ratio, _)| *ratio));
    // 1 is always on the axis, with some room on either side.
    let x = Scale::log(ratios.chain([0.8, 4.0]), left, right);
    let one = x.at(1.0);

    let mut canvas = Canvas::default();
    canvas.text("large", (0.0, 15.0), &fit(heading, 17.0, WIDTH));
    canvas.text("soft", (0.0, 37.0), &fit(note, SIZE, WIDTH));
    canvas.rect("below", left - 8.0, TOP - 4.0, one - left + 8.0, bottom - TOP + 4.0);
    for tick in x.ticks() {
        canvas.line("grid", (x.at(tick), TOP - 4.0), (x.at(tick), bottom));
        canvas.text(
            "axis middle",
            (x.at(tick), bottom + 17.0),
            &format!("{}×", number::tick(tick)),
        );
    }
    canvas.line("one", (one, TOP - 12.0), (one, bottom));
    if one - left >= SLOWER_ROOM {
        canvas.text("axis end", (one - 8.0, TOP - 14.0), "slower ←");
    }
    canvas.text("axis", (one + 8.0, TOP - 14.0), "→ Terrace is faster");
    canvas.text("axis end", (room + 62.0, TOP - 24.0), "geometric");
    canvas.text("axis end", (room + 62.0, TOP - 11.0), "mean");
    canvas.text("axis end", (WIDTH, TOP - 24.0), "cells");
    canvas.text("axis end", (WIDTH, TOP - 11.0), "led");
    for (at, row) in rows.iter().enumerate() {
        let top = TOP + ROW * at as f64;
        let middle = top + ROW / 2.0;
        let best = row.slot.is_none();
        if best {
            canvas.rect("wash", 0.0, top, WIDTH, ROW - 1.0);
        }
        canvas.group(
            &format!("mark {}", row.slot.map_or("c0".to_owned(), palette::class)),
            Some(&row.tip),
        );
        canvas.rect("hit", 0.0, top, WIDTH, ROW);
        canvas.text(
            if best { "end strong" } else { "end" },
            (room, middle + 4.0),
            &fit(&row.title, SIZE, room),
        );
        let (from, to) = (one.min(x.at(row.mean)), one.max(x.at(row.mean)));
        canvas.rect("bar", from, middle - 3.0, to - from, 6.0);
        canvas.close();
        canvas.group(&row.slot.map_or("c0".to_owned(), palette::class), None);
        for (ratio, tip) in &row.cells {
            canvas.group("mark", Some(tip));
            canvas.circle("dot", (x.at(*ratio), middle), 3.6);
            canvas.close();
        }
        canvas.rect("f", x.at(row.mean) - 2.0, middle - 9.0, 4.0, 18.0);
        canvas.close();
        let led = row.cells.iter().filter(|(ratio, _)| *ratio >= 1.0).count();
        let mean = if row.mean < 1.0 { "number strong end bad" } else { "number strong end" };
        canvas.text(mean, (room + 62.0, middle + 4.0), &number::ratio(row.mean));
        let count = format!("{led}/{}", row.cells.len());
        canvas.text("number end soft", (WIDTH, middle + 4.0), &count);
    }
    let lines = rows.iter().map(|row| {
        let led = row.cells.iter().filter(|(ratio, _)| *ratio >= 1.0).count();
        format!("{} {}, {led} of {} cells led", row.title, number::ratio(row.mean), row.cells.len())
    });
    let label = format!("{heading}. {note}. {}.", lines.collect::<Vec<_>>().join("; "));
    canvas.finish(WIDTH, bottom + 24.0, label)
}
