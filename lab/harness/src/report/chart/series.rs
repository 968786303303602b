//! Throughput and latency over time, one above the other. Intervals in which nothing completed are
//! marked through both.

use super::super::number;
use super::super::scale::Scale;
use super::super::svg::{Canvas, Chart, Tip, fit};
use super::{Pen, SIZE, axis_title, spread_labels};

/// An interval.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Step {
    /// Its end, in seconds.
    pub(crate) second: f64,
    pub(crate) ops: f64,
    /// Microseconds: mean, 95th, 99th, 99.9th percentile, maximum.
    pub(crate) latencies: [f64; 5],
}

/// One engine's course.
#[derive(Debug)]
pub(crate) struct Course {
    pen: Pen,
    steps: Vec<Step>,
    /// The length of an interval, in seconds.
    interval: f64,
}

/// A run of intervals in which nothing completed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Stall {
    pub(crate) from: f64,
    pub(crate) to: f64,
}

/// The axes that the charts of several engines share, so that they can be compared.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shared {
    rate: f64,
    latency: (f64, f64),
    seconds: f64,
}

/// A part of the course as wide as a mark on the chart.
struct Part {
    from: f64,
    to: f64,
    mean: f64,
    least: f64,
    most: f64,
    /// None if nothing completed in it.
    latencies: Option<[f64; 5]>,
}

const NAMES: [&str; 5] = ["mean", "95%", "99%", "99.9%", "max"];
const WIDTH: f64 = 520.0;
const LEFT: f64 = 48.0;
const RIGHT: f64 = WIDTH - 44.0;
const TOP: f64 = 58.0;
const RATE: f64 = 116.0;
const BETWEEN: f64 = 34.0;
const LATENCY: f64 = 132.0;
/// Parts of a course that are told apart: an hour of seconds would be a megabyte of marks.
const PARTS: usize = 150;

impl Course {
    pub(crate) fn new(pen: Pen, steps: Vec<Step>) -> Course {
        let mut gaps: Vec<f64> =
            steps.windows(2).map(|pair| pair[1].second - pair[0].second).collect();
        gaps.sort_by(f64::total_cmp);
        let gap = gaps.get(gaps.len() / 2).copied().or(steps.first().map(|step| step.second));
        let interval = gap.filter(|gap| gap.is_finite() && *gap > 0.0).unwrap_or(1.0);
        Course { pen, steps, interval }
    }

    /// Operations a second of an interval.
    fn rate(&self, step: &Step) -> f64 {
        let rate = step.ops / self.interval;
        if rate.is_finite() { rate } else { 0.0 }
    }

    /// All stalls, in order.
    pub(crate) fn stalls(&self) -> Vec<Stall> {
        let interval = self.interval;
        let mut stalls: Vec<Stall> = Vec::new();
        for step in self.steps.iter().filter(|step| step.ops <= 0.0) {
            let from = (step.second - interval).max(0.0);
            match stalls.last_mut().filter(|last| from <= last.to + interval * 0.5) {
                Some(last) => last.to = step.second,
                None => stalls.push(Stall { from, to: step.second }),
            }
        }
        stalls
    }

    /// The rate of the slowest interval.
    pub(crate) fn slowest(&self) -> f64 {
        let rates = self.steps.iter().map(|step| self.rate(step));
        rates.min_by(f64::total_cmp).unwrap_or(0.0)
    }

    /// The rate over all intervals.
    pub(crate) fn mean(&self) -> f64 {
        let ops: f64 = self.steps.iter().map(|step| step.ops).sum();
        ops / (self.interval * self.steps.len().max(1) as f64)
    }

    fn parts(&self) -> Vec<Part> {
        let interval = self.interval;
        let size = self.steps.len().div_ceil(PARTS).max(1);
        let part = |steps: &[Step]| {
            let rates = || steps.iter().map(|step| self.rate(step));
            let busy = || steps.iter().filter(|step| step.ops > 0.0);
            let count = busy().count();
            let latencies = (count > 0).then(|| {
                std::array::from_fn(|at| {
                    let values = busy().map(|step| step.latencies[at]);
                    if at == 4 {
                        values.fold(0.0, f64::max)
                    } else {
                        values.sum::<f64>() / count as f64
                    }
                })
            });
            Part {
                from: steps.first().map_or(0.0, |step| step.second - interval),
                to: steps.last().map_or(0.0, |step| step.second),
                mean: rates().sum::<f64>() / steps.len().max(1) as f64,
                least: rates().fold(f64::INFINITY, f64::min),
                most: rates().fold(0.0, f64::max),
                latencies,
            }
        };
        self.steps.chunks(size).map(part).collect()
    }
}

