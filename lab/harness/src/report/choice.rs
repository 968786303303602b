//! What the page's script needs so that a reader can choose engines and the baseline: every figure
//! of a suite once, as JSON.

use serde::Serialize;

use super::model::{CellView, Suite};

/// A suite's figures. Names are short because there are thousands of them.
#[derive(Debug, Serialize)]
struct Choice<'a> {
    /// The column of Terrace itself.
    terrace: Option<usize>,
    engines: Vec<Column<'a>>,
    /// By section, the cells.
    sections: Vec<Vec<Cell>>,
}

#[derive(Debug, Serialize)]
struct Column<'a> {
    title: &'a str,
    /// Whether it is Terrace, a variant of it or the drop-in, which are never the rest.
    own: bool,
    /// Whether it ran. Who did not is shown only beside all the others.
    ran: bool,
}

#[derive(Debug, Serialize)]
struct Cell {
    /// By column the rate that can be compared.
    r: Vec<Option<f64>>,
    /// By column the rate with the time for the work that was put off; empty if there is none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    d: Vec<Option<f64>>,
    /// The columns that were cut short.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    c: Vec<usize>,
    /// The columns whose writes promise less than was asked for.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    l: Vec<usize>,
}

/// The JSON for a `script` element: without `<`, which could end it.
pub(crate) fn json(suite: &Suite<'_>) -> String {
    let choice = Choice {
        terrace: suite.terrace(),
        engines: suite
            .columns
            .iter()
            .map(|column| Column {
                title: &column.title,
                own: column.engine.is_terrace(),
                ran: column.ran(),
            })
            .collect(),
        sections: suite
            .sections
            .iter()
            .map(|section| section.cells.iter().map(|cell| of(suite, cell)).collect())
            .collect(),
    };
    serde_json::to_string(&choice).unwrap_or_default().replace('<', "\\u003c")
}

fn of(suite: &Suite<'_>, cell: &CellView<'_>) -> Cell {
    let columns = || 0..suite.columns.len();
    let d: Vec<Option<f64>> =
        columns().map(|column| cell.rate_with_debt(column).and_then(rounded)).collect();
    Cell {
        r: columns().map(|at| cell.rate(at).and_then(|rate| rounded(rate.middle))).collect(),
        d: if d.iter().any(Option::is_some) { d } else { Vec::new() },
        c: columns().filter(|at| cell.is_cut(*at)).collect(),
        l: columns().filter(|at| suite.columns[*at].promises_less(cell.cell)).collect(),
    }
}

/// To six digits; `None` unless it is positive.
fn rounded(rate: f64) -> Option<f64> {
    let known = rate.is_finite() && rate > 0.0;
    known.then(|| format!("{rate:.5e}").parse().unwrap_or(rate)).filter(|rate| *rate > 0.0)
}
