//! Which operations of a simulated file system fail, and how.

use std::io;
use std::path::Path;

/// The effect of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum OpKind {
    /// Creating a file.
    Create,
    /// Opening a file for reading or appending.
    Open,
    /// Reading from a file.
    Read,
    /// Writing to a file.
    Append,
    /// Making a file durable.
    Sync,
    /// Closing a written file.
    Close,
    /// Renaming a file.
    Rename,
    /// Removing a file or directory.
    Remove,
    /// Creating a directory.
    CreateDir,
    /// Making a directory durable.
    SyncDir,
    /// Listing a directory, asking for existence or size.
    Look,
    /// Taking a lock.
    Lock,
    /// Giving a file a second name.
    Link,
}

impl OpKind {
    /// All kinds.
    pub const ALL: [OpKind; 13] = [
        OpKind::Create,
        OpKind::Open,
        OpKind::Read,
        OpKind::Append,
        OpKind::Sync,
        OpKind::Close,
        OpKind::Rename,
        OpKind::Remove,
        OpKind::CreateDir,
        OpKind::SyncDir,
        OpKind::Look,
        OpKind::Lock,
        OpKind::Link,
    ];
}

/// How an operation fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// EIO; nothing happened. A failed sync leaves its pages to chance, and no later sync writes
    /// them.
    Io,
    /// ENOSPC; nothing happened.
    NoSpace,
    /// An append writes a part of its data, then EIO. Other operations: as [`Fault::Io`].
    Short,
    /// The operation takes place as a whole, and then EIO is reported.
    Late,
    /// A failed sync, after which the system shows what is on the disk again instead of what was
    /// written. Other operations: as [`Fault::Io`].
    Reverted,
    /// EINTR; nothing happened.
    Interrupted,
    /// EMFILE; nothing happened.
    TooManyFiles,
    /// EACCES; nothing happened.
    Access,
}

impl Fault {
    /// All of them.
    pub const ALL: [Fault; 7] = [
        Fault::Io,
        Fault::NoSpace,
        Fault::Short,
        Fault::Late,
        Fault::Interrupted,
        Fault::TooManyFiles,
        Fault::Access,
    ];

    /// The error that a caller sees.
    pub fn error(self) -> io::Error {
        io::Error::from_raw_os_error(match self {
            Fault::Io | Fault::Short | Fault::Late | Fault::Reverted => libc::EIO,
            Fault::NoSpace => libc::ENOSPC,
            Fault::Interrupted => libc::EINTR,
            Fault::TooManyFiles => libc::EMFILE,
            Fault::Access => libc::EACCES,
        })
    }
}

/// Which operation fails. Operations that do not match `kinds` and `suffix` are not counted.
#[derive(Clone, Debug)]
pub struct FaultPlan {
    /// The kinds that count; empty for all.
    pub kinds: Vec<OpKind>,
    /// How the name must end; empty for any.
    pub suffix: String,
    /// How many matching operations succeed first.
    pub after: u64,
    /// Whether all later matching operations fail too, or just one.
    pub forever: bool,
    /// How it fails.
    pub fault: Fault,
}

impl FaultPlan {
    /// The operation after the first `after`, of any kind and on any file.
    pub fn at(after: u64, fault: Fault, forever: bool) -> FaultPlan {
        FaultPlan { kinds: Vec::new(), suffix: String::new(), after, forever, fault }
    }

    fn matches(&self, kind: OpKind, path: &Path) -> bool {
        (self.kinds.is_empty() || self.kinds.contains(&kind))
            && (self.suffix.is_empty() || path.to_string_lossy().ends_with(&self.suffix))
    }
}

/// Plans being carried out.
#[derive(Debug, Default)]
pub(super) struct Faults {
    /// Each with how many operations have matched it.
    plans: Vec<(FaultPlan, u64)>,
    /// Operations that failed.
    pub(super) injected: u64,
    /// The first of them, for messages.
    pub(super) shown: Vec<String>,
}

/// How many failed operations are kept for messages.
const SHOWN: usize = 20;

impl Faults {
    pub(super) fn new(plans: impl IntoIterator<Item = FaultPlan>) -> Faults {
        Faults { plans: plans.into_iter().map(|plan| (plan, 0)).collect(), ..Faults::default() }
    }

    /// The fate of this operation: that of the first plan that matches it.
    pub(super) fn next(&mut self, kind: OpKind, path: &Path, step: u64) -> Option<Fault> {
        let mut fault = None;
        for (plan, matched) in self.plans.iter_mut().filter(|(plan, _)| plan.matches(kind, path)) {
            *matched += 1;
            let hit = if plan.forever { *matched > plan.after } else { *matched == plan.after + 1 };
            fault = fault.or(hit.then_some(plan.fault));
        }
        let hit = fault.is_some();
        self.injected += u64::from(hit);
        if hit && self.shown.len() < SHOWN {
            self.shown.push(format!("{kind:?} of {} after step {step}", path.display()));
        }
        fault
    }
}