impl Shared {
    pub(crate) fn of(courses: &[Course]) -> Shared {
        let steps = || {
            courses.iter().flat_map(|course| course.steps.iter().map(move |step| (course, step)))
        };
        let rate = steps().map(|(course, step)| course.rate(step)).fold(0.0, f64::max);
        let latencies =
            steps().filter(|(_, step)| step.ops > 0.0).flat_map(|(_, step)| step.latencies);
        let latency = latencies
            .filter(|us| us.is_finite() && *us > 0.0)
            .fold((f64::INFINITY, 0.0_f64), |(low, high), us| (low.min(us), high.max(us)));
        let seconds =
            steps().map(|(_, step)| step.second).filter(|s| s.is_finite()).fold(0.0, f64::max);
        Shared { rate, latency, seconds }
    }
}

/// Draws one course.
pub(crate) fn draw(course: &Course, shared: Shared) -> Chart {
    let bottom = TOP + RATE;
    let (top2, bottom2) = (bottom + BETWEEN, bottom + BETWEEN + LATENCY);
    let x = Scale::linear(0.0, shared.seconds, LEFT, RIGHT);
    let rate = Scale::from_zero(shared.rate, bottom, TOP);
    let latency = Scale::log([shared.latency.0, shared.latency.1].into_iter(), bottom2, top2);
    let stalls = course.stalls();
    let stalled: f64 = stalls.iter().map(|stall| stall.to - stall.from).sum();

    let mut canvas = Canvas::default();
    canvas.group(&course.pen.class());
    canvas.rect("f", 0.0, 2.0, 11.0, 11.0);
    canvas.close();
    canvas.text("strong", (17.0, 12.0), &fit(&course.pen.label(), SIZE, WIDTH - 17.0));
    let said = if stalls.is_empty() {
        "no stall".to_owned()
    } else {
        let longest = stalls.iter().map(|stall| stall.to - stall.from).fold(0.0, f64::max);
        format!(
            "{} stalls, {} in all, longest {}",
            stalls.len(),
            number::span(stalled),
            number::span(longest)
        )
        .replacen("1 stalls", if stalls.len() == 1 { "1 stall" } else { "1 stalls" }, 1)
    };
    let facts = format!(
        "mean {} op/s, slowest interval {} op/s, {said}",
        number::si(course.mean()),
        number::si(course.slowest())
    );
    canvas.text("axis", (0.0, 29.0), &fit(&facts, 11.0, WIDTH));
    axis_title(&mut canvas, (0.0, TOP - 8.0), "op/s");
    axis_title(&mut canvas, (0.0, top2 - 8.0), "latency (logarithmic)");
    for tick in rate.ticks() {
        canvas.line("grid", (LEFT, rate.at(tick)), (RIGHT, rate.at(tick)));
        canvas.text("axis end", (LEFT - 6.0, rate.at(tick) + 4.0), &number::tick(tick));
    }
    for tick in latency.ticks() {
        canvas.line("grid", (LEFT, latency.at(tick)), (RIGHT, latency.at(tick)));
        let text = number::duration_us(tick).replace(".00", "").replace(".0", "");
        canvas.text("axis end", (LEFT - 6.0, latency.at(tick) + 4.0), &text);
    }
    for (tick, text) in time_ticks(shared.seconds) {
        canvas.line("grid", (x.at(tick), bottom2), (x.at(tick), bottom2 + 4.0));
        canvas.text("axis middle", (x.at(tick), bottom2 + 17.0), &text);
    }
    // A stall narrower than a line would not be seen.
    for stall in &stalls {
        let (from, to) = (x.at(stall.from), x.at(stall.to));
        let (from, wide) =
            if to - from < 1.5 { ((from + to) / 2.0 - 0.75, 1.5) } else { (from, to - from) };
        let tip = format!(
            "stall: nothing completed from {} to {} s",
            number::thousands(stall.from),
            number::thousands(stall.to)
        );
        canvas.group_of("mark", None, Some(&Tip::Words(tip)));
        canvas.rect("stall", from, TOP, wide, bottom2 - TOP);
        let middle = from + wide / 2.0;
        canvas.polygon(
            "stallmark",
            &[(middle - 4.0, TOP - 7.0), (middle + 4.0, TOP - 7.0), (middle, TOP - 1.0)],
        );
        canvas.close();
    }
    let parts = course.parts();
    canvas.group(&format!("line {}", course.pen.class()));
    let middle = |part: &Part| x.at((part.from + part.to) / 2.0);
    let above = parts.iter().map(|part| (middle(part), rate.at(part.most)));
    let under = parts.iter().rev().map(|part| (middle(part), rate.at(part.least)));
    canvas.polygon("area", &above.chain(under).collect::<Vec<_>>());
    canvas.polyline(
        "l full",
        &parts.iter().map(|part| (middle(part), rate.at(part.mean))).collect::<Vec<_>>(),
    );
    let mut ends = [bottom2; 5];
    for (at, end) in ends.iter_mut().enumerate() {
        for segment in parts.split(|part| part.latencies.is_none()) {
            let corners: Vec<(f64, f64)> = segment
                .iter()
                .filter_map(|part| Some((middle(part), latency.at(part.latencies?[at]))))
                .collect();
            canvas.polyline(&format!("l full p{at}"), &corners);
            *end = corners.last().map_or(*end, |corner| corner.1);
        }
    }
    for (at, place) in spread_labels(&ends, 12.0, top2 + 2.0, bottom2).into_iter().enumerate() {
        canvas.text("key", (RIGHT + 5.0, place + 4.0), NAMES[at]);
    }
    canvas.close();
    for part in &parts {
        canvas.group_of("mark", None, Some(&Tip::Words(tip(part))));
        let (from, to) = (x.at(part.from), x.at(part.to));
        canvas.rect("hit", from, TOP, (to - from).max(1.0), bottom2 - TOP);
        canvas.close();
    }
    canvas.line("base", (LEFT, bottom), (RIGHT, bottom));
    canvas.line("base", (LEFT, bottom2), (RIGHT, bottom2));
    let label = format!("Throughput and latency over time, {}: {facts}.", course.pen.title);
    canvas.finish(WIDTH, bottom2 + 22.0, label)
}

