//! The declaration of the episodes face, with its facts.

use crate::event::faces::{Face, Sorting, UNDECLARED, active};
use crate::event::tie::{Bond, tie};

const LINEAGE: &[&[&str]] = &[&["data", "lineage", "source_episode_ids"]];
const EARLIER: &[&[&str]] = &[&["data", "earlier"]];

/// The face.
pub(super) const FACE: Face = Face {
    name: "episodes",
    prefixes: &["episode", "fact", "rule"],
    indexes: &[
        active(
            "episodes.by_user",
            "episode",
            &[&["data", "@scope", "user"]],
            &["data", "time"],
        ),
        active(
            "episodes.by_session",
            "episode",
            &[&["data", "@scope", "user"], &["data", "@scope", "session"]],
            &["data", "time"],
        ),
        active(
            "episodes.by_agent",
            "episode",
            &[&["data", "@scope", "user"], &["data", "@scope", "agent"]],
            &["data", "time"],
        ),
        active(
            "episodes.by_scope",
            "episode",
            &[
                &["data", "@scope", "user"],
                &["data", "@scope", "session"],
                &["data", "@scope", "agent"],
            ],
            &["data", "time"],
        ),
    ],
    sorting: Some(&Sorting {
        prefix: "episode:",
        owner: ["user", "agent"],
        content: "content",
        source: "source_node",
        time: "timestamp",
        meaning: "metadata",
        intent: "intent",
        replaces: "replaces",
        confidence: "confidence",
        said: ["subject", "predicate", "object"],
    }),
    ties: &[
        // The copy of an episode that a rule makes has its content in the payload and its id in its own id.
        tie("fact:", "episode:", &[&["data", "payload", "id"]], Bond::Belongs).also_at(LINEAGE),
        tie("episode:", "fact:", &[&["data", "metadata", "replaces"]], Bond::Refers),
        tie("fact:", "episode:", LINEAGE, Bond::Derived),
        tie("fact:", "", EARLIER, Bond::Derived),
        tie("rule:lineage:", "episode:", LINEAGE, Bond::Derived),
        tie("rule:lineage:", "", EARLIER, Bond::Derived),
        tie(
            "rule:noop:",
            "episode:",
            &[&["data", "source_episode_ids"]],
            Bond::Belongs,
        ),
    ],
    ..UNDECLARED
};
