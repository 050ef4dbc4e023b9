//! Filters the documents that may be found.

use std::sync::Arc;

use super::columns::{DocSet, TextColumns};
use super::context::tag_key;
use super::lists::WordList;
use super::sections::Sections;
use chronolog::scope::{Carried, Viewer};
use chronomemory_state::state::{Class, Row, spelled};

/// The filter of a search.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TextFilter {
    /// The viewer.
    pub viewer: Arc<Viewer>,
    /// Only these kinds; any if empty.
    pub kinds: Vec<String>,
    /// Not these kinds, unless they are named above.
    pub without_kinds: Vec<String>,
    /// Only this status.
    pub status: Option<String>,
    /// At least this confidence.
    pub min_confidence: f64,
    /// All of these tags.
    pub tags: Vec<String>,
}

impl TextFilter {
    /// Whether a current record passes, its tags aside.
    pub fn accepts(&self, row: &Row<'_>) -> bool {
        let names = |names: &[String]| names.iter().any(|name| *spelled(name) == *row.class.kind);
        let kind = if self.kinds.is_empty() {
            !names(&self.without_kinds)
        } else {
            names(&self.kinds)
        };
        let status = self
            .status
            .as_deref()
            .is_none_or(|status| *spelled(status) == *row.class.status);
        let is_seen = || self.viewer.sees(&Carried::of(&row.record)).is_some();
        kind && status && row.confidence >= self.min_confidence && is_seen()
    }
}

/// A filter prepared for the documents of one part.
pub struct DocumentFilter<'a> {
    columns: &'a TextColumns,
    dead: &'a DocSet,
    pub(super) sections: Sections,
    /// Which classes fit; `None` if all do.
    classes: Option<Vec<bool>>,
    min_confidence: f64,
    tags: Vec<DocSet>,
    /// A further filter by slot.
    pub(super) allows: Option<&'a dyn Fn(u32) -> bool>,
}

impl<'a> DocumentFilter<'a> {
    /// Prepares a filter.
    pub fn new(
        filter: &TextFilter,
        columns: &'a TextColumns,
        dead: &'a DocSet,
        sections: Sections,
        list: impl Fn(&[u8]) -> Option<WordList<'a>>,
    ) -> Self {
        let spell = |names: &[String]| names.iter().map(|name| spelled(name)).collect::<Vec<_>>();
        let (kinds, without) = (spell(&filter.kinds), spell(&filter.without_kinds));
        let status = filter.status.as_deref().map(spelled);
        let has = |names: &[Vec<u8>], class: &Class| names.iter().any(|name| **name == *class.kind);
        let fits = |class: &Class| {
            let kind = if kinds.is_empty() {
                !has(&without, class)
            } else {
                has(&kinds, class)
            };
            kind && status.as_ref().is_none_or(|status| **status == *class.status)
        };
        let tagged = |tag: &String| {
            let mut docs = DocSet::default();
            for piece in sections.pieces(list(&tag_key(tag)).unwrap_or_default(), &columns.lengths) {
                piece.list().docs().for_each(|doc| docs.insert(doc));
            }
            docs
        };
        let classes: Vec<bool> = columns.kinds.values.iter().map(fits).collect();
        Self {
            columns,
            dead,
            classes: classes.contains(&false).then_some(classes),
            min_confidence: filter.min_confidence,
            tags: filter.tags.iter().map(tagged).collect(),
            sections,
            allows: None,
        }
    }

    /// Whether a document passes.
    pub fn passes(&self, doc: u32) -> bool {
        let at = doc as usize;
        self.sections.contains(doc)
            && !self.dead.contains(doc)
            && self.classes.as_ref().is_none_or(|fit| {
                let fits = fit.get(self.columns.classes.get(at) as usize);
                fits.copied().unwrap_or_default()
            })
            && self.columns.confidences.get(at) >= self.min_confidence
            && self.tags.iter().all(|tagged| tagged.contains(doc))
            && self.allows.is_none_or(|allows| allows(self.columns.slots.get(at)))
    }
}