/// Where the time axis has ticks, at round times, and what they say.
fn time_ticks(seconds: f64) -> Vec<(f64, String)> {
    let steps = [1, 2, 5, 10, 30, 60, 120, 300, 600, 1800, 3600];
    let fits = |step: &&u32| seconds / f64::from(**step) <= 7.0;
    let step = steps.iter().find(fits).copied().map_or((seconds / 5.0).max(1.0), f64::from);
    let text = |time: f64| match time {
        0.0 => "0".to_owned(),
        t if step < 60.0 => format!("{} s", number::tick(t)),
        t if step < 3600.0 => format!("{} min", number::tick(t / 60.0)),
        t => format!("{} h", number::tick(t / 3600.0)),
    };
    (0..=7)
        .map(|n| f64::from(n) * step)
        .take_while(|time| *time <= seconds)
        .map(|time| (time, text(time)))
        .collect()
}

fn tip(part: &Part) -> String {
    let head = format!(
        "{}–{} s: {} op/s",
        number::thousands(part.from),
        number::thousands(part.to),
        number::thousands(part.mean)
    );
    let Some(latencies) = part.latencies else { return format!("{head}; nothing completed") };
    let latencies =
        NAMES.iter().zip(latencies).map(|(name, us)| format!("{name} {}", number::duration_us(us)));
    format!("{head}; {}", latencies.collect::<Vec<_>>().join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn course(ops: &[f64]) -> Course {
        let steps = ops.iter().enumerate().map(|(at, ops)| Step {
            second: (at + 1) as f64 * 2.0,
            ops: *ops,
            latencies: [1.0, 2.0, 3.0, 4.0, 5.0],
        });
        let pen = Pen { title: "LevelDB".to_owned(), column: None, slot: 2, weaker: false };
        Course::new(pen, steps.collect())
    }

    #[test]
    fn neighbouring_idle_intervals_are_one_stall() {
        let course = course(&[10.0, 0.0, 0.0, 4.0, 0.0, 6.0]);
        assert_eq!(course.stalls(), [Stall { from: 2.0, to: 6.0 }, Stall { from: 8.0, to: 10.0 }]);
        assert!((course.mean() - 20.0 / 12.0).abs() < 1e-9);
        assert_eq!(course.slowest(), 0.0);
    }

    #[test]
    fn a_stall_of_one_second_in_an_hour_is_drawn() {
        let mut ops = vec![1000.0; 3600];
        ops[1800] = 0.0;
        let course = course(&ops);
        assert!(course.parts().len() <= PARTS);
        let svg = draw(&course, Shared::of(std::slice::from_ref(&course))).inline();
        assert_eq!(svg.matches("class=\"stall\"").count(), 1);
        assert!(svg.contains("1 stall, 2 s in all"), "{svg}");
    }

    #[test]
    fn ticks_are_at_round_times() {
        let said =
            |seconds| time_ticks(seconds).into_iter().map(|(_, text)| text).collect::<Vec<_>>();
        assert_eq!(said(600.0), ["0", "2 min", "4 min", "6 min", "8 min", "10 min"]);
        assert_eq!(said(12.0), ["0", "2 s", "4 s", "6 s", "8 s", "10 s", "12 s"]);
        assert_eq!(said(0.0), ["0"]);
        assert!(said(1e9).len() <= 8);
    }

    #[test]
    fn nothing_and_all_idle_are_drawn() {
        for ops in [&[][..], &[0.0][..], &[0.0, 0.0, f64::NAN, f64::INFINITY]] {
            let one = course(ops);
            let svg = draw(&one, Shared::of(std::slice::from_ref(&one))).inline();
            assert!(!svg.contains("NaN") && !svg.contains("inf"), "{svg}");
        }
    }
}
