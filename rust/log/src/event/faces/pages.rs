//! The declaration of the pages face, with its entries.

use crate::event::faces::{Face, FaceIndex, UNDECLARED, active};
use crate::event::tie::{Bond, NameKind, Tie, tie};

/// The folder that pages and entries belong to: what is called the same in two folders is never mixed up.
const FOLDER: &str = "data.folder";

/// The face. Entries are ordered by their place on the page, or by their moment.
pub(super) const FACE: Face = Face {
    name: "pages",
    prefixes: &["page", "entry"],
    indexes: &[
        active("pages.entries", "entry", &["data.page"], "data.order"),
        FaceIndex {
            status: "superseded",
            ..active("pages.struck", "entry", &["data.page"], "data.order")
        },
        active("pages.recent", "entry", &[FOLDER, "data.prefix"], "data.at"),
        active("pages.by_tag", "entry", &[FOLDER, "data.tags"], "data.at"),
        active("pages.mentioned", "entry", &[FOLDER, "data.mentions"], "data.at"),
        active("pages.by_name", "page", &[FOLDER], "data.name"),
        active("pages.by_call", "page", &[FOLDER, "data.calls"], "data.name"),
        active("pages.by_state", "page", &[FOLDER, "data.state"], "data.written"),
        active("pages.flagged", "page", &[FOLDER, "data.needs_compact"], "data.name"),
        active("pages.mentioned_above", "page", &[FOLDER, "data.mentions"], "data.name"),
    ],
    ties: &[
        tie("entry:", "", "data.page", Bond::Belongs),
        // A renamed page is a new page; the old one and its entries refer to the new ones, and have the same texts.
        tie("page:", "", "data.renamed_to", Bond::Belongs).mutual(),
        tie("entry:", "", "data.renamed_to", Bond::Belongs).mutual(),
        // A page that was there without a file when a new one like it was found.
        tie("page:", "", "data.alike", Bond::Refers),
        // The compaction of a page quotes superseded entries in their successors.
        Tie {
            naming: NameKind::Note("Earlier: "),
            ..tie("entry:", "", "data.content label", Bond::Refers).clearing("data.raw data.mentions")
        },
        Tie {
            naming: NameKind::Sibling,
            ..tie("entry:", "", "data.superseded_by", Bond::Refers).clearing("data.raw")
        },
        // Digests of the whole text of a page, and of the note that it was imported from.
        tie("entry:", "", "data.page", Bond::PartOf).clearing("data.digest data.earlier data.source"),
        // The record of a page repeats the text above its entries, which has a record without an id of its own.
        Tie {
            head: "data.head",
            ..tie("entry:", "", "data.page", Bond::PartOf)
                .only("id", "")
                .clearing("data.mentions")
        },
        // The record of a folder keeps the results of MCP calls, which hold text of pages.
        tie("entry:", "page:", FOLDER, Bond::PartOf).clearing("data.operations"),
        tie("page:", "page:", FOLDER, Bond::PartOf).clearing("data.operations"),
    ],
    ..UNDECLARED
};
