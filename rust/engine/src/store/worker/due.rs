//! Decides what is to be done for a store between calls, and when; it holds no thread, no lock and no clock.

use std::time::Duration;

use crate::store::DueWork;

/// `normal` lets a write wait at most a second for its sync. A sync begins a little earlier: it takes a moment.
const PATIENCE: Duration = Duration::from_millis(900);
/// `normal` leaves at most four mebibytes unsynced; at half of that a sync begins.
const URGENT_BYTES: u64 = 2 * 1024 * 1024;
/// How soon a lock that was kept is looked at again.
const LEASE_LOOK: Duration = Duration::from_millis(1);

/// What a store asks for, as bits: an atomic holds them.
pub(super) mod asked {
    /// Something was written.
    pub const WRITTEN: u8 = 1;
    /// So much that a second is too long.
    pub const URGENT: u8 = 2;
    /// A lock is kept.
    pub const LEASED: u8 = 4;
    /// A snapshot is due.
    pub const SNAPSHOT: u8 = 8;
    /// The index of the text should be sealed again.
    pub const SEALING: u8 = 16;
    /// A head was synced and is not noted yet.
    pub const UNTOLD: u8 = 64;
    /// The chain behind the segments should be verified.
    pub const UNVERIFIED: u8 = 128;
    /// A task has ended: look again.
    pub const ENDED: u8 = 32;
}

use asked::{LEASED, SEALING, SNAPSHOT, UNTOLD, UNVERIFIED, URGENT, WRITTEN};

/// What work that is due asks for.
pub(super) fn asks_of(due_work: DueWork) -> u8 {
    let ask = |bit: u8, wanted: bool| if wanted { bit } else { 0 };
    ask(WRITTEN, due_work.unsynced_bytes > 0)
        | ask(URGENT, due_work.unsynced_bytes >= URGENT_BYTES)
        | ask(LEASED, due_work.leased)
        | ask(SNAPSHOT, due_work.snapshot)
        | ask(SEALING, due_work.sealing)
        | ask(UNTOLD, due_work.untold)
        | ask(UNVERIFIED, due_work.unverified)
}

/// Something that is done for a store. All but the first may take long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Task {
    /// Give back a lock that is kept, unless commits go on.
    EndLease,
    /// Wait for the disk.
    Sync,
    /// Write a snapshot.
    Snapshot,
    /// Seal the index of the text.
    Seal,
    /// Note the head.
    Tell,
    /// Verify the chain behind the segments.
    Verify,
}

/// All of them, the most urgent first.
const TASKS: [Task; 6] = [
    Task::EndLease,
    Task::Sync,
    Task::Snapshot,
    Task::Seal,
    Task::Tell,
    Task::Verify,
];

impl Task {
    /// What it is an answer to.
    pub fn answers(self) -> u8 {
        match self {
            Self::EndLease => LEASED,
            Self::Sync => WRITTEN | URGENT,
            Self::Snapshot => SNAPSHOT,
            Self::Seal => SEALING,
            Self::Tell => UNTOLD,
            Self::Verify => UNVERIFIED,
        }
    }
}

/// When the oldest wish of a kind was uttered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct DueSince {
    /// The first write that no sync has begun for.
    pub written: Duration,
    /// The first wish for a snapshot that none has begun for.
    pub outdated: Duration,
    /// The first head that was not noted.
    pub untold: Duration,
    /// When segments were opened.
    pub unverified: Duration,
}

impl DueSince {
    /// Hears at this moment of wishes that are new.
    pub fn note(&mut self, fresh: u8, now: Duration) {
        if fresh & WRITTEN != 0 {
            self.written = now;
        }
        if fresh & SNAPSHOT != 0 {
            self.outdated = now;
        }
        if fresh & UNTOLD != 0 {
            self.untold = now;
        }
        if fresh & UNVERIFIED != 0 {
            self.unverified = now;
        }
    }
}

/// What was asked for and not begun, and what is being done.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Due {
    pub asked: u8,
    pub since: DueSince,
    /// What the tasks that are under way answer to: of each kind there is one at a time.
    pub busy: u8,
    /// When a lock that is kept was last looked at and left.
    pub looked: Option<Duration>,
}

impl Due {
    /// The next task that is due at this moment.
    pub fn next(&self, now: Duration) -> Option<Task> {
        let is_due = |task: &Task| self.wait_for(*task, now) == Some(Duration::ZERO);
        TASKS.into_iter().find(is_due)
    }

    /// How long nothing will be due unless something else is asked for; `None` for as long as that takes.
    pub fn sleep(&self, now: Duration) -> Option<Duration> {
        TASKS.into_iter().filter_map(|task| self.wait_for(task, now)).min()
    }

