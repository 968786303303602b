//! `terrace advise`: which settings suit a database, by what it looks like.
//!
//! `survey` looks, `info_log` reads what the engine wrote for people, `rules` decides, `measured`
//! says what the lab's suite `configurations` measured for a setting.

mod info_log;
mod measured;
mod rules;
mod survey;

use std::path::PathBuf;

use clap::Args;
use serde_json::{Value, json};

use crate::failure::{Failure, Result};
use crate::opening::{OpenArgs, PresetName, require_database};
use crate::output::Output;
use crate::output::columns::{Columns, counted, size};
use measured::Figures;
use rules::{Advice, InUse, advise};
use survey::Survey;

/// LevelDB's defaults.
const DEFAULT_CACHE_SIZE: usize = 8 << 20;
const DEFAULT_OPEN_FILES: usize = 1000;
/// Where lines for people end.
const LINE_WIDTH: usize = 100;

/// The long help of `terrace advise`.
pub(crate) const AFTER_HELP: &str = "\
Looks at the levels, at a sample of the tables and at the info logs, and changes nothing. Which
settings an application uses is not recorded in a database: say them with --cache-size and
--max-open-files where they are not LevelDB's defaults.

Examples:
  terrace advise DB
  terrace advise DB --workload analytics         for large loads, scans and look-ups
  terrace advise DB --max-open-files 5000 --json | jq '.advice[].setting'";

#[derive(Args, Debug)]
pub(crate) struct AdviseCommand {
    /// Directory of the database
    db: PathBuf,
    /// The kind of application that uses the database
    #[arg(long, value_name = "NAME")]
    workload: Option<PresetName>,
    /// A run of the lab's suite `configurations`, for what it measured [default: the project's
    /// newest, if there was one]
    #[arg(long, value_name = "DIR")]
    lab_run: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    open: OpenArgs,
}

impl AdviseCommand {
    /// The command with the usual options.
    pub(crate) fn on(db: PathBuf, json: bool) -> Self {
        AdviseCommand { db, workload: None, lab_run: None, json, open: OpenArgs::default() }
    }

    pub(crate) fn run(&self, out: &mut Output) -> Result<()> {
        require_database(&self.db)?;
        let figures =
            self.lab_run.as_deref().map_or_else(|| Ok(Figures::built_in()), Figures::of_run)?;
        let db = self.open.open(&self.db)?.db;
        let survey = Survey::of(&self.db, &db)?;
        db.close()?;
        let in_use = InUse {
            cache_size: self.open.cache_size().unwrap_or(DEFAULT_CACHE_SIZE) as u64,
            max_open_files: self.open.max_open_files().unwrap_or(DEFAULT_OPEN_FILES) as u64,
        };
        let report = Report {
            advice: advise(&survey, &in_use, self.workload),
            figures,
            workload: self.workload,
            survey,
            in_use,
        };
        if self.json { out.json(&report.json()?) } else { report.print(out) }
    }
}

struct Report {
    survey: Survey,
    in_use: InUse,
    workload: Option<PresetName>,
    advice: Vec<Advice>,
    figures: Figures,
}

impl Report {
    fn json(&self) -> Result<Value> {
        let advice = self.advice.iter().map(|advice| {
            let measured: Vec<_> = advice.evidence.iter().flat_map(|evidence| self.figures.of(evidence)).collect();
            let Advice { setting, change, why, gain, .. } = advice;
            json!({"setting": setting, "change": change, "why": why, "gain": gain, "measured": measured})
        });
        let survey =
            serde_json::to_value(&self.survey).map_err(|e| Failure::other(format!("JSON: {e}")))?;
        Ok(json!({
            "database": survey,
            "in_use": self.in_use,
            "preset": self.workload.map(PresetName::name),
            "advice": advice.collect::<Vec<_>>(),
            "unseen": self.unseen(),
            "lab_figures": self.figures.source().filter(|_| !self.figures.are_missing()),
        }))
    }

    fn print(&self, out: &mut Output) -> Result<()> {
        self.facts().print(out)?;
        out.line("")?;
        for (n, advice) in (1..).zip(&self.advice) {
            paragraph(&format!("{n}. {}: {}", advice.setting, advice.change), "   ", out)?;
            paragraph(&format!("   Why: {}.", advice.why), "   ", out)?;
            paragraph(&format!("   Gain: {}", advice.gain), "   ", out)?;
            for measured in advice.evidence.iter().flat_map(|evidence| self.figures.of(evidence)) {
                paragraph(&format!("   Measured: {}.", measured.text()), "   ", out)?;
            }
        }
        if self.advice.is_empty() {
            out.line("Nothing to change: the settings suit what is in the database.")?;
        }
        if let Some(preset) = self.workload {
            let name = preset.name();
            let preset =
                format!("Preset: `--preset {name}` here, `Options::for_workload` in the library.");
            paragraph(&preset, "", out)?;
        }
        out.line("")?;
        out.line("Not seen:")?;
        self.unseen().iter().try_for_each(|unseen| paragraph(&format!("- {unseen}"), "  ", out))?;
        let rests_on = self.advice.iter().flat_map(|advice| &advice.evidence);
        let is_measured =
            rests_on.into_iter().any(|evidence| !self.figures.of(evidence).is_empty());
        match self.figures.source() {
            _ if self.advice.is_empty() => {}
            Some(source) if is_measured => paragraph(&format!("Measured by {source}."), "", out)?,
            Some(source) => {
                paragraph(&format!("Nothing of this was measured by {source}."), "", out)?
            }
            None => {
                let missing = "What the lab measured is not said: this command was built without a \
                               run of its suite `configurations`. `lab run configurations --out \
                               DIR` makes one, and --lab-run DIR shows it here.";
                paragraph(missing, "", out)?;
            }
        }
        Ok(())
    }

