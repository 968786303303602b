//! Parts that pieces of all kinds of files share.

use std::ops::ControlFlow;

/// Whether the visitor has seen enough.
pub(super) type Flow = ControlFlow<()>;

/// Bytes that are not what they must be.
///
/// ```
/// use terrace::inspect::Damage;
///
/// fn shown(damage: &Damage) -> String {
///     format!("at offset {}: {}", damage.offset, damage.message)
/// }
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Damage {
    /// Where: of a block, its beginning.
    pub offset: u64,
    /// The problem.
    pub message: String,
}
