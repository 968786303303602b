//! The rules of the source: layers, and lists that name tests.

mod layers;
mod lists;
mod mutants;
mod programs;
