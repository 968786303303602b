//! The locks of files.

use terrace::LockMode;

/// The holders of a lock.
#[derive(Debug, Default)]
pub(super) struct Held {
    exclusive: bool,
    shared: usize,
}

impl Held {
    pub(super) fn take(&mut self, mode: LockMode) -> bool {
        match mode {
            LockMode::Exclusive if !self.exclusive && self.shared == 0 => self.exclusive = true,
            LockMode::Shared if !self.exclusive => self.shared += 1,
            LockMode::Exclusive | LockMode::Shared => return false,
        }
        true
    }

    pub(super) fn give_back(&mut self, mode: LockMode) {
        match mode {
            LockMode::Exclusive => self.exclusive = false,
            LockMode::Shared => self.shared -= 1,
        }
    }
}
