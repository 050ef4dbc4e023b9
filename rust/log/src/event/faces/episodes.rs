//! The declaration of the episodes face, with its facts.

use crate::event::faces::{Face, FaceIndex, UNDECLARED, active};
use crate::event::tie::{Bond, Tie, tie};

const USER: &str = "data.@scope.user";
const AGENT: &str = "data.@scope.agent";
const SESSION: &str = "data.@scope.session";

const LINEAGE: &str = "data.lineage.source_episode_ids";
const EARLIER: &str = "data.earlier";

const fn by_time(name: &'static str, by: &'static [&'static str]) -> FaceIndex {
    active(name, "episode", by, "data.time")
}

/// The face.
pub(super) const FACE: Face = Face {
    name: "episodes",
    prefixes: &["episode", "fact", "rule"],
    indexes: &[
        by_time("episodes.by_user", &[USER]),
        by_time("episodes.by_session", &[USER, SESSION]),
        by_time("episodes.by_agent", &[USER, AGENT]),
        by_time("episodes.by_scope", &[USER, SESSION, AGENT]),
    ],
    ties: &[
        // The copy of an episode that a rule makes has its content in the payload and its id in its own id.
        Tie {
            also_at: LINEAGE,
            ..tie("fact:", "episode:", "data.payload.id", Bond::Belongs)
        },
        tie("episode:", "fact:", "data.metadata.replaces", Bond::Refers),
        tie("fact:", "episode:", LINEAGE, Bond::Derived),
        tie("fact:", "", EARLIER, Bond::Derived),
        tie("rule:lineage:", "episode:", LINEAGE, Bond::Derived),
        tie("rule:lineage:", "", EARLIER, Bond::Derived),
        tie("rule:noop:", "episode:", "data.source_episode_ids", Bond::Belongs),
    ],
    ..UNDECLARED
};
