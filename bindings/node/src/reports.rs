//! What the engine reports, as objects of JavaScript. Counts are exact up to 2^53.

use napi_derive::napi;

/// A copy that a checkpoint made.
#[napi(object)]
pub struct CheckpointReport {
    /// Tables.
    pub tables: f64,
    /// Value files.
    pub value_files: f64,
    /// Files of both that are hard links; the others are copies.
    pub linked: f64,
    /// Bytes of all tables.
    pub table_bytes: f64,
    /// Bytes of all value files.
    pub value_bytes: f64,
    /// The sequence number of the last write in the copy.
    pub sequence: f64,
}

impl From<terrace::CheckpointReport> for CheckpointReport {
    fn from(report: terrace::CheckpointReport) -> Self {
        CheckpointReport {
            tables: report.tables as f64,
            value_files: report.value_files as f64,
            linked: report.linked as f64,
            table_bytes: report.table_bytes as f64,
            value_bytes: report.value_bytes as f64,
            sequence: report.sequence as f64,
        }
    }
}
