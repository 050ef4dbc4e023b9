//! What somebody sees of the blocks, and the clock that counts for them.

use chronolog::scope::Viewer;
use chronomemory_state::state::{Sight, State};

/// What somebody sees, as of a state.
pub struct Outlook {
    /// The scopes.
    pub sight: Sight,
    /// The digits of the clock.
    pub clock: String,
}

impl Outlook {
    /// What this one sees in a state.
    pub fn of(state: &State, viewer: &Viewer) -> Self {
        let clock = match viewer.who() {
            Viewer::Named { scope, .. } => scope.of_clock().digits(),
            _ => String::new(),
        };
        Self {
            sight: state.sight(viewer),
            clock,
        }
    }
}
