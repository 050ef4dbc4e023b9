//! Tells the state which moment it is, where a record may have expired by it.
//!
//! The engine looks at no clock: whoever asks is asked for the moment, and only where a record may have expired by it.

use chronomemory_state::state::State;

/// The moment that was told last: what has expired by then is left out.
pub(in crate::store) struct ToldTime(i64);

impl Default for ToldTime {
    fn default() -> Self {
        Self(i64::MIN)
    }
}

impl ToldTime {
    /// Whether it makes a difference which moment it is now.
    #[inline]
    pub fn is_due(state: &State, clock: &dyn Fn() -> i64) -> bool {
        state.knows_expiries() && state.is_due(clock())
    }

    /// From now on what has expired by this moment is left out of answers.
    pub fn tell(&mut self, state: &mut State, clock: &dyn Fn() -> i64) {
        if state.knows_expiries() {
            self.0 = clock();
            state.expire(self.0);
        }
    }

    /// The same for a state that was not there when the moment was told.
    pub fn tell_again(&self, state: &mut State) {
        state.expire(self.0);
    }
}