    fn facts(&self) -> Columns<2> {
        let Report { survey, .. } = self;
        let sample = &survey.sample;
        let log = &survey.info_log;
        let mut facts = Columns::unnamed();
        let mut fact = |name: &str, value: String| facts.row([name.to_owned(), value]);
        fact("tables", format!("{}, {}", survey.tables, size(survey.table_bytes)));
        let levels = survey.levels.iter();
        let levels: Vec<_> = levels
            .map(|level| format!("{}: {} in {}", level.level, size(level.bytes), level.tables))
            .collect();
        fact("by level", if levels.is_empty() { "none".to_owned() } else { levels.join(", ") });
        if survey.value_files > 0 {
            let (bytes, used) = (size(survey.value_file_bytes), size(survey.value_bytes_used));
            fact("value files", format!("{}, {bytes}, {used} of it used", survey.value_files));
        }
        fact("logs", size(survey.log_bytes));
        if sample.tables > 0 {
            let entries = counted(sample.entries, "entry", "entries");
            let tables = counted(sample.tables, "table", "tables");
            fact(
                "sample",
                format!(
                    "{entries} in {tables}, {} of 100 are deletions",
                    sample.deletion_percent()
                ),
            );
            let key = sample.key_bytes / sample.entries.max(1);
            let (value, largest) = (size(sample.average_value()), size(sample.largest_value));
            fact(
                "entries",
                format!(
                    "keys of {} and values of {value} on average, the largest {largest}",
                    size(key)
                ),
            );
            let block = size(sample.raw_bytes / sample.blocks.max(1));
            let kept = sample.stored_bytes.saturating_mul(100) / sample.raw_bytes.max(1);
            fact("blocks", format!("{block} on average, stored at {kept} % of their raw size"));
            let (own, policy) = (sample.with_table_filter, sample.with_filter_policy);
            fact(
                "filters",
                format!("Terrace's own in {own} of {}, LevelDB's in {policy}", sample.tables),
            );
        }
        if log.flushes > 0 || log.compactions > 0 {
            let flushes = counted(log.flushes, "flush", "flushes");
            let compactions = counted(log.compactions, "compaction", "compactions");
            let ratio = log.write_amplification();
            let ratio = ratio.map_or(String::new(), |ratio| {
                format!(
                    ", write amplification {ratio:.1} (bytes written to tables for each flushed)"
                )
            });
            fact("by the info log", format!("{flushes}, {compactions}{ratio}"));
        }
        if log.longest_compaction_seconds > 0.0 {
            fact("longest compaction", format!("{:.1} s", log.longest_compaction_seconds));
        }
        if sample.damaged_tables > 0 {
            fact(
                "damage",
                format!("{} could not be read: see `terrace verify`", sample.damaged_tables),
            );
        }
        if log.background_errors > 0 {
            fact("background errors", log.background_errors.to_string());
        }
        facts
    }

    /// Facts that a closed database does not show.
    fn unseen(&self) -> Vec<String> {
        let mut unseen = vec![
            "hit rates of cache and filters, and how long writers were slowed: they are counted \
             while a database is open and are not kept (`Db::stats`, `stat` in `terrace shell`)"
                .to_owned(),
            "the settings that the application uses: compared with LevelDB's defaults where no \
             option says otherwise"
                .to_owned(),
        ];
        if self.survey.info_log.files.is_empty() {
            unseen.push("flushes and compactions: there is no info log".to_owned());
        }
        if self.survey.sample.tables < self.survey.tables {
            unseen.push(format!(
                "all entries: {} of {} were looked into",
                self.survey.sample.tables,
                counted(self.survey.tables, "table", "tables")
            ));
        }
        unseen
    }
}

/// Breaks a text into lines; those after the first begin with `indent`.
fn paragraph(text: &str, indent: &str, out: &mut Output) -> Result<()> {
    // Blanks at the beginning stay.
    let (start, rest) = text.split_at(text.len() - text.trim_start().len());
    let mut line = start.to_owned();
    let mut is_first = true;
    for word in rest.split_whitespace() {
        if !is_first && line.chars().count() + 1 + word.chars().count() > LINE_WIDTH {
            out.line(&line)?;
            line = indent.to_owned();
            is_first = true;
        }
        if !is_first {
            line.push(' ');
        }
        line.push_str(word);
        is_first = false;
    }
    out.line(&line)
}
