//! Many entries, in order: `scan`.

use clap::Args;
use serde_json::json;

use super::scope::ScopeArgs;
use super::{Run, Session};
use crate::failure::Result;
use crate::form::FormArgs;
use crate::interchange::{EntryWriter, Format};
use crate::number::parse_whole;
use crate::output::Output;
use crate::own_entries;
use crate::progress::Progress;
use crate::range::{KeyRange, RangeArgs};
use crate::text::to_json;

/// Entries between two steps of a progress bar.
const PROGRESS_STEP: u64 = 1 << 12;

#[derive(Args, Debug)]
pub(crate) struct ScanArgs {
    #[command(flatten)]
    range: RangeArgs,
    /// From the last key to the first
    #[arg(long)]
    reverse: bool,
    /// Stop after this many entries
    #[arg(long, value_name = "N", value_parser = parse_whole::<u64>, allow_negative_numbers = true)]
    limit: Option<u64>,
    /// Print the keys alone
    #[arg(long)]
    keys_only: bool,
    /// Print how many entries there are instead of the entries
    #[arg(long, conflicts_with = "keys_only")]
    count: bool,
    #[command(flatten)]
    scope: ScopeArgs,
    #[command(flatten)]
    form: FormArgs,
}

impl Run for ScanArgs {
    fn run(&self, session: &Session<'_>, out: &mut Output) -> Result<()> {
        let form = self.form.over(session.form());
        let range = self.range.range(form.notation)?;
        let scope = session.scope(&self.scope)?;
        let range = scope.range(range);
        let hidden = own_entries::within(&range).filter(|_| !own_entries::is_asked_for(&range));
        let limit = self.limit.unwrap_or(u64::MAX);
        if self.count {
            let count = self.count_entries(session, &range, hidden.as_ref(), limit)?;
            match form.json {
                true => out.json(&json!({ "count": count }))?,
                false => out.line(count.to_string())?,
            }
            return self.end(session, out);
        }
        let format = if form.json { Format::Json } else { Format::Text };
        let mut writer = EntryWriter::new(out, format, form.notation, false)?;
        let mut left = limit;
        if left == 0 {
            return self.end(session, out);
        }
        session.for_each(&range, self.reverse, |key, value| {
            if hidden.as_ref().is_some_and(|hidden| hidden.contains(key)) {
                return Ok(true);
            }
            let key = scope.within(key);
            match (self.keys_only, form.json) {
                (false, _) => writer.write(out, key, value)?,
                (true, true) => out.json(&json!({ "key": to_json(form.notation, key) }))?,
                (true, false) => out.line(form.notation.encode(key))?,
            }
            left -= 1;
            Ok(left > 0)
        })?;
        self.end(session, out)
    }
}

impl ScanArgs {
    /// Writes the output out, and fails if there is not all of it.
    fn end(&self, session: &Session<'_>, out: &mut Output) -> Result<()> {
        out.flush()?;
        session.require_whole(if self.count { "the count" } else { "the scan" })
    }

    fn count_entries(
        &self,
        session: &Session<'_>,
        range: &KeyRange,
        hidden: Option<&KeyRange>,
        limit: u64,
    ) -> Result<u64> {
        let progress = Progress::spinner("counting");
        let mut count = 0u64;
        if limit == 0 {
            return Ok(0);
        }
        session.for_each(range, self.reverse, |key, _| {
            if hidden.is_some_and(|hidden| hidden.contains(key)) {
                return Ok(true);
            }
            count += 1;
            if count.is_multiple_of(PROGRESS_STEP) {
                progress.set(count);
            }
            Ok(count < limit)
        })?;
        Ok(count)
    }
}
