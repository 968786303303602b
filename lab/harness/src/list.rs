//! `lab list` and `lab describe`.

use std::path::Path;
use std::process::ExitCode;

use lab_harness::engine::Engines;
use lab_harness::suite;

use crate::output::print;
use crate::start::cache_dir;

pub(crate) fn list(lab: &Path) -> Result<ExitCode, String> {
    let mut text = "Suites, with their sections:\n".to_owned();
    let suites = lab.join("suites");
    let mut broken = Vec::new();
    for name in suite::names(&suites)? {
        let suite = match suite::load_named(&suites, &name) {
            Ok(suite) => suite,
            Err(problem) => {
                text.push_str(&format!("\n  {name}: CANNOT BE RUN, its file has an error\n"));
                broken.push(problem);
                continue;
            }
        };
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
    if broken.is_empty() { Ok(ExitCode::SUCCESS) } else { Err(broken.join("\nlab: ")) }
}

pub(crate) fn describe(lab: &Path, ids: &[String]) -> Result<ExitCode, String> {
    let engines = Engines::find(lab, &cache_dir(lab))?;
    for column in engines.select(ids, false)? {
        let about = engines.prepare(&column).about;
        let mut text = format!("{}: {} {}\n", about.id, about.title, about.version);
        let limits = about.limits.join("; ");
        let parts = [
            ("not run", about.missing.as_deref()),
            ("build", about.build.as_deref()),
            ("asynchronous write", Some(about.asynchronous.as_str())),
            ("synchronous write", Some(about.synchronous.as_str())),
            ("promises less", about.weaker.as_deref()),
            ("settings", Some(about.settings.as_str())),
            ("limits", Some(limits.as_str())),
        ];
        for (name, said) in parts {
            if let Some(said) = said.filter(|said| !said.is_empty()) {
                text.push_str(&format!("  {name:<18} {said}\n"));
            }
        }
        print(&text)?;
    }
    Ok(ExitCode::SUCCESS)
}
