//! Finds the documents that match a question best, and scores single documents.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

use super::columns::DocSet;
use super::context::{link_key, names_of};
use super::filter::{DocumentFilter, TextFilter};
use super::index::{NO_SPAN, OPEN, SEALED, TextIndex};
use super::lists::WordList;
use super::question::is_of_asking;
use super::sealed::NOWHERE;
use super::sections::{ListPiece, Sections};
use super::sweep::{Asked, LOOKUP_STEPS, Norm, sweep, weight_of};

/// A document with this number of rare words of a question covers it, however long the question is.
const ENOUGH_WORDS: f64 = 3.0;
/// In a small index rarity says little: coverage assumes this number of further documents without the words.
const PRIOR_DOCUMENTS: usize = 20;

/// A word of a question, with its weight in this index.
pub struct Word<'a> {
    pub stem: String,
    pub weight: f64,
    rarity: f64,
    pub(super) lists: [WordList<'a>; 2],
    /// The visible pieces of each list.
    pieces: [Vec<ListPiece<'a>>; 2],
}

/// A question prepared for an index.
pub struct TextQuestion<'a> {
    pub(super) index: &'a TextIndex,
    /// Its words that occur in the index, the rarest first.
    pub words: Vec<Word<'a>>,
    /// The weight that a document must have to cover the question: that of all its words, but at most [`ENOUGH_WORDS`] rare ones.
    /// A word without occurrence counts as one with a single one.
    enough_weight: f64,
    pub(super) norm: Norm,
    pub(super) filters: [DocumentFilter<'a>; 2],
}

impl TextIndex {
    /// Prepares a question: the weights of its words, and the filters. Only documents that the viewer sees count, as if the index
    /// held no others.
    pub fn question(&self, stems: &[String], filter: &TextFilter) -> TextQuestion<'_> {
        let sections =
            [SEALED, OPEN].map(|part| Sections::seen(&self.holdings[part], &filter.viewer, self.usual[part]));
        let usual = sections[SEALED].usual.and(sections[OPEN].usual);
        let halves = self.parts();
        let mut words: Vec<Word<'_>> = Vec::new();
        let rarity = |living: usize| weight_of(living, usual.worded + PRIOR_DOCUMENTS);
        let is_about_asking = stems.iter().all(|stem| is_of_asking(stem));
        let counts = |stem: &str| is_about_asking || !is_of_asking(stem);
        for stem in stems {
            let lists =
                [self.sealed.list(stem.as_bytes()), self.open.list(stem.as_bytes())].map(Option::unwrap_or_default);
            let pieces = [SEALED, OPEN].map(|part| sections[part].pieces(lists[part], &halves[part].columns.lengths));
            let living_in = |part: usize| -> usize {
                let each = pieces[part]
                    .iter()
                    .map(|piece| living_in(piece.list(), halves[part].dead));
                each.sum()
            };
            let living = living_in(SEALED) + living_in(OPEN);
            if living > 0 {
                words.push(Word {
                    stem: stem.clone(),
                    weight: weight_of(living, usual.worded),
                    rarity: if counts(stem) { rarity(living) } else { 0.0 },
                    lists,
                    pieces,
                });
            }
        }
        let missing = stems.iter().filter(|stem| counts(stem)).count() as f64;
        let missing = (missing - words.iter().filter(|word| counts(&word.stem)).count() as f64) * rarity(1);
        let all = missing + words.iter().map(|word| word.rarity).sum::<f64>();
        // The order depends on living documents only, so that sums are equal in all processes.
        words.sort_by(|one, other| {
            other
                .weight
                .total_cmp(&one.weight)
                .then_with(|| one.stem.cmp(&other.stem))
        });
        let [in_sealed, in_open] = sections;
        let [sealed, open] = halves;
        TextQuestion {
            index: self,
            words,
            enough_weight: all.min(ENOUGH_WORDS * rarity(1)),
            norm: Norm::of(usual.words as f64 / usual.worded.max(1) as f64),
            filters: [
                DocumentFilter::new(filter, sealed.columns, sealed.dead, in_sealed, |key| {
                    self.sealed.list(key)
                }),
                DocumentFilter::new(filter, open.columns, open.dead, in_open, |key| self.open.list(key)),
            ],
        }
    }
}

/// The number of documents of a list that are not dead.
fn living_in(list: WordList<'_>, dead: &DocSet) -> usize {
    if dead.is_empty() {
        return list.len();
    }
    let buried = if dead.len() * LOOKUP_STEPS < list.len() {
        dead.iter().filter(|&doc| list.count_in(doc) > 0).count()
    } else {
        list.docs().filter(|&doc| dead.contains(doc)).count()
    };
    list.len() - buried
}

/// A document and its score; the worse one is the greater.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Ranked {
    score: f64,
    slot: u32,
    doc: u32,
}

impl Eq for Ranked {}

impl Ord for Ranked {
    fn cmp(&self, other: &Self) -> Ordering {
        // The heap pops its greatest element, which must be the worst document.
        other.score.total_cmp(&self.score).then(self.slot.cmp(&other.slot))
    }
}

impl PartialOrd for Ranked {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl TextQuestion<'_> {
    /// Whether a document may be found.
    pub fn passes(&self, doc: u32) -> bool {
        let (_, own) = self.index.part_of(doc);
        self.filters[usize::from(doc >= self.index.sealed.len() as u32)].passes(own)
    }

