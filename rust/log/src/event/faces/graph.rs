//! The declaration of the graph face.

use crate::event::faces::{Face, Network, UNDECLARED, active};
use crate::event::tie::{Bond, NameKind, Tie, tie};

/// References to other items. This face reads all fields of an item, also those without a name.
const fn refers(by: &'static str, of: &'static str, at: &'static str) -> Tie {
    Tie {
        is_read: true,
        ..tie(by, of, at, Bond::Refers)
    }
}

/// What the actions of an audit record are about. Each also holds the digest of the whole action. The reason why one was
/// refused may name items.
const fn audited(of: &'static str) -> Tie {
    const ACTIONS: &str = "data.actions.target data.actions.other data.actions.source data.actions.end";
    tie("audit:", of, ACTIONS, Bond::Refers)
        .around()
        .clearing("data.reason")
}

/// The face.
pub(super) const FACE: Face = Face {
    name: "graph",
    prefixes: &["profile", "node", "gedge", "path", "plan", "event", "audit"],
    indexes: &[
        active("graph.nodes_by_kind", "node", &["data.kind"], "data.id"),
        active("graph.edges_by_source", "gedge", &["data.source"], "data.id"),
        active("graph.edges_by_target", "gedge", &["data.target"], "data.id"),
        active("graph.edges_by_kind", "gedge", &["data.kind"], "data.id"),
        // What is appended has no field that orders it, so it stays in the order in which it came.
        active("graph.appended", "event", &["data.log"], "data.order"),
        active("graph.appended_by_kind", "event", &["data.kind"], "data.order"),
        active("graph.audited", "audit", &["data.log"], "data.order"),
    ],
    network: Some(Network {
        name: "graph.edges",
        by_source: "graph.edges_by_source",
        by_target: "graph.edges_by_target",
        kind: "data.kind",
        ends: "graph.nodes_by_kind",
        prefix: "node:",
    }),
    ties: &[
        tie("gedge:", "node:", "data.source data.target", Bond::Belongs),
        refers("node:", "node:", "data.data.superseded_by"),
        tie(
            "event:",
            "node:",
            "data.data.nodes.id data.data.gone_nodes data.data.action.target data.data.edges.source \
             data.data.edges.target",
            Bond::Repeats,
        ),
        tie(
            "event:",
            "gedge:",
            "data.data.edges.id data.data.gone_edges data.data.action.target",
            Bond::Repeats,
        ),
        tie("event:", "profile:", "data.data.profiles.id", Bond::Repeats),
        tie(
            "event:",
            "path:",
            "data.data.paths.id data.data.action.target",
            Bond::Repeats,
        ),
        refers(
            "event:",
            "node:",
            "data.refs data.data.nodes.data.superseded_by data.data.action.payload.data.superseded_by \
             data.data.action.payload.by data.data.action.payload.source data.data.action.payload.target \
             data.data.action.payload.summary_id data.data.compaction.summary_id \
             data.data.paths.compaction.summary_id",
        ),
        refers("event:", "path:", "data.path_id")
            .only("kind", "path.abandoned")
            .clearing("data.data.reason"),
        refers(
            "event:",
            "path:",
            "data.refs data.path_id data.data.parent_id data.data.merged_into data.data.paths.parent_id \
             data.data.paths.merged_into",
        ),
        refers(
            "event:",
            "event:",
            "data.refs data.data.event_ids data.data.paths.event_ids",
        ),
        refers("event:", "gedge:", "data.refs"),
        refers("event:", "profile:", "data.refs"),
        refers("path:", "event:", "data.event_ids"),
        refers("path:", "path:", "data.parent_id data.merged_into"),
        refers("path:", "node:", "data.compaction.summary_id"),
        tie("plan:", "profile:", "data.profile_id", Bond::Belongs),
        refers("plan:", "node:", "data.node_ids"),
        audited("node:"),
        // Of an edge that never was there is no record that could be erased.
        Tie {
            naming: NameKind::Superseding("node:"),
            ..audited("")
        },
        audited("gedge:"),
        audited("path:"),
    ],
    ..UNDECLARED
};
