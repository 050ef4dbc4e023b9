//! The declaration of the blocks face.

use crate::acts;
use crate::event::faces::{Call, Face, UNDECLARED, active};
use crate::event::tie::{Bond, ENDS, tie};

/// The beginning of the ids of sessions.
pub const SESSION_PREFIX: &str = "session:";

/// The face.
pub(super) const FACE: Face = Face {
    name: "blocks",
    prefixes: &["block", "bedge", "contradiction", "frame", "session", "config"],
    indexes: &[
        active("blocks.by_category", "block", &["data.category"], "data.created_at"),
        active("blocks.by_tag", "block", &["data.tags"], "data.created_at"),
    ],
    call: Some(Call {
        by: "bedge:",
        of: "block:",
    }),
    acts: Some(&acts::blocks::RULES),
    ties: &[
        tie("bedge:", "block:", ENDS, Bond::Belongs),
        tie(
            "contradiction:",
            "block:",
            "data.block_a_id data.block_b_id",
            Bond::Belongs,
        ),
        tie(
            "block:",
            "block:",
            "data.supersedes data.superseded_by data.forming",
            Bond::Refers,
        ),
        tie("block:", "", "data.previous", Bond::Refers),
        // A block that was made of the turns of a conversation repeats what they say.
        tie("block:", "", "data.turns", Bond::Belongs),
        tie("block:", "session:", "data.last_session_id", Bond::Refers),
        tie("bedge:", "session:", "data.sessions", Bond::Refers),
        // Of a kept MCP call: what it wrote. Its result names that, and its digest covers the text.
        tie("config:", "", "data.wrote", Bond::Belongs),
    ],
    ..UNDECLARED
};
