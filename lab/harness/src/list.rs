//! `lab list`.

use std::path::Path;
use std::process::ExitCode;

use lab_harness::engine::Engines;
use lab_harness::suite;

use crate::output::print;
use crate::start::cache_dir;

pub(crate) fn list(lab: &Path) -> Result<ExitCode, String> {
    let mut text = "Suites, with their sections:\n".to_owned();
    for suite in suite::load_all(&lab.join("suites"))? {
        let short = &suite.short;
        text.push_str(&format!("\n  {}: {}\n", suite.name, suite.title));
        text.push_str(&format!(
            "    {} entries, {} rounds; short form: {} entries, {} round(s), {} s for a benchmark\n",
            suite.num, suite.rounds, short.num, short.rounds, short.time_limit
        ));
        for section in &suite.sections {
            text.push_str(&format!("    {:<22} {}\n", section.id, section.title));
        }
    }
    text.push_str("\nEngines:\n");
    let engines = Engines::find(lab, &cache_dir(lab))?;
    for column in engines.columns() {
        let state = engines.lacking(&column.engine).unwrap_or_else(|| "can be run".to_owned());
        text.push_str(&format!("  {:<22} {:<28} {state}\n", column.id, column.title));
    }
    print(&text)?;
    Ok(ExitCode::SUCCESS)
}