    /// How long a task has to wait; `None` if nobody asks for it, or the end of another must come first.
    fn wait_for(&self, task: Task, now: Duration) -> Option<Duration> {
        if self.asked & task.answers() == 0 || self.busy & task.answers() != 0 {
            return None;
        }
        let left = |since: Duration, patience: Duration| (since + patience).saturating_sub(now);
        Some(match task {
            Task::EndLease => self.looked.map_or(Duration::ZERO, |looked| left(looked, LEASE_LOOK)),
            Task::Sync if self.asked & URGENT != 0 => Duration::ZERO,
            Task::Sync => left(self.since.written, PATIENCE),
            // Whoever writes much at once gets one snapshot of it, afterwards, and not one at each step on the way.
            Task::Snapshot => left(self.since.outdated, PATIENCE),
            Task::Seal => Duration::ZERO,
            Task::Tell => left(self.since.untold, PATIENCE),
            Task::Verify => left(self.since.unverified, PATIENCE),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn at(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    fn written(since: u64) -> Due {
        let mut due = Due {
            asked: WRITTEN,
            ..Due::default()
        };
        due.since.note(WRITTEN, at(since));
        due
    }

    #[test]
    fn a_store_that_asks_for_nothing_is_left_alone() {
        let due = Due::default();
        assert_eq!((due.next(at(5)), due.sleep(at(5))), (None, None));
    }

    #[test]
    fn a_write_waits_for_its_sync_and_never_for_a_second() {
        let due = written(100);
        assert_eq!((due.next(at(100)), due.sleep(at(100))), (None, Some(PATIENCE)));
        assert_eq!((due.next(at(999)), due.sleep(at(999))), (None, Some(at(1))));
        assert_eq!(due.next(at(1_000)), Some(Task::Sync));
        assert_eq!(
            due.sleep(at(7_000)),
            Some(Duration::ZERO),
            "also if somebody comes late"
        );
        assert!(PATIENCE < Duration::from_secs(1));
    }

    #[test]
    fn much_is_synced_at_once() {
        let asked = |unsynced_bytes| {
            asks_of(DueWork {
                unsynced_bytes,
                ..DueWork::default()
            })
        };
        assert_eq!(asked(0), 0);
        assert_eq!(asked(URGENT_BYTES - 1), WRITTEN);
        let due = Due {
            asked: asked(URGENT_BYTES),
            ..written(0)
        };
        assert_eq!(due.next(at(0)), Some(Task::Sync));
    }

    #[test]
    fn a_task_is_not_begun_twice_at_a_time() {
        for (task, asked) in [
            (Task::Sync, WRITTEN | URGENT),
            (Task::Snapshot, SNAPSHOT),
            (Task::Seal, SEALING),
            (Task::Tell, UNTOLD),
        ] {
            let mut due = Due {
                asked,
                ..Due::default()
            };
            assert_eq!(due.next(at(5_000)), Some(task));
            due.busy = task.answers();
            assert_eq!((due.next(at(5_000)), due.sleep(at(5_000))), (None, None), "{task:?}");
        }
    }

    #[test]
    fn nothing_waits_for_a_task_of_another_kind() {
        let mut due = written(0);
        due.asked |= SNAPSHOT | SEALING | LEASED;
        due.busy = SNAPSHOT | SEALING;
        due.looked = Some(at(900));
        assert_eq!(due.next(at(900)), Some(Task::Sync));
        due.busy |= Task::Sync.answers();
        assert_eq!((due.next(at(900)), due.sleep(at(900))), (None, Some(LEASE_LOOK)));
        assert_eq!(due.next(at(901)), Some(Task::EndLease));
    }

    #[test]
    fn a_lock_that_is_kept_is_looked_at_at_once_and_then_again_and_again() {
        let mut due = Due {
            asked: LEASED,
            ..Due::default()
        };
        assert_eq!(due.next(at(3)), Some(Task::EndLease));
        due.looked = Some(at(3));
        assert_eq!((due.next(at(3)), due.sleep(at(3))), (None, Some(LEASE_LOOK)));
        assert_eq!(due.next(at(4)), Some(Task::EndLease));
    }

    #[test]
    fn a_snapshot_waits_for_the_end_of_a_rush_and_sealing_does_not() {
        let mut due = Due {
            asked: SNAPSHOT | SEALING,
            ..Due::default()
        };
        due.since.note(SNAPSHOT, at(50));
        assert_eq!(due.next(at(60)), Some(Task::Seal));
        due.asked = SNAPSHOT;
        assert_eq!((due.next(at(60)), due.sleep(at(60))), (None, Some(at(890))));
        assert_eq!(due.next(at(950)), Some(Task::Snapshot));
    }
}
