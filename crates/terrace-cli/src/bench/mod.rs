//! `terrace bench`: the workloads of LevelDB's db_bench, as `lab/WORKLOADS.md` defines them. Every
//! engine program of the lab does exactly the same under the same name, so that figures can be
//! compared.

mod args;
mod data;
mod meter;
mod report;
mod runner;
mod workload;

use std::path::PathBuf;

use tempfile::TempDir;

use crate::failure::{Failure, Result};
use crate::opening::{has_database, require_directory};
use crate::output::Output;
use crate::signals::{self, Registered};
pub(crate) use args::BenchArgs;
use runner::Runner;
use workload::{Benchmark, Step};

/// The long help of `terrace bench`.
pub(crate) const AFTER_HELP: &str = "\
Benchmarks, in the order in which they usually make sense:
  fillseq, fillrandom        put num entries in order of their keys, or in random order
  fillseqbatch, fillrandbatch  the same in batches of --batch entries
  fillsync                   num/100 random puts, each waiting for the disk
  fill100K, fill100Krandom   num/1000 values of 100,000 bytes
  bulkload                   load num entries in order of their keys, past log and memtable
  overwrite                  num random puts into what is there
  waitcompact, compact       wait for background work; compact everything
  readrandom, readmissing    get random keys, or keys that do not exist
  readhot                    get random keys out of one per cent of them
  multireadrandom            get random keys, 64 with one call
  seekrandom                 open an iterator at a random key and step ten times
  readseq, readreverse       scan everything, forwards or backwards
  readwhilewriting           readrandom while another thread puts
  deleteseq, deleterandom    delete num keys
  stats                      print the engine's counters (no measurement)

bulkload and those that begin with `fill` start with an empty database: one that is there is
DESTROYED first, unless --use_existing_db is given. If it was there before the run, that takes
--yes; without either option the command refuses. The other benchmarks take what is there. Without
--db all happens in a fresh temporary directory (in $TMPDIR), which is removed at the end. The same
--seed makes the same keys and values.

Examples:
  terrace bench
  terrace bench --benchmarks=fillrandom,waitcompact,readrandom --num=100000 --value_size=1000
  terrace bench --benchmarks=fillseq --threads=4 --json
  terrace bench --db=/mnt/disk/bench --benchmarks=readrandom,readseq --use_existing_db --cache_size=128M";

impl BenchArgs {
    pub(crate) fn run(&self, out: &mut Output) -> Result<()> {
        if self.value_size == 0 {
            return Err(Failure::other("--value_size must be at least 1"));
        }
        let steps = self.benchmarks.iter().map(|name| name.trim()).filter(|name| !name.is_empty());
        let steps: Vec<Step> =
            steps.map(|name| Step::parse(name).map_err(Failure::Other)).collect::<Result<_>>()?;
        let (path, temporary) = self.directory()?;
        let mut runner = Runner::new(self, path.clone());
        if let Some(benchmark) = self.destroys(&steps)? {
            if !self.yes {
                let (name, path) = (benchmark.name(), path.display());
                let message = format!(
                    "{name} would first remove the database {path}; add --yes to have it removed"
                );
                return Err(Failure::Other(format!(
                    "{message}, or --use_existing_db to write into it"
                )));
            }
            runner.check_options()?;
        }
        if !self.json {
            report::print_header(self, &path, out)?;
            out.flush()?;
        }
        for step in steps {
            match step {
                Step::Stats => report::print_stats(runner.db()?, self.json, out)?,
                Step::Run(benchmark) => {
                    let result = runner.run(benchmark)?;
                    report::print_result(&result, self, out)?;
                }
            }
            // A long series is watched while it runs.
            out.flush()?;
        }
        runner.close()?;
        match temporary {
            Some((directory, _registered)) => {
                directory.close().map_err(|e| Failure::io("remove", &path, &e))
            }
            None => Ok(()),
        }
    }

    /// The first benchmark that would destroy a database which is not of this run's making, if
    /// there is one.
    fn destroys(&self, steps: &[Step]) -> Result<Option<Benchmark>> {
        let fills = |step: &Step| match step {
            Step::Run(benchmark) if benchmark.is_fill() => Some(*benchmark),
            Step::Run(_) | Step::Stats => None,
        };
        match &self.db {
            Some(path) if !self.use_existing_db && path.is_dir() && has_database(path)? => {
                Ok(steps.iter().find_map(fills))
            }
            _ => Ok(None),
        }
    }

    fn directory(&self) -> Result<(PathBuf, Option<(TempDir, Registered)>)> {
        if let Some(path) = &self.db {
            if path.exists() {
                require_directory(path)?;
            }
            return Ok((path.clone(), None));
        }
        let temporary =
            signals::make_temporary(|| tempfile::Builder::new().prefix("terrace-bench-").tempdir());
        let temporary = temporary
            .map_err(|e| Failure::other(format!("cannot make a temporary directory: {e}")))?;
        Ok((temporary.0.path().to_path_buf(), Some(temporary)))
    }
}
