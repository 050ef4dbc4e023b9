//! The declaration of the pages face, with its entries.

use crate::event::faces::{Face, FaceIndex, UNDECLARED, active};
use crate::event::tie::{Bond, tie};

/// The folder that pages and entries belong to: what is called the same in two folders is never mixed up.
const FOLDER: &[&str] = &["data", "folder"];
const PAGE: &[&[&str]] = &[&["data", "page"]];
const RENAMED_TO: &[&[&str]] = &[&["data", "renamed_to"]];
const OPERATIONS: &[&[&str]] = &[&["data", "operations"]];
/// What orders entries: their place on the page, or their moment.
const ORDER: &[&str] = &["data", "order"];
const AT: &[&str] = &["data", "at"];
const NAME: &[&str] = &["data", "name"];

/// The face.
pub(super) const FACE: Face = Face {
    name: "pages",
    prefixes: &["page", "entry"],
    indexes: &[
        active("pages.entries", "entry", &[&["data", "page"]], ORDER),
        FaceIndex {
            status: "superseded",
            ..active("pages.struck", "entry", &[&["data", "page"]], ORDER)
        },
        active("pages.recent", "entry", &[FOLDER, &["data", "prefix"]], AT),
        active("pages.by_tag", "entry", &[FOLDER, &["data", "tags"]], AT),
        active("pages.mentioned", "entry", &[FOLDER, &["data", "mentions"]], AT),
        active("pages.by_name", "page", &[FOLDER], NAME),
        active("pages.by_call", "page", &[FOLDER, &["data", "calls"]], NAME),
        active(
            "pages.by_state",
            "page",
            &[FOLDER, &["data", "state"]],
            &["data", "written"],
        ),
        active("pages.flagged", "page", &[FOLDER, &["data", "needs_compact"]], NAME),
        active("pages.mentioned_above", "page", &[FOLDER, &["data", "mentions"]], NAME),
    ],
    ties: &[
        tie("entry:", "", PAGE, Bond::Belongs),
        // A renamed page is a new page; the old one and its entries refer to the new ones, and have the same texts.
        tie("page:", "", RENAMED_TO, Bond::Belongs).mutual(),
        tie("entry:", "", RENAMED_TO, Bond::Belongs).mutual(),
        // A page that was there without a file when a new one like it was found.
        tie("page:", "", &[&["data", "alike"]], Bond::Refers),
        // The compaction of a page quotes superseded entries in their successors.
        tie("entry:", "", &[&["data", "content"], &["label"]], Bond::Refers)
            .in_notes("Earlier: ")
            .clearing(&[&["data", "raw"], &["data", "mentions"]]),
        tie("entry:", "", &[&["data", "superseded_by"]], Bond::Refers)
            .beside()
            .clearing(&[&["data", "raw"]]),
        // Digests of the whole text of a page, and of the note that it was imported from.
        tie("entry:", "", PAGE, Bond::PartOf).clearing(&[
            &["data", "digest"],
            &["data", "earlier"],
            &["data", "source"],
        ]),
        // The record of a page repeats the text above its entries, which has a record without an id of its own.
        tie("entry:", "", PAGE, Bond::PartOf)
            .only("id", "")
            .clearing(&[&["data", "mentions"]])
            .heading(&["data", "head"]),
        // The record of a folder keeps the results of MCP calls, which hold text of pages.
        tie("entry:", "page:", &[FOLDER], Bond::PartOf).clearing(OPERATIONS),
        tie("page:", "page:", &[FOLDER], Bond::PartOf).clearing(OPERATIONS),
    ],
    ..UNDECLARED
};
