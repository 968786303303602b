//! Output for people: columns with numbers to the right and words to the left, sizes, and numbers
//! of things.

use crate::failure::Result;
use crate::output::Output;

/// Cells longer than this are cut, except in the last column.
const MAX_WIDTH: usize = 40;

/// A size for people.
pub(crate) fn size(bytes: u64) -> String {
    indicatif::BinaryBytes(bytes).to_string()
}

/// A number of things: `1 entry`, `2 entries`.
pub(crate) fn counted(count: u64, one: &str, many: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { many })
}

/// Rows of `N` cells that are printed in line.
pub(crate) struct Columns<const N: usize> {
    rows: Vec<[String; N]>,
    has_names: bool,
}

impl<const N: usize> Columns<N> {
    /// Columns with names above them.
    pub(crate) fn new(names: [&str; N]) -> Self {
        Columns { rows: vec![names.map(str::to_string)], has_names: true }
    }

    pub(crate) fn unnamed() -> Self {
        Columns { rows: Vec::new(), has_names: false }
    }

    pub(crate) fn row(&mut self, cells: [String; N]) {
        self.rows.push(cells);
    }

    pub(crate) fn print(&self, out: &mut Output) -> Result<()> {
        let body = &self.rows[usize::from(self.has_names).min(self.rows.len())..];
        let widths: [usize; N] = std::array::from_fn(|column| {
            let widest = self.rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
            widest.min(MAX_WIDTH)
        });
        // A column is one of numbers if every cell that says something begins with a digit.
        let numeric: [bool; N] = std::array::from_fn(|column| {
            self.has_names
                && body.iter().all(|row| row[column].starts_with(|c: char| c.is_ascii_digit()))
        });
        for row in &self.rows {
            let mut line = String::new();
            for (column, cell) in row.iter().enumerate() {
                let is_last = column + 1 == N;
                let cell = if is_last { cell.clone() } else { cut(cell, widths[column]) };
                let width = widths[column];
                match (numeric[column], is_last) {
                    (true, _) => line.push_str(&format!("{cell:>width$}")),
                    (false, true) => line.push_str(&cell),
                    (false, false) => line.push_str(&format!("{cell:<width$}")),
                }
                line.push_str(if is_last { "" } else { "  " });
            }
            out.line(line.trim_end())?;
        }
        Ok(())
    }
}

fn cut(cell: &str, width: usize) -> String {
    if cell.chars().count() <= width {
        return cell.to_string();
    }
    let kept: String = cell.chars().take(width.saturating_sub(1)).collect();
    kept + "…"
}
