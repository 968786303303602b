//! The other engines of a run.

use super::describe::{Cell, Durability, Run, Section};
use super::measurement::Measurements;
use super::summary::Spread;

/// The fastest engine of a cell other than Terrace, its variants and the drop-in, that promises as
/// much as the cell asks for: its id and rate.
#[must_use]
pub fn best_of_rest<'a>(
    run: &'a Run,
    measurements: &Measurements,
    section: &Section,
    cell: usize,
) -> Option<(&'a str, Spread)> {
    let asked = section.cells.get(cell).filter(|cell| !cell.paced)?;
    let rates = run
        .engines
        .iter()
        .filter(|engine| !engine.is_terrace() && counts(asked, engine.weaker.is_some()));
    rates
        .filter_map(|engine| {
            Some((
                engine.id.as_str(),
                measurements.rate(run.figure, &section.id, cell, &engine.id)?,
            ))
        })
        .max_by(|a, b| a.1.middle.total_cmp(&b.1.middle))
}

fn counts(cell: &Cell, weaker: bool) -> bool {
    !(weaker && cell.writes && cell.durability == Durability::Asynchronous)
}
