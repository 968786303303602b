//! Suites: which experiments are run, as data. `specification` is their
//! form, `settings` what can be set in them, and `plan` turns one into what is run.

mod load;
mod plan;
mod settings;
mod specification;

pub use load::{load, load_all, load_named, names, parse};
pub use plan::{Form, Group, Plan, Role, Scale, Step};
pub use settings::Settings;
pub use specification::{CellSpec, GroupSpec, PointSpec, SectionSpec, Short, Suite, Sweep};
