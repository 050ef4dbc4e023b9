//! Tells the state which moment it is, where a record may have expired by it.
//!
//! The engine looks at no clock: whoever asks is asked for the moment, and only where a record may have expired by it.

use crate::scope::Viewer;
use crate::store::Store;

impl Store {
    /// Whether it makes a difference which moment it is now.
    #[inline]
    pub fn is_due(&self, clock: &dyn Fn() -> i64) -> bool {
        self.state.knows_expiries() && self.state.is_due(clock())
    }

    /// From now on what has expired by this moment is left out of answers.
    pub fn expire(&mut self, clock: &dyn Fn() -> i64) {
        if self.state.knows_expiries() {
            self.clock = clock();
            self.state.expire(self.clock);
        }
    }

    /// Whether there is something that somebody does not see, for whatever reason.
    pub fn hides_any(&self, viewer: &Viewer) -> bool {
        !self.state.sight(viewer).is_all()
    }

    /// The ids of somebody's own records that have expired at a moment, those first that did first.
    pub fn due_at(&self, viewer: &Viewer, now: i64) -> Vec<String> {
        self.state.due_at(viewer, now)
    }
}