    /// The lists to sweep in one part, piece by piece.
    pub(super) fn asked_of(&self, part: usize) -> impl Iterator<Item = Vec<Asked<'_>>> {
        (0..self.filters[part].sections.piece_count()).map(move |piece| {
            let asked = self.words.iter().map(|word| Asked {
                weight: word.weight,
                list: word.pieces[part][piece].list(),
            });
            asked.collect()
        })
    }

    /// The visible living documents with a link to this one, by its id or (true) by its short name.
    pub fn naming(&self, doc: u32) -> Vec<(u32, bool)> {
        let (own, doc) = self.index.part_of(doc);
        let (sealed, open) = (&self.index.sealed, &self.index.open);
        let keys = own.columns.context.rows.get(doc as usize).named;
        let needs_names = own.sealed.is_none() || open.has_links();
        let names = match needs_names {
            true => names_of(own.columns.ids.get(doc as usize)).map(|name| name.map(|name| link_key(&name))),
            false => [None, None],
        };
        let mut docs = Vec::new();
        for (at, (key, name)) in keys.into_iter().zip(names).enumerate() {
            let in_sealed = match own.sealed {
                Some(_) => (key != NOWHERE).then(|| sealed.list_at(key as usize)),
                None => name.as_ref().and_then(|name| sealed.list(name)),
            };
            let in_open = name.as_ref().and_then(|name| open.list(name));
            let parts = self.filters.iter().zip(self.index.parts());
            for ((filter, part), list) in parts.zip([in_sealed, in_open]) {
                let Some(list) = list else { continue };
                for piece in filter.sections.pieces(list, &part.columns.lengths) {
                    let living = piece.list().docs().filter(|&doc| !part.dead.contains(doc));
                    docs.extend(living.map(|doc| (doc + part.first, at == 1)));
                }
            }
        }
        docs
    }

    /// The best documents and their scores, best first; ties by age of the record.
    pub fn best(&self, limit: usize) -> Vec<(u32, f64)> {
        if limit == 0 {
            return Vec::new();
        }
        let mut best: BinaryHeap<Ranked> = BinaryHeap::new();
        let parts = self.index.parts();
        let pieces = parts.iter().enumerate();
        for (at, part, asked) in pieces.flat_map(|(at, part)| self.asked_of(at).map(move |asked| (at, part, asked))) {
            let reached = |best: &BinaryHeap<Ranked>| match best.peek() {
                Some(worst) if best.len() == limit => worst.score,
                _ => 0.0,
            };
            let (start, mut span) = (reached(&best), NO_SPAN);
            sweep(&asked, &part.columns.lengths, self.norm, start, |doc, score| {
                let own = Ranked {
                    score,
                    slot: part.slot_near(doc, &mut span),
                    doc: doc + part.first,
                };
                let is_full = best.len() == limit;
                let is_better = !is_full || best.peek().is_some_and(|worst| own < *worst);
                if is_better && self.filters[at].passes(doc) {
                    match is_full {
                        true => best.peek_mut().into_iter().for_each(|mut worst| *worst = own),
                        false => best.push(own),
                    }
                }
                reached(&best)
            });
        }
        let found = best.into_sorted_vec().into_iter();
        found.map(|own| (own.doc, own.score)).collect()
    }

    /// The score of a document.
    pub fn score(&self, doc: u32) -> f64 {
        // `sum()` of an empty iterator would be -0.0.
        self.parts_of(doc).fold(0.0, |sum, (_, score)| sum + score)
    }

    /// The part of each word in the score.
    pub fn parts_of(&self, doc: u32) -> impl Iterator<Item = (&str, f64)> {
        let (part, own) = self.index.part_of(doc);
        let at = usize::from(doc >= self.index.sealed.len() as u32);
        let length = part.columns.lengths.get(own as usize);
        self.words.iter().filter_map(move |word| {
            let count = word.lists[at].count_in(own);
            (count > 0).then(|| {
                (
                    word.stem.as_str(),
                    self.norm.score(word.weight, u32::from(count), length),
                )
            })
        })
    }

    /// The weights of its words, in their order.
    pub fn weights(&self) -> Vec<f64> {
        self.words.iter().map(|word| word.weight).collect()
    }

    /// The share of the question's words that a document has, each by its weight, 0 to 1.
    pub fn coverage(&self, doc: u32) -> f64 {
        let had: f64 = self.words_in_doc(doc).map(|(_, word)| word.rarity).sum();
        if self.enough_weight > 0.0 {
            (had / self.enough_weight).min(1.0)
        } else {
            0.0
        }
    }

    /// The places of those words that a document has.
    pub fn words_of(&self, doc: u32) -> Vec<usize> {
        self.words_in_doc(doc).map(|(place, _)| place).collect()
    }

    fn words_in_doc(&self, doc: u32) -> impl Iterator<Item = (usize, &Word<'_>)> {
        let (_, own) = self.index.part_of(doc);
        let at = usize::from(doc >= self.index.sealed.len() as u32);
        let words = self.words.iter().enumerate();
        words.filter(move |(_, word)| word.lists[at].count_in(own) > 0)
    }
}
