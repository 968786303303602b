//! The charts, one kind a file. Each is a pure function from plain values to a drawing; no chart
//! knows the run.
//!
//! Invariants:
//! 1. A chart shows every entry that it is given: one without a value says why.
//! 2. Values that are zero, huge or not finite are drawn within the frame.

pub(crate) mod bars;
pub(crate) mod groups;
pub(crate) mod lines;
pub(crate) mod series;
pub(crate) mod summary;

use super::palette;
use super::svg::{Canvas, width};

/// The size of most letters.
const SIZE: f64 = 12.0;

/// How an engine is drawn.
#[derive(Clone, Debug)]
pub(crate) struct Pen {
    pub(crate) title: String,
    /// The column, if it is one of this run.
    pub(crate) column: Option<usize>,
    pub(crate) slot: usize,
    /// Whether it promises less than was asked for.
    pub(crate) weaker: bool,
}

impl Pen {
    fn class(&self) -> String {
        palette::class(self.slot)
    }

    /// The title, with the mark of a weaker promise.
    fn label(&self) -> String {
        if self.weaker { format!("{} †", self.title) } else { self.title.clone() }
    }
}

/// The room that the widest of some labels takes, within limits.
fn label_room<'a>(labels: impl Iterator<Item = &'a str>, least: f64, most: f64) -> f64 {
    labels.map(|label| width(label, SIZE)).fold(least, f64::max).min(most)
}

/// Places for labels `height` high as near as possible to where they belong, without overlaps,
/// within `low..=high`. The places come in the order of the wishes.
fn spread_labels(wishes: &[f64], height: f64, low: f64, high: f64) -> Vec<f64> {
    let mut order: Vec<usize> = (0..wishes.len()).collect();
    order.sort_by(|a, b| wishes[*a].total_cmp(&wishes[*b]));
    let others = wishes.len().saturating_sub(1).max(1) as f64;
    // Where there is not enough room they overlap evenly.
    let height = height.min((high - low).max(0.0) / others);
    // With the label's own share of the heights taken off, "no overlap" is "not descending": the
    // nearest such sequence has neighbours that descend replaced by their mean.
    let mut blocks: Vec<(f64, usize)> = Vec::new();
    for (at, index) in order.iter().enumerate() {
        let mut block = (wishes[*index] - at as f64 * height, 1);
        while let Some(last) = blocks.pop_if(|last| last.0 > block.0) {
            let count = last.1 + block.1;
            block = ((last.0 * last.1 as f64 + block.0 * block.1 as f64) / count as f64, count);
        }
        blocks.push(block);
    }
    let mut places = vec![low; wishes.len()];
    let bases = blocks.into_iter().flat_map(|(base, count)| std::iter::repeat_n(base, count));
    for ((at, index), base) in order.into_iter().enumerate().zip(bases) {
        let most = (high - others * height).max(low);
        places[index] = base.clamp(low, most) + at as f64 * height;
    }
    places
}

/// An axis title above the top left corner of a frame.
fn axis_title(canvas: &mut Canvas, at: (f64, f64), text: &str) {
    canvas.text("axis", at, text);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_do_not_overlap() {
        let places = spread_labels(&[50.0, 52.0, 51.0, 99.0, 0.0], 10.0, 0.0, 100.0);
        let mut sorted = places.clone();
        sorted.sort_by(f64::total_cmp);
        assert!(sorted.windows(2).all(|pair| pair[1] - pair[0] >= 9.99), "{places:?}");
        assert!(places[0] < places[2] && places[2] < places[1], "{places:?}");
        let crowded = spread_labels(&[5.0; 30], 10.0, 0.0, 100.0);
        assert!(crowded.iter().all(|place| (0.0..=100.0).contains(place)), "{crowded:?}");
        assert!(spread_labels(&[], 10.0, 0.0, 1.0).is_empty());
    }
}
