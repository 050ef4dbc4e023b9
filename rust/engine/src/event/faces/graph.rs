//! The declaration of the graph face.

use crate::event::face::{Face, FaceIndex, Network};
use crate::event::tie::{Bond, tie};

const TARGETS: &[&[&str]] = &[&["data", "actions", "target"]];

/// The face.
pub(super) const FACE: Face = Face {
    name: "graph",
    prefixes: &["profile", "node", "gedge", "path", "plan", "event", "audit"],
    indexes: &[
        FaceIndex {
            name: "graph.nodes_by_kind",
            kind: "node",
            status: "active",
            by: &[&["data", "kind"]],
            then: &["data", "id"],
        },
        FaceIndex {
            name: "graph.edges_by_source",
            kind: "gedge",
            status: "active",
            by: &[&["data", "source"]],
            then: &["data", "id"],
        },
        FaceIndex {
            name: "graph.edges_by_target",
            kind: "gedge",
            status: "active",
            by: &[&["data", "target"]],
            then: &["data", "id"],
        },
        FaceIndex {
            name: "graph.edges_by_kind",
            kind: "gedge",
            status: "active",
            by: &[&["data", "kind"]],
            then: &["data", "id"],
        },
        // What is appended has no field that orders it, so it stays in the order in which it came.
        FaceIndex {
            name: "graph.appended",
            kind: "event",
            status: "active",
            by: &[&["data", "log"]],
            then: &["data", "order"],
        },
        FaceIndex {
            name: "graph.appended_by_kind",
            kind: "event",
            status: "active",
            by: &[&["data", "kind"]],
            then: &["data", "order"],
        },
        FaceIndex {
            name: "graph.audited",
            kind: "audit",
            status: "active",
            by: &[&["data", "log"]],
            then: &["data", "order"],
        },
    ],
    networks: &[Network {
        name: "graph.edges",
        by_source: "graph.edges_by_source",
        by_target: "graph.edges_by_target",
        kind: &["data", "kind"],
        ends: "graph.nodes_by_kind",
        prefix: "node:",
    }],
    calls: &[],
    acts: None,
    sorting: None,
    ties: &[
        tie(
            "gedge:",
            "node:",
            &[&["data", "source"], &["data", "target"]],
            Bond::Belongs,
        ),
        tie(
            "event:",
            "node:",
            &[
                &["data", "data", "nodes", "id"],
                &["data", "data", "gone_nodes"],
                &["data", "data", "action", "target"],
            ],
            Bond::Repeats,
        ),
        tie(
            "event:",
            "gedge:",
            &[
                &["data", "data", "edges", "id"],
                &["data", "data", "gone_edges"],
                &["data", "data", "action", "target"],
            ],
            Bond::Repeats,
        ),
        tie(
            "event:",
            "profile:",
            &[&["data", "data", "profiles", "id"]],
            Bond::Repeats,
        ),
        tie("event:", "path:", &[&["data", "data", "paths", "id"]], Bond::Repeats),
        tie("event:", "node:", &[&["data", "refs"]], Bond::Mentions),
        tie("event:", "path:", &[&["data", "path_id"]], Bond::Mentions),
        tie("path:", "event:", &[&["data", "event_ids"]], Bond::Mentions),
        tie(
            "path:",
            "node:",
            &[&["data", "compaction", "summary_id"]],
            Bond::Mentions,
        ),
        tie("plan:", "node:", &[&["data", "node_ids"]], Bond::Mentions),
        tie("audit:", "node:", TARGETS, Bond::Mentions),
        tie("audit:", "gedge:", TARGETS, Bond::Mentions),
    ],
};
