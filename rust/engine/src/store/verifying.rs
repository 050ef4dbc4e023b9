//! Verifies in the background what an opening took from segments.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::Store;
use chronolog::archive::file_digest;
use chronolog::digest::Hex;
use chronolog::disk::DiskFile;
use chronolog::event::Known;
use chronolog::origin::Origin;
use chronolog::verify::{Sink, Walk};
use chronolog::wal::reader::Reading;
use chronomemory_state::segment::Sealed;

/// How far the chain was verified since the store was opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct VerifiedChain {
    /// Up to this event; `None` while what segments hold is not verified.
    pub seq: Option<u64>,
    /// When that was finished in the background; `None` if it was verified when the store was opened.
    pub at: Option<i64>,
    /// The background verification has not finished.
    pub is_pending: bool,
}

/// What is still to be verified.
pub(in crate::store) struct Verification {
    log: Arc<dyn DiskFile>,
    until: u64,
    head: Hex,
    seq: u64,
    base: Option<(Arc<dyn DiskFile>, Hex)>,
    sealed: Arc<Sealed>,
}

impl Verification {
    /// Reads the log and its base; `None` if it was stopped before the end. `progress` is called after each piece.
    pub fn run(&self, stopped: &AtomicBool, progress: &mut dyn FnMut()) -> Option<bool> {
        let mut walk = Walk::new(None);
        let mut sink = Stoppable(stopped);
        let read = walk.go_with_progress(&*self.log, self.until, Reading::new(1), &mut sink, &mut |_, _| {
            progress()
        });
        if stopped.load(Ordering::Relaxed) {
            return None;
        }
        let is_whole = read.is_ok_and(|tail| tail.is_none())
            && walk.follower.damage.is_empty()
            && walk.mark().head.is_some_and(|head| head == self.head);
        let is_base =
            |(file, sha256): &(Arc<dyn DiskFile>, Hex)| file_digest(&**file).is_ok_and(|found| found == *sha256);
        Some(is_whole && self.base.as_ref().is_none_or(is_base))
    }
}

/// Looks at nothing, and ends when it is stopped.
struct Stoppable<'a>(&'a AtomicBool);

impl Sink for Stoppable<'_> {
    fn count(&mut self, _: Known<'_>, _: i64) {}

    fn minds_salt(&self, _: &[u8]) -> bool {
        false
    }

    fn is_satisfied(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

impl Store {
    /// What the background verification has to read, if anything.
    pub(in crate::store) fn start_verifying(&self) -> Option<Verification> {
        // Right after a compaction the segments are still those of the log before.
        let sealed = self.state.sealed().filter(|_| self.state.can_be_sealed())?;
        let log = self.log.open()?;
        let base = match &log.origin {
            Origin::Ours(sentinel) => sealed.sources().base().cloned().zip(sentinel.base_sha256),
            _ => None,
        };
        self.verified.is_pending.then(|| Verification {
            log: Arc::clone(&log.file),
            until: log.walk.end,
            head: log.mark().head.unwrap_or(Hex::spell(&[0; 32])),
            seq: log.mark().last_seq,
            base,
            sealed: Arc::clone(sealed),
        })
    }

    /// Takes the outcome of a verification that ended at this moment. If the log or its base is not what was sealed, the next call reads
    /// all of it and reports what is damaged.
    pub(in crate::store) fn end_verifying(&mut self, work: &Verification, is_whole: bool, now: i64) {
        if !self
            .state
            .sealed()
            .is_some_and(|sealed| Arc::ptr_eq(sealed.mark(), work.sealed.mark()))
        {
            return;
        }
        match is_whole {
            false => self.distrust_segments(),
            true => {
                self.verified = VerifiedChain {
                    seq: Some(work.seq),
                    at: Some(now),
                    is_pending: false,
                };
            }
        }
    }

    /// How far the chain was verified since the store was opened.
    pub fn verified(&self) -> VerifiedChain {
        self.verified
    }
}
