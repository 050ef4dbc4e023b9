//! The declaration of the blocks face.

use crate::acts;
use crate::event::face::{Call, Face, FaceIndex};
use crate::event::tie::{Bond, ENDS, tie};

/// The face.
pub(super) const FACE: Face = Face {
    name: "blocks",
    prefixes: &["block", "bedge", "contradiction", "frame", "session", "config"],
    indexes: &[
        FaceIndex {
            name: "blocks.by_category",
            kind: "block",
            status: "active",
            by: &[&["data", "category"]],
            then: &["data", "created_at"],
        },
        FaceIndex {
            name: "blocks.by_tag",
            kind: "block",
            status: "active",
            by: &[&["data", "tags"]],
            then: &["data", "created_at"],
        },
    ],
    networks: &[],
    calls: &[Call {
        by: "bedge:",
        of: "block:",
    }],
    acts: Some(&acts::blocks::RULES),
    sorting: None,
    ties: &[
        tie("bedge:", "block:", ENDS, Bond::Belongs),
        tie(
            "contradiction:",
            "block:",
            &[&["data", "block_a_id"], &["data", "block_b_id"]],
            Bond::Belongs,
        ),
        tie(
            "block:",
            "block:",
            &[&["data", "supersedes"], &["data", "superseded_by"]],
            Bond::Mentions,
        ),
        tie("block:", "", &[&["data", "previous"]], Bond::Mentions),
        tie("block:", "block:", &[&["data", "forming"]], Bond::Lists),
        // Of a call: what it wrote. Its answer names that, and the digest of the call tells what it said.
        tie("config:", "", &[&["data", "wrote"]], Bond::Belongs),
    ],
};
