//! `terrace/c.h`: prepared transactions.

use std::ffi::{c_char, c_void};

use terrace::{Db, Error, ErrorKind, Result};

use super::database::Database;
use super::error::{reporting, required};
use super::options::COptions;
use crate::guard::export;
use crate::memory::{address, argument};

/// A program's function that looks at a prepared transaction and says whether to go on.
type Visitor = extern "C-unwind" fn(*mut c_void, *const c_char, usize, usize, u8) -> u8;

/// Whether there was a transaction to decide.
fn found(decided: Result<()>) -> Result<u8> {
    match decided {
        Ok(()) => Ok(1),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(0),
        Err(error) => Err(error),
    }
}

export! {
    /// Whether transactions may be prepared.
    fn terrace_options_set_prepared_transactions(options: *mut COptions, value: u8) {
        if let Some(options) = options.as_mut() {
            options.plain.prepared_transactions = value != 0;
        }
    }

    /// Hands the prepared transactions to a function.
    fn terrace_prepared_list(
        db: *mut Database, state: *mut c_void,
        visit: Option<Visitor>,
        errptr: *mut *mut c_char,
    ) {
        reporting(errptr, || {
            let db: &Db = required(db, "db")?.db();
            let Some(visit) = visit else { return Err(Error::invalid_argument("visit is null")) };
            for found in db.prepared_transactions()? {
                let (name, is_overtaken) = (&found.name, u8::from(found.is_overtaken));
                if visit(state, address(name), name.len(), found.writes, is_overtaken) == 0 {
                    break;
                }
            }
            Ok(())
        })
    }

    /// Commits a prepared transaction.
    fn terrace_prepared_commit(
        db: *mut Database, name: *const c_char, namelen: usize, errptr: *mut *mut c_char,
    ) -> u8 {
        reporting(errptr, || {
            let db = required(db, "db")?.db();
            found(db.commit_prepared(argument(name, namelen, "name")?))
        })
    }

    /// Forgets a prepared transaction.
    fn terrace_prepared_rollback(
        db: *mut Database, name: *const c_char, namelen: usize, errptr: *mut *mut c_char,
    ) -> u8 {
        reporting(errptr, || {
            let db = required(db, "db")?.db();
            found(db.rollback_prepared(argument(name, namelen, "name")?))
        })
    }
}
