//! The names of whoever asks, as Python knows them.

use chronomemory::Viewer;

/// The digits that stand for the scope of somebody in ids.
pub fn digits_of(viewer: &Viewer) -> String {
    match viewer.who() {
        Viewer::Named { scope, .. } => scope.digits(),
        _ => String::new(),
    }
}

/// User, agent and session.
pub type Names = (Option<String>, Option<String>, Option<String>);

/// The names that somebody gave; `None` for everyone.
pub fn names_of(viewer: &Viewer) -> Option<Names> {
    let Viewer::Named { scope, .. } = viewer.who() else {
        return None;
    };
    let [user, agent, session] = scope.names().map(|name| name.map(str::to_owned));
    Some((user, agent, session))
}

/// Whether somebody also sees what is wider.
pub fn sees_wider(viewer: &Viewer) -> bool {
    !matches!(viewer.who(), Viewer::Named { shared: false, .. })
}
