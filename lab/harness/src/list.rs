//! `lab list`.

use std::path::Path;
use std::process::ExitCode;

use lab_harness::engine::Engines;
use lab_harness::suite;

use crate::start::cache_dir;

pub(crate) fn list(lab: &Path) -> Result<ExitCode, String> {
    println!("Suites, with their sections:");
    for suite in suite::load_all(&lab.join("suites"))? {
        let short = &suite.short;
        println!("\n  {}: {}", suite.name, suite.title);
        println!(
            "    {} entries, {} rounds; short form: {} entries, {} round(s), {} s for a benchmark",
            suite.num, suite.rounds, short.num, short.rounds, short.time_limit
        );
        for section in &suite.sections {
            println!("    {:<22} {}", section.id, section.title);
        }
    }
    println!("\nEngines:");
    let engines = Engines::find(lab, &cache_dir(lab))?;
    for column in engines.columns() {
        let state = engines.lacking(&column.engine).unwrap_or_else(|| "can be run".to_owned());
        println!("  {:<22} {:<28} {state}", column.id, column.title);
    }
    Ok(ExitCode::SUCCESS)
}
