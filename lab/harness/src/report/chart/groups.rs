//! Bars in groups: for every setting a group, in it a bar for every engine, with a second figure
//! beside the value.

use super::super::scale::Scale;
use super::super::svg::{Canvas, Chart, Tip, fit, width};
use super::bars::Value;
use super::{Pen, SIZE};

/// A setting.
#[derive(Debug)]
pub(crate) struct Group {
    pub(crate) label: String,
    pub(crate) bars: Vec<GroupBar>,
}

/// A bar of a group.
#[derive(Debug)]
pub(crate) struct GroupBar {
    pub(crate) pen: Pen,
    pub(crate) value: Value,
    /// Beside the value, in soft letters.
    pub(crate) beside: String,
    pub(crate) tip: Tip,
}

const TITLE: f64 = 18.0;
const ROW: f64 = 15.0;
const GAP: f64 = 8.0;
const TOP: f64 = 40.0;

/// Draws the groups one below the other.
pub(crate) fn draw(groups: &[Group], heading: &str, note: &str, total: f64) -> Chart {
    let all = || groups.iter().flat_map(|group| &group.bars);
    let text = |bar: &GroupBar| match &bar.value {
        Value::Figure { text, .. } => width(text, SIZE) + 6.0 + width(&bar.beside, 11.0),
        Value::Nothing(_) => 0.0,
    };
    let to = total - all().map(text).fold(40.0, f64::max).min(total * 0.5) - 8.0;
    let most = all().filter_map(|bar| match &bar.value {
        Value::Figure { value, rounds, .. } => {
            Some(rounds.iter().copied().fold(*value, f64::max)).filter(|v| v.is_finite())
        }
        Value::Nothing(_) => None,
    });
    let scale = Scale::linear(0.0, most.fold(0.0, f64::max), 0.0, to);
    let mut canvas = Canvas::default();
    canvas.text("strong", (0.0, 12.0), &fit(heading, SIZE, total));
    let beside = width(heading, SIZE) * 1.06 + 8.0;
    canvas.text("axis", (beside, 12.0), &fit(note, 11.0, total - beside));
    legend(&mut canvas, groups, total);
    let mut y = TOP;
    for group in groups {
        canvas.text("small soft", (0.0, y + 12.0), &fit(&group.label, 11.0, total));
        y += TITLE;
        for bar in &group.bars {
            canvas.group_of(&format!("mark {}", bar.pen.class()), bar.pen.column, Some(&bar.tip));
            canvas.rect("hit", 0.0, y, total, ROW);
            match &bar.value {
                Value::Figure { value, rounds, text } => {
                    let end = scale.at(*value).max(0.75);
                    canvas.rect(
                        if bar.pen.weaker { "weak" } else { "f" },
                        0.0,
                        y + 1.5,
                        end,
                        ROW - 3.0,
                    );
                    if !rounds.is_empty() {
                        canvas.dots(rounds.iter().map(|value| (scale.at(*value), y + ROW / 2.0)));
                    }
                    let end = rounds.iter().map(|value| scale.at(*value)).fold(end, f64::max);
                    canvas.text("number", (end + 5.0, y + 11.5), text);
                    let next = end + 5.0 + width(text, SIZE) + 6.0;
                    canvas.text("axis number", (next, y + 11.5), &bar.beside);
                }
                Value::Nothing(word) => {
                    let words = format!("{}: {word}", bar.pen.title);
                    canvas.text("gap", (4.0, y + 11.5), &fit(&words, 11.0, total));
                }
            }
            canvas.close();
            y += ROW;
        }
        y += GAP;
    }
    canvas.line("base", (0.0, TOP), (0.0, y - GAP));
    let lines = groups.iter().map(|group| {
        let bars = group.bars.iter().map(|bar| match &bar.value {
            Value::Figure { text, .. } => format!("{} {text} {}", bar.pen.title, bar.beside),
            Value::Nothing(word) => format!("{} {word}", bar.pen.title),
        });
        format!("{}: {}", group.label, bars.collect::<Vec<_>>().join(", "))
    });
    let label = format!("Grouped bar chart: {heading}. {}.", lines.collect::<Vec<_>>().join("; "));
    canvas.finish(total, y, label).with_bars(0.0)
}

/// The engines of the first group that has most of them.
fn legend(canvas: &mut Canvas, groups: &[Group], total: f64) {
    let Some(widest) = groups.iter().max_by_key(|group| group.bars.len()) else { return };
    let mut x = 0.0;
    for bar in &widest.bars {
        let label = bar.pen.label();
        let room = 14.0 + width(&label, 11.0) + 12.0;
        if x + room > total + 12.0 && x > 0.0 {
            break;
        }
        canvas.group_of(&bar.pen.class(), bar.pen.column, None);
        canvas.rect(if bar.pen.weaker { "weak" } else { "f" }, x, 21.0, 10.0, 10.0);
        canvas.text("small", (x + 14.0, 30.0), &label);
        canvas.close();
        x += room;
    }
}
