//! The command `terrace`, run as a user runs it.

mod advise;
mod bench;
mod damaged_logs;
mod entries;
mod hostile;
mod manual;
mod shell;
mod statuses;
mod terminal;
mod tool;
mod transfer;
mod upkeep;
mod value_log;
