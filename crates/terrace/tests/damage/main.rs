//! Damaged and hostile files: reads, repair and verification.

mod bad_sectors;
mod database;
mod hostile_tables;
mod hostile_value_files;
mod repair;
mod verify;
