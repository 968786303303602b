//! Lines: throughput against threads, latency against percentile. The engines' names stand at the
//! lines' ends.

use super::super::number;
use super::super::palette;
use super::super::scale::Scale;
use super::super::svg::{Canvas, Chart, Corner, Tip, fit, width};
use super::{Pen, SIZE, axis_title, label_room, spread_labels};

/// A line.
#[derive(Debug)]
pub(crate) struct Line {
    pub(crate) pen: Pen,
    pub(crate) points: Vec<Point>,
}

/// A point of a line.
#[derive(Clone, Debug)]
pub(crate) struct Point {
    pub(crate) x: f64,
    pub(crate) y: f64,
    /// The value of each round, if there was more than one.
    pub(crate) rounds: Vec<f64>,
    pub(crate) tip: Tip,
}

/// The texts of the chart besides the lines.
#[derive(Debug)]
pub(crate) struct Frame<'a> {
    pub(crate) heading: &'a str,
    pub(crate) x_title: &'a str,
    pub(crate) y_title: &'a str,
    /// Entries that have no line, and why.
    pub(crate) absent: Vec<String>,
}

/// How an axis is divided.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum XAxis {
    /// The values themselves are the ticks: threads.
    Values,
    /// Logarithmic: numbers of entries.
    Log,
    /// Percentiles, as far apart as the rest above them shrinks.
    Percentiles,
}

const WIDTH: f64 = 540.0;
const LEFT: f64 = 44.0;
const TOP: f64 = 42.0;
const MARKER: f64 = 3.2;

/// Draws the lines. Latencies stand on a logarithmic axis, throughput on a linear one that begins
/// at 0.
pub(crate) fn draw(lines: &[Line], frame: &Frame<'_>, axis: XAxis) -> Chart {
    let labels: Vec<String> = lines.iter().map(|line| line.pen.label()).collect();
    let room = label_room(labels.iter().map(String::as_str), 40.0, 180.0) * 11.0 / 12.0;
    let (right, plot) = (WIDTH - room - 22.0, (lines.len() as f64 * 14.0).clamp(190.0, 330.0));
    let bottom = TOP + plot;
    let height = bottom + 36.0 + 15.0 * frame.absent.len() as f64;
    let points = || lines.iter().flat_map(|line| &line.points);
    let tops =
        points().map(|p| p.rounds.iter().copied().fold(p.y, f64::max)).filter(|y| y.is_finite());
    let y = match axis {
        XAxis::Percentiles => Scale::log(points().map(|p| p.y), bottom, TOP),
        XAxis::Values | XAxis::Log => Scale::from_zero(tops.fold(0.0, f64::max), bottom, TOP),
    };
    let mut values: Vec<f64> = points().map(|p| p.x).filter(|x| x.is_finite()).collect();
    values.sort_by(f64::total_cmp);
    values.dedup();
    let x = match axis {
        XAxis::Percentiles => Scale::linear(place_of(50.0), place_of(100.0), LEFT + 6.0, right),
        XAxis::Log => Scale::log(values.iter().copied(), LEFT + 6.0, right),
        XAxis::Values => {
            let (low, high) =
                (values.first().copied().unwrap_or(0.0), values.last().copied().unwrap_or(1.0));
            Scale::linear(low, high, LEFT + 8.0, right)
        }
    };
    let across =
        |value: f64| x.at(if axis == XAxis::Percentiles { place_of(value) } else { value });

    let mut canvas = Canvas::default();
    canvas.text("strong", (0.0, 12.0), &fit(frame.heading, SIZE, WIDTH));
    axis_title(&mut canvas, (0.0, 30.0), frame.y_title);
    for tick in y.ticks() {
        let place = y.at(tick);
        canvas.line("grid", (LEFT, place), (right, place));
        let text =
            if axis == XAxis::Percentiles { number::duration_us(tick) } else { number::tick(tick) };
        canvas.text(
            "axis end",
            (LEFT - 6.0, place + 4.0),
            &text.replace(".00", "").replace(".0", ""),
        );
    }
    let ticks = match axis {
        XAxis::Percentiles => vec![50.0, 90.0, 99.0, 99.9, 99.99, 100.0],
        XAxis::Values | XAxis::Log => thinned(&values, &across),
    };
    for tick in ticks {
        canvas.line("grid", (across(tick), bottom), (across(tick), bottom + 4.0));
        let text = match (axis, tick) {
            (XAxis::Percentiles, 100.0) => "max".to_owned(),
            (XAxis::Percentiles, tick) => format!("{tick}%"),
            (_, tick) => number::tick(tick),
        };
        canvas.text("axis middle", (across(tick), bottom + 17.0), &text);
    }
    canvas.line("base", (LEFT, bottom), (right, bottom));
    canvas.text("axis middle", ((LEFT + right) / 2.0, bottom + 32.0), frame.x_title);

    let ends: Vec<f64> =
        lines.iter().map(|line| line.points.last().map_or(bottom, |p| y.at(p.y))).collect();
    let places = spread_labels(&ends, 14.0, TOP, bottom);
    // Terrace is drawn last, over the others.
    for (at, line) in lines.iter().enumerate().rev() {
        let class = format!("line {}", line.pen.class());
        let title = Tip::Words(line.pen.title.clone());
        canvas.group_of(&class, line.pen.column, Some(&title));
        let corner = |point: &Point| (across(point.x), y.at(point.y));
        let rounds = |point: &Point| point.rounds.iter().map(|value| y.at(*value)).collect();
        let corners: Vec<Corner<'_>> = line
            .points
            .iter()
            .map(|point| Corner { at: corner(point), rounds: rounds(point), tip: &point.tip })
            .collect();
        canvas.marked_line(&corners, palette::marker(line.pen.slot), MARKER);
        if let Some(end) = corners.last().map(|corner| corner.at) {
            canvas.line("thin", (end.0 + 4.0, end.1), (right + 16.0, places[at]));
            let class = if line.pen.slot == 0 { "key strong" } else { "key" };
            canvas.text(class, (right + 20.0, places[at] + 4.0), &fit(&labels[at], 11.0, room));
        }
        canvas.close();
    }
    for (row, text) in frame.absent.iter().enumerate() {
        canvas.text("gap", (0.0, bottom + 50.0 + 15.0 * row as f64), &fit(text, 11.0, WIDTH));
    }
    let names = lines.iter().map(|line| {
        let last = line.points.last().map_or("", |p| p.tip.words());
        format!("{} ({last})", line.pen.title)
    });
    let label = format!(
        "Line chart: {}, {} by {}: {}.",
        frame.heading,
        frame.y_title,
        frame.x_title,
        names.collect::<Vec<_>>().join("; ")
    );
    canvas.finish(WIDTH, height, label)
}

/// Where a percentile stands: every further nine takes the same room, the maximum a little less.
fn place_of(percentile: f64) -> f64 {
    if percentile >= 100.0 { 4.7 } else { -(1.0 - percentile / 100.0).log10() }
}

/// The values whose labels do not touch.
fn thinned(values: &[f64], at: &dyn Fn(f64) -> f64) -> Vec<f64> {
    let mut kept: Vec<f64> = Vec::new();
    for value in values {
        let free = kept.last().is_none_or(|last| {
            let room = (width(&number::tick(*last), 11.0) + width(&number::tick(*value), 11.0))
                / 2.0
                + 4.0;
            at(*value) - at(*last) >= room
        });
        if free {
            kept.push(*value);
        }
    }
    kept
}
