//! The public interface as a program meets it: needs nothing but the library, and is part of its
//! package.

mod examples;
mod external_cache;
mod interface;
mod presets;
