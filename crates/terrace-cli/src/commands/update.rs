//! Atomic updates: `cas`, `update`.

use std::ffi::OsString;

use clap::{ArgGroup, Args};
use serde_json::json;
use terrace::{Append, Counter, Error, MergeOperator};

use super::lifetime::LifetimeArgs;
use super::scope::ScopeArgs;
use super::{Run, Session};
use crate::failure::{Failure, Result};
use crate::form::{FormArgs, NotationArgs};
use crate::number::parse_whole;
use crate::output::Output;
use crate::own_entries;
use crate::range::decode_argument;
use crate::text::to_json;

#[derive(Args, Debug)]
#[command(group(ArgGroup::new("condition").args(["expected", "if_absent"]).required(true)))]
pub(crate) struct CasArgs {
    /// The key
    key: OsString,
    /// The value to set
    #[arg(required_unless_present = "delete", conflicts_with = "delete")]
    value: Option<OsString>,
    /// Only if this is the value
    #[arg(long = "if", value_name = "VALUE")]
    expected: Option<OsString>,
    /// Only if the key has no value
    #[arg(long, conflicts_with = "delete")]
    if_absent: bool,
    /// Remove the key in place of setting a value
    #[arg(long, conflicts_with = "ttl")]
    delete: bool,
    #[command(flatten)]
    lifetime: LifetimeArgs,
    #[command(flatten)]
    scope: ScopeArgs,
    #[command(flatten)]
    notation: NotationArgs,
}

#[derive(Args, Debug)]
#[command(group(ArgGroup::new("change").args(["add", "append"]).required(true)))]
pub(crate) struct UpdateArgs {
    /// The key
    key: OsString,
    /// Add this number; no value counts as 0
    #[arg(long, value_name = "N", value_parser = parse_whole::<i64>, allow_hyphen_values = true)]
    add: Option<i64>,
    /// The value is a counter of eight bytes, as programs store it, and not a number in digits
    #[arg(long, conflicts_with = "append")]
    counter: bool,
    /// Append these bytes
    #[arg(long, value_name = "BYTES")]
    append: Option<OsString>,
    /// Between what is appended
    #[arg(long, value_name = "BYTES", conflicts_with = "add")]
    separator: Option<OsString>,
    #[command(flatten)]
    lifetime: LifetimeArgs,
    #[command(flatten)]
    scope: ScopeArgs,
    #[command(flatten)]
    form: FormArgs,
}

impl Run for CasArgs {
    fn run(&self, session: &Session<'_>, _: &mut Output) -> Result<()> {
        let notation = self.notation.over(session.form());
        let decoded = |name: &str, text: &Option<OsString>| {
            text.as_ref().map(|text| decode_argument(name, text, notation)).transpose()
        };
        let key = decode_argument("KEY", &self.key, notation)?;
        let (value, expected) = (decoded("VALUE", &self.value)?, decoded("--if", &self.expected)?);
        let scope = session.scope(&self.scope)?;
        own_entries::refuse(&scope.key(&key))?;
        let (expected, value) = (expected.as_deref(), value.as_deref());
        match session.compare_and_swap((&scope, &key), expected, value, self.lifetime.ttl)? {
            true => Ok(()),
            false => Err(session.unless_whole(Failure::Missing(format!(
                "{} {}; nothing was changed",
                notation.in_message(&key),
                if self.if_absent { "has a value" } else { "does not have the expected value" }
            )))),
        }
    }
}

impl UpdateArgs {
    /// The operator and its operand, and whether the outcome is a counter.
    fn operation(&self, form: crate::form::Form) -> Result<(Box<dyn MergeOperator>, Vec<u8>)> {
        let decoded = |name: &str, text: &OsString| decode_argument(name, text, form.notation);
        if let Some(text) = &self.append {
            let separator = self.separator.as_ref().map(|text| decoded("--separator", text));
            let operator = Append::new().separator(separator.transpose()?.unwrap_or_default());
            return Ok((Box::new(operator), decoded("--append", text)?));
        }
        let number = Counter::encode(self.add.unwrap_or(0)).to_vec();
        Ok(match self.counter {
            true => (Box::new(Counter), number),
            false => (Box::new(Digits), number),
        })
    }
}

impl Run for UpdateArgs {
    fn run(&self, session: &Session<'_>, out: &mut Output) -> Result<()> {
        let form = self.form.over(session.form());
        let key = decode_argument("KEY", &self.key, form.notation)?;
        let (operator, operand) = self.operation(form)?;
        let scope = session.scope(&self.scope)?;
        own_entries::refuse(&scope.key(&key))?;
        let value =
            session.merge((&scope, &key), &operand, operator.as_ref(), self.lifetime.ttl)?;
        let number = if self.counter { Some(Counter::decode(&value)?) } else { None };
        if form.json {
            let shown = match number {
                Some(number) => json!(number),
                None => to_json(form.notation, &value),
            };
            return out.json(&json!({ "key": to_json(form.notation, &key), "value": shown }));
        }
        match number {
            Some(number) => out.line(number.to_string()),
            None => out.line(form.notation.encode(&value)),
        }
    }
}

/// Adds numbers of which the value holds the digits. The operand is a counter's.
struct Digits;

impl MergeOperator for Digits {
    fn merge(&self, _: &[u8], value: Option<&[u8]>, operand: &[u8]) -> terrace::Result<Vec<u8>> {
        let present = match value {
            None => 0,
            Some(value) => std::str::from_utf8(value)
                .ok()
                .and_then(|digits| digits.parse().ok())
                .ok_or_else(|| {
                let hint = "the value is not a whole number in digits; with --counter it \
                                    is one of eight bytes";
                Error::invalid_argument(hint)
            })?,
        };
        let sum = Counter.merge(&[], Some(&Counter::encode(present)), operand)?;
        Ok(Counter::decode(&sum)?.to_string().into_bytes())
    }
}
