//! Keeps a reserve of memory, so that a small allocation that is refused does not end the process.
//!
//! A refused allocation ends the process. The reserve serves it instead, and long work asks [`check`] between two steps and
//! stops with an error as long as there is no reserve. Larger allocations use `try_reserve`.

#![allow(unsafe_code)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use memmap2::MmapMut;

use super::Refused;

/// The size of the reserve. It is never touched, so it costs addresses and no memory.
const RESERVE_BYTES: usize = 16 * 1024 * 1024;
/// Larger pieces do not count on the reserve: it would be gone at once.
const LARGEST_BYTES: usize = RESERVE_BYTES / 2;

static RESERVE: Mutex<Option<MmapMut>> = Mutex::new(None);
/// Whether it is there, for those who only look.
static IS_WHOLE: AtomicBool = AtomicBool::new(false);

/// Whether there is memory for small things: the reserve is there, or could be had just now.
#[inline]
pub fn check() -> Result<(), Refused> {
    if IS_WHOLE.load(Ordering::Relaxed) {
        return Ok(());
    }
    restock()
}

#[cold]
fn restock() -> Result<(), Refused> {
    let mut kept = RESERVE.lock().unwrap_or_else(PoisonError::into_inner);
    if kept.is_none() {
        *kept = Some(MmapMut::map_anon(RESERVE_BYTES).map_err(|_| Refused)?);
    }
    IS_WHOLE.store(true, Ordering::Relaxed);
    Ok(())
}

/// Gives the reserve up. The lock is taken only if it is there: it was used before then, and needs no memory itself.
#[cold]
fn spend() {
    if IS_WHOLE.swap(false, Ordering::Relaxed) {
        drop(RESERVE.lock().unwrap_or_else(PoisonError::into_inner).take());
    }
}

/// The system's memory, with the reserve behind it. A program that wants the promise makes it its allocator.
pub struct Reserved;

impl Reserved {
    fn or_from_reserve(piece: *mut u8, bytes: usize, again: impl FnOnce() -> *mut u8) -> *mut u8 {
        if !piece.is_null() || bytes > LARGEST_BYTES {
            return piece;
        }
        spend();
        // Even if it was gone already: another thread may have given it up a moment ago.
        again()
    }
}

// SAFETY: every piece comes from the system's allocator and goes back to it, with the layout that the caller gave.
unsafe impl GlobalAlloc for Reserved {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's promise about the layout is passed on.
        Self::or_from_reserve(unsafe { System.alloc(layout) }, layout.size(), || unsafe {
            System.alloc(layout)
        })
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as above.
        Self::or_from_reserve(unsafe { System.alloc_zeroed(layout) }, layout.size(), || unsafe {
            System.alloc_zeroed(layout)
        })
    }

    unsafe fn realloc(&self, piece: *mut u8, layout: Layout, bytes: usize) -> *mut u8 {
        // SAFETY: as above; a piece that could not be moved is still the caller's, so a second try is as good as the first.
        Self::or_from_reserve(unsafe { System.realloc(piece, layout, bytes) }, bytes, || unsafe {
            System.realloc(piece, layout, bytes)
        })
    }

    unsafe fn dealloc(&self, piece: *mut u8, layout: Layout) {
        // SAFETY: the piece came from there.
        unsafe { System.dealloc(piece, layout) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reserve_that_was_spent_comes_back() {
        assert!(check().is_ok());
        spend();
        assert!(!IS_WHOLE.load(Ordering::Relaxed));
        assert!(check().is_ok());
        assert!(IS_WHOLE.load(Ordering::Relaxed));
    }

    #[test]
    fn a_refused_piece_is_asked_for_again() {
        let mut piece = 0_u8;
        let given = Reserved::or_from_reserve(std::ptr::null_mut(), 10, || &raw mut piece);
        assert_eq!(given, &raw mut piece);
        let large = Reserved::or_from_reserve(std::ptr::null_mut(), LARGEST_BYTES + 1, || &raw mut piece);
        assert!(large.is_null());
    }
}
