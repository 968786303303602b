//! The command line.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use clap::{Args, Parser, Subcommand};

/// Runs storage engines side by side, each in its own process, and reports how they compare.
#[derive(Debug, Parser)]
#[command(name = "lab", version)]
pub(crate) struct Arguments {
    /// The directory with the suites and engines. Default: the one that this program was built in.
    #[arg(long, value_name = "DIR", global = true)]
    lab: Option<PathBuf>,
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    // So that `make bench` can be given another value for what it sets itself.
    /// Runs a suite with every engine that can be had, and writes a report.
    #[command(args_override_self = true)]
    Run {
        /// The suite; `lab list` shows them.
        suite: String,
        #[command(flatten)]
        options: Box<RunOptions>,
    },
    /// Records what a program asks of LevelDB, and replays it with every engine.
    #[command(subcommand)]
    Trace(TraceCommand),
    /// Lists suites, their sections, and engines with what they lack.
    List,
    /// Says what engines promise, how they are set up, and how their programs and libraries were
    /// built. Builds what has changed.
    Describe {
        /// Ids, `NAME*` for all variants and builds of one, `all`.
        #[arg(required = true, value_delimiter = ',', value_name = "IDS")]
        engines: Vec<String>,
    },
    /// Writes the report of a run anew; several runs of a suite become one with more rounds,
    /// several suites one page.
    Report {
        /// Directories of runs.
        #[arg(required = true, value_name = "DIR")]
        dirs: Vec<PathBuf>,
        /// Where the report of several runs goes. Default for one run: its own directory.
        #[arg(long, value_name = "DIR")]
        out: Option<PathBuf>,
    },
    /// Prints runs on one page of Markdown, for a README or a comment: engines with versions and
    /// builds, a few workloads with rates and ratios, what was cut short, who promises less, the
    /// machine.
    Summary {
        /// Directories of runs; those of the same suite are taken together.
        #[arg(required = true, value_name = "DIR")]
        dirs: Vec<PathBuf>,
        /// The workloads of the table, by their names in WORKLOADS.md. Default: six telling ones.
        #[arg(long, value_delimiter = ',', value_name = "NAMES")]
        benchmarks: Vec<String>,
    },
    /// Compares two runs of a suite: each engine's rates in the second over those in the first,
    /// with spreads.
    Compare {
        /// The first run.
        #[arg(value_name = "DIR")]
        before: PathBuf,
        /// The second run.
        #[arg(value_name = "DIR")]
        after: PathBuf,
        /// As JSON.
        #[arg(long)]
        json: bool,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum TraceCommand {
    /// Runs an unmodified program, that has LevelDB as a shared library, with the drop-in, which
    /// writes a trace of every database that it opens: keys, but of values only their lengths.
    Record {
        /// Where the traces go.
        #[arg(long, value_name = "DIR")]
        out: PathBuf,
        /// The drop-in. Default: the one that `make dropin` built.
        #[arg(long, value_name = "FILE")]
        library: Option<PathBuf>,
        /// The program and its arguments, after `--`.
        #[arg(required = true, last = true, value_name = "COMMAND")]
        command: Vec<OsString>,
    },
    /// Says what traces hold.
    Show {
        /// The traces.
        #[arg(required = true, value_name = "FILE")]
        traces: Vec<PathBuf>,
    },
    /// Replays a trace with every engine that can be had, one operation after the other and as fast
    /// as they go, and writes a report. --num is the number of operations.
    #[command(args_override_self = true)]
    Replay {
        /// The trace.
        #[arg(value_name = "FILE")]
        trace: PathBuf,
        #[command(flatten)]
        options: Box<RunOptions>,
    },
}

/// How something is run.
#[derive(Args, Clone, Debug)]
pub(crate) struct RunOptions {
    /// Only these engines: ids, `NAME*` for all variants of one, `all`. Default: what the suite
    /// says.
    #[arg(long, value_delimiter = ',', value_name = "IDS")]
    pub(crate) engines: Vec<String>,
    /// Only these sections.
    #[arg(long, value_delimiter = ',', value_name = "IDS")]
    pub(crate) sections: Vec<String>,
    /// The suite's short form.
    #[arg(long)]
    pub(crate) short: bool,
    /// Entries.
    #[arg(long, value_name = "N")]
    pub(crate) num: Option<u64>,
    /// Rounds: how often everything is measured.
    #[arg(long, value_name = "N")]
    pub(crate) reps: Option<u32>,
    /// Measures a group of cells again only while one of its ratios, of Terrace to another engine
    /// within each round, may be off by more than this, nineteen times in twenty; from six rounds
    /// on, and --reps rounds at most.
    #[arg(long, value_name = "PERCENT")]
    pub(crate) precision: Option<f64>,
    /// Seconds after which a benchmark is cut short; 0 for no limit. What makes a database for
    /// other cells may take four times as long.
    #[arg(long, value_name = "SECONDS")]
    pub(crate) time_limit: Option<f64>,
    /// Minutes for the whole run. Benchmarks are cut short sooner than by the limit, those of slow
    /// engines first, so that every engine gets to every cell.
    #[arg(long, value_name = "MINUTES")]
    pub(crate) budget: Option<f64>,
    /// Seconds beyond its limit after which an engine program is killed.
    #[arg(long, value_name = "SECONDS", default_value_t = 60.0, hide = true)]
    pub(crate) grace: f64,
    /// Where the run goes. Default: a new directory under out/lab.
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
    /// Where the databases go: a directory on the file system to measure. Default: in the run's
    /// directory.
    #[arg(long, value_name = "DIR")]
    pub(crate) db: Option<PathBuf>,
    /// Go on with the run in --out.
    #[arg(long, requires = "out")]
    pub(crate) resume: bool,
    /// The first seed; every round has its own.
    #[arg(long, value_name = "N")]
    pub(crate) seed: Option<u64>,
    /// Items to load, for a suite under steady load; the same as --num.
    #[arg(long, value_name = "N", conflicts_with = "num")]
    pub(crate) items: Option<u64>,
    /// Minutes of every benchmark that runs for a time, where the suite does not say how long: the
    /// steady phases of basho-2011.
    #[arg(long, value_name = "N")]
    pub(crate) minutes: Option<f64>,
}

impl Arguments {
    pub(crate) fn lab_dir(&self) -> PathBuf {
        self.lab.clone().unwrap_or_else(|| {
            let harness = Path::new(env!("CARGO_MANIFEST_DIR"));
            harness.parent().unwrap_or(harness).to_owned()
        })
    }
}
