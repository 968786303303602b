//! Bytes that jobs have read, until JavaScript copies them into a buffer of its own.
//!
//! A promise is resolved with a ticket, a small number; the bytes themselves never become a buffer
//! that the garbage collector has to keep book of.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The shelf that tickets are for. Clones share it.
#[derive(Clone, Default)]
pub struct Outputs(Arc<Mutex<Shelf>>);

#[derive(Default)]
struct Shelf {
    slots: Vec<Option<Vec<u8>>>,
    free: Vec<u32>,
}

impl Outputs {
    fn shelf(&self) -> MutexGuard<'_, Shelf> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Puts bytes on the shelf and returns their ticket.
    pub fn put(&self, bytes: Vec<u8>) -> u32 {
        let mut shelf = self.shelf();
        if let Some(ticket) = shelf.free.pop()
            && let Some(slot) = shelf.slots.get_mut(ticket as usize)
        {
            *slot = Some(bytes);
            return ticket;
        }
        shelf.slots.push(Some(bytes));
        (shelf.slots.len() - 1) as u32
    }

    /// Copies the bytes of `ticket` to the front of `target` and takes them off the shelf, if they
    /// fit. Returns how many there are, either way; 0 for a ticket that is not out.
    pub fn take(&self, ticket: u32, target: &mut [u8]) -> usize {
        let mut shelf = self.shelf();
        let Some(slot) = shelf.slots.get_mut(ticket as usize) else { return 0 };
        let Some(bytes) = slot.take_if(|bytes| bytes.len() <= target.len()) else {
            return slot.as_ref().map_or(0, Vec::len);
        };
        shelf.free.push(ticket);
        drop(shelf);
        target[..bytes.len()].copy_from_slice(&bytes);
        bytes.len()
    }

    /// Takes the bytes of `ticket` off the shelf unseen.
    pub fn discard(&self, ticket: u32) {
        let mut shelf = self.shelf();
        if shelf.slots.get_mut(ticket as usize).and_then(Option::take).is_some() {
            shelf.free.push(ticket);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tickets_are_used_again_and_never_twice_at_a_time() {
        let outputs = Outputs::default();
        let (first, second) = (outputs.put(vec![1; 3]), outputs.put(vec![2; 5]));
        assert_ne!(first, second);
        let mut target = [0; 4];
        assert_eq!(outputs.take(second, &mut target), 5, "does not fit and stays");
        assert_eq!(outputs.take(first, &mut target), 3);
        assert_eq!(target, [1, 1, 1, 0]);
        assert_eq!(outputs.take(first, &mut target), 0, "is gone");
        assert_eq!(outputs.put(vec![3]), first);
        outputs.discard(second);
        outputs.discard(second);
        assert_eq!(outputs.put(vec![]), second);
        assert_eq!(outputs.take(99, &mut target), 0, "never was");
    }
}
