//! Output for people: columns with numbers to the right and words to the left, sizes, and numbers
//! of things.

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

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
            let widest = self.rows.iter().map(|row| row[column].width()).max().unwrap_or(0);
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
                let padding = " ".repeat(widths[column].saturating_sub(cell.width()));
                match (numeric[column], is_last) {
                    (true, _) => line.extend([padding.as_str(), &cell]),
                    (false, true) => line.push_str(&cell),
                    (false, false) => line.extend([cell.as_str(), &padding]),
                }
                line.push_str(if is_last { "" } else { "  " });
            }
            out.line(line.trim_end())?;
        }
        Ok(())
    }
}

/// The beginning of a cell that fits into `width` columns of a terminal.
fn cut(cell: &str, width: usize) -> String {
    if cell.width() <= width {
        return cell.to_string();
    }
    let mut room = width.saturating_sub(1);
    let fits = |character: &char| {
        let taken = character.width().unwrap_or(0);
        let fits = taken <= room;
        room -= taken.min(room);
        fits
    };
    let kept: String = cell.chars().take_while(fits).collect();
    kept + "…"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_are_cut_by_what_a_terminal_shows() {
        assert_eq!(cut("plain", 5), "plain");
        assert_eq!(cut("too long", 5), "too …");
        // Each takes two columns.
        assert_eq!(cut("\u{6771}\u{4eac}\u{90fd}", 6), "\u{6771}\u{4eac}\u{90fd}");
        assert_eq!(cut("\u{6771}\u{4eac}\u{90fd}", 5), "\u{6771}\u{4eac}…");
        assert_eq!(cut("\u{6771}\u{4eac}\u{90fd}", 4), "\u{6771}…");
        // A mark above a letter takes none.
        assert_eq!(cut("e\u{301}e\u{301}", 2), "e\u{301}e\u{301}");
    }
}
