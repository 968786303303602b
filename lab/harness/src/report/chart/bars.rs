//! Bars, as the sources drew them: a line for every engine with its name, a bar and the value.

use super::super::svg::{Canvas, Chart, Tip, fit, width};
use super::{Pen, SIZE, label_room};

/// A line of the chart.
#[derive(Debug)]
pub(crate) struct Bar {
    pub(crate) pen: Pen,
    pub(crate) value: Value,
    /// Shown when pointed at.
    pub(crate) tip: Tip,
}

/// The value of a line.
#[derive(Debug)]
pub(crate) enum Value {
    Figure {
        value: f64,
        /// The value of each round, if there was more than one.
        rounds: Vec<f64>,
        text: String,
    },
    /// Why there is no figure, in a word or two.
    Nothing(String),
}

const ROW: f64 = 21.0;
const BAR: f64 = 13.0;
const TOP: f64 = 24.0;
/// The height of a second line of the heading.
const LINE: f64 = 15.0;

/// Draws the bars one below the other. `heading` stands above, `note` beside it in soft letters.
pub(crate) fn draw(bars: &[Bar], heading: &str, note: &str, total: f64) -> Chart {
    let labels: Vec<String> = bars.iter().map(|bar| bar.pen.label()).collect();
    let room = label_room(labels.iter().map(String::as_str), 40.0, total * 0.46);
    let from = room + 8.0;
    let text_room = bars.iter().map(|bar| value_width(&bar.value)).fold(30.0, f64::max) + 8.0;
    let to = (total - text_room).max(from + 40.0);
    // Sources drew bars on a linear axis that begins at 0; so does this.
    let tops = bars.iter().map(|bar| match bar.value {
        Value::Figure { value, ref rounds, .. } => rounds.iter().copied().fold(value, f64::max),
        Value::Nothing(_) => 0.0,
    });
    let most = tops.filter(|top| top.is_finite()).fold(0.0, f64::max);
    let at = |value: f64| {
        let part = if most > 0.0 { value / most } else { 0.0 };
        from + (to - from) * if part.is_nan() { 0.0 } else { part.clamp(0.0, 1.0) }
    };
    let beside = width(heading, SIZE) * 1.06 + 8.0;
    let same_line = beside + width(note, 11.0) <= total;
    let above = if same_line { TOP } else { TOP + LINE };
    let height = above + ROW * bars.len() as f64 + 2.0;
    let mut canvas = Canvas::default();
    canvas.text("strong", (0.0, 12.0), &fit(heading, SIZE, total));
    let place = if same_line { (beside, 12.0) } else { (0.0, 12.0 + LINE) };
    canvas.text("axis", place, &fit(note, 11.0, total));
    for (row, (bar, label)) in bars.iter().zip(&labels).enumerate() {
        let top = above + ROW * row as f64;
        let base = top + ROW / 2.0 + 4.0;
        canvas.group_of(&format!("mark {}", bar.pen.class()), bar.pen.column, Some(&bar.tip));
        canvas.rect("hit", 0.0, top, total, ROW);
        let terrace = bar.pen.slot == 0;
        canvas.text(
            if terrace { "end strong" } else { "end" },
            (room, base),
            &fit(label, SIZE, room),
        );
        match &bar.value {
            Value::Figure { value, rounds, text } => {
                let end = at(*value).max(from + 0.75);
                let y = top + (ROW - BAR) / 2.0;
                canvas.rect(if bar.pen.weaker { "weak" } else { "f" }, from, y, end - from, BAR);
                let mut right = end;
                if !rounds.is_empty() {
                    let places = rounds.iter().map(|value| at(*value));
                    right = places.clone().fold(right, f64::max);
                    canvas.dots(places.map(|x| (x, top + ROW / 2.0)));
                }
                canvas.text(
                    if terrace { "number strong" } else { "number" },
                    (right + 5.0, base),
                    text,
                );
            }
            Value::Nothing(word) => {
                canvas.text("gap", (from + 3.0, base), &fit(word, 11.0, total - from - 3.0))
            }
        }
        canvas.close();
    }
    canvas.line("base", (from, above), (from, height - 2.0));
    let lines = bars.iter().map(|bar| match &bar.value {
        Value::Figure { text, .. } => format!("{} {text}", bar.pen.title),
        Value::Nothing(word) => format!("{} {word}", bar.pen.title),
    });
    let label = format!("Bar chart: {heading}. {}.", lines.collect::<Vec<_>>().join(", "));
    canvas.finish(total, height, label).with_bars(from)
}

fn value_width(value: &Value) -> f64 {
    match value {
        Value::Figure { text, .. } => width(text, SIZE),
        Value::Nothing(_) => 0.0,
    }
}
