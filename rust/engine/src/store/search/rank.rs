//! Ranks the candidates of a search by one score, with its parts.
//!
//! Words, cosines and tokens each propose candidates, whose numbers are all known exactly. They become one score,
//! lifted by what surrounds a candidate, and the records that the state still holds are returned.

use std::collections::HashMap;
use std::sync::Arc;

use foldhash::fast::RandomState;

use super::select::{RecordFilter, StateLook};
use super::ties::{add_own, neighbours};
use crate::store::vectors::{Near, TokenSearch};
use chronolog::scope::Viewer;
use chronomemory_search::score::{
    GroupWords, Lift, POOL_RECORDS, SMALL_RECORDS, Scale, Shares, Ties, TokenScores, lifted,
};
use chronomemory_search::text::{FoundField, NamedDays, TextFilter, TextIndex, TextQuestion, asked, says_any};
use chronomemory_search::vector::TokenQuestion;
use chronomemory_state::condition::Condition;
use chronomemory_state::snapshot::Moments;
use chronomemory_state::state::{Row, Watermark, unspelled};

/// A search.
#[derive(Clone, Debug, Default)]
pub struct RecordSearch {
    /// The viewer.
    pub viewer: Arc<Viewer>,
    /// Words.
    pub text: Option<String>,
    /// A vector, to be compared with the embeddings of a space.
    pub vector: Option<Vec<f32>>,
    /// That space, or the one that is asked when none is named.
    pub space: Option<String>,
    /// A vector for each token of the question, to be compared with those of the records.
    pub tokens: Option<TokenQuestion>,
    /// The filter of the records.
    pub filter: TextFilter,
    /// A further condition.
    pub condition: Option<Condition>,
    /// The greatest number of hits.
    pub limit: usize,
    /// Whether the context of a hit raises its score.
    pub context: bool,
    /// When it is asked, in microseconds since 1970: a text may speak of yesterday.
    pub now: i64,
}

impl RecordSearch {
    /// How many things it asks for.
    pub(in crate::store) fn asked(&self) -> usize {
        usize::from(self.text.is_some()) + usize::from(self.vector.is_some()) + usize::from(self.tokens.is_some())
    }

    /// How many records words, vectors and tokens each put forward, where context may lift some of them or none.
    pub(in crate::store) fn pool(&self, has_context: bool) -> usize {
        if !has_context && self.asked() == 1 {
            self.limit
        } else {
            self.limit.max(POOL_RECORDS)
        }
    }
}

/// A record that was found, with the parts of its score.
#[derive(Clone, Debug)]
pub struct SearchHit {
    /// The canonical record.
    pub record: Vec<u8>,
    /// When it was made and changed last.
    pub moments: Moments,
    /// The score that orders the hits.
    pub score: f64,
    /// The score without context.
    pub alone: f64,
    /// Its text score, and what each word adds to it.
    pub text: f64,
    /// See `text`.
    pub words: Vec<(String, f64)>,
    /// Its cosine, if it has one.
    pub cosine: Option<f64>,
    /// How much of the tokens of the question it says, if it has codes.
    pub tokens: Option<f64>,
    /// The share of each in the best of the question, if several were asked.
    pub shares: Shares,
    /// The gain from its context.
    pub lift: Lift,
    /// The id of the linked record that lifts it.
    pub linked_by: Option<String>,
    /// The id of the record two steps away that lifts it.
    pub second_by: Option<String>,
    /// The id of the best other record of its group.
    pub grouped_by: Option<String>,
}

struct Candidates<'a> {
    index: &'a TextIndex,
    question: TextQuestion<'a>,
    near: Option<&'a Near>,
    tokens: Option<TokenScores<'a>>,
    has_text: bool,
    scale: Scale,
    /// The best by their words: the first of `docs`.
    by_text: &'a [(u32, f64)],
    docs: Vec<u32>,
    places: HashMap<u32, usize, RandomState>,
}

/// The scores of a candidate without context.
struct CandidateScores {
    text: f64,
    cosine: Option<f64>,
    tokens: Option<f64>,
    shares: Shares,
    alone: f64,
}

impl Candidates<'_> {
    fn add(&mut self, doc: u32) -> usize {
        *self.places.entry(doc).or_insert_with(|| {
            self.docs.push(doc);
            self.docs.len() - 1
        })
    }

    /// The words of the question that each candidate contains.
    fn words(&self) -> GroupWords {
        let had = self.docs.iter().map(|&doc| self.question.words_of(doc));
        GroupWords::of(self.question.weights(), had)
    }

    fn standing(&self, at: usize) -> CandidateScores {
        let (doc, scale) = (self.docs[at], &self.scale);
        let slot = self.index.slot_of(doc);
        let known = self.by_text.get(at).map(|known| known.1);
        let text = known.unwrap_or_else(|| self.question.score(doc));
        let cosine = self.near.and_then(|near| near.cosine(slot));
        let tokens = self.tokens.as_ref().and_then(|tokens| tokens.score(slot));
        let asked = (self.has_text, self.near.is_some(), self.tokens.is_some());
        let shares = scale.shares(
            asked.0.then_some(text),
            asked.1.then_some(cosine),
            asked.2.then_some(tokens),
        );
        // A single kind of score is not scaled.
        let (shares, alone) = match asked {
            (true, false, false) => (Shares::default(), text),
            (false, true, false) => (Shares::default(), cosine.unwrap_or(0.0)),
            (false, false, true) => (Shares::default(), tokens.unwrap_or(0.0)),
            _ => (shares, shares.fused()),
        };
        CandidateScores {
            text,
            cosine,
            tokens,
            shares,
            alone,
        }
    }
}

/// The state that a search ranks against.
pub(in crate::store) struct RankContext<'a> {
    pub ask: StateLook<'a>,
    /// The filter by condition and expiry, if there is one.
    pub record_filter: Option<&'a RecordFilter<'a>>,
    /// How far the index knows the state.
    pub known: Watermark,
    /// Whether a search begins anew if a record that it found was changed meanwhile. The last try evaluates the record as it is
    /// now instead.
    pub begins_anew: bool,
}

/// The best records for a search. `None` if the state was replaced meanwhile, an embedding turned out to be damaged, or
/// (see [`RankContext`]) a record is no longer what was found.
pub(in crate::store) fn rank(
    index: &TextIndex,
    search: &RecordSearch,
    filter: &TextFilter,
    near: Option<&Near>,
    sayings: Option<&TokenSearch>,
    RankContext {
        ask,
        record_filter,
        known,
        begins_anew,
    }: &RankContext<'_>,
) -> Option<Vec<SearchHit>> {
    let stems = search.text.as_deref().map(asked).unwrap_or_default();
    let mut question = index.question(&stems, filter);
    let allows = |slot: u32| record_filter.is_none_or(|record_filter| record_filter.passes(slot));
    if record_filter.is_some() {
        question = question.only(&allows);
    }
    let days = NamedDays::of(search.text.as_deref().unwrap_or_default(), search.now);
    // Without any context nothing is lifted. Tokens break ties by document, so their pool is kept.
    let may_lift = index.has_context() || !days.is_empty() || search.tokens.is_some();
    let has_context = search.context && may_lift;
    let most = search.pool(has_context);
    let by_text = question.best(most);
    let by_vector = nearest(index, &question, near);
    let tokens = sayings.map(|sayings| {
        // If only tokens are asked, all records are compared.
        let most = if search.asked() == 1 { usize::MAX } else { SMALL_RECORDS };
        let all = sayings.few(most).map(|slots| {
            let known = slots.into_iter().filter_map(|slot| index.doc_of(slot));
            known.filter(|doc| question.passes(*doc)).collect()
        });
        TokenScores::of(sayings, all, [&by_text, &by_vector], |doc| index.slot_of(doc))
    });
    let by_tokens = tokens.as_ref().map_or(&[][..], |tokens| &tokens.best);
    let scale = Scale::of(&by_text, &by_vector, by_tokens);
    let by_tokens: Vec<u32> = by_tokens.iter().take(most).map(|one| one.0).collect();
    let mut candidates = Candidates {
        index,
        question,
        near,
        tokens,
        has_text: search.text.is_some(),
        scale,
        by_text: &by_text,
        docs: Vec::new(),
        places: HashMap::default(),
    };
    for doc in by_text.iter().chain(&by_vector).map(|one| one.0).chain(by_tokens) {
        candidates.add(doc);
    }
    let mut ties = Ties::default();
    if has_context {
        let mut near = Vec::new();
        let Candidates { question, docs, .. } = &candidates;
        ask(&mut |view| near = neighbours(index, question, view.state, &filter.viewer, docs))?;
        for (at, doc) in near {
            if candidates.question.passes(doc) {
                ties.links.push((at, candidates.add(doc)));
            }
        }
        ask(&mut |view| add_own(&mut ties, index, view.state, &candidates.docs, &stems, &days))?;
        ties.words = candidates.tokens.as_ref().map(|_| candidates.words());
    }
    let standings = (0..candidates.docs.len()).map(|at| candidates.standing(at));
    let standings: Vec<CandidateScores> = standings.collect();
    let alone: Vec<f64> = standings.iter().map(|standing| standing.alone).collect();
    let lifts = lifted(&alone, &ties);
    let slots: Vec<u32> = candidates.docs.iter().map(|&doc| index.slot_of(doc)).collect();
    let scores: Vec<f64> = alone
        .iter()
        .zip(&lifts)
        .map(|(alone, lift)| alone + lift.sum())
        .collect();
    let mut order: Vec<usize> = (0..slots.len()).collect();
    order.sort_by(|&one, &other| {
        scores[other]
            .total_cmp(&scores[one])
            .then(slots[one].cmp(&slots[other]))
    });
    let (mut hits, mut is_sound) = (Vec::new(), true);
    ask(&mut |view| {
        let state = view.state;
        let changed = state.changes().since(known);
        let is_changed = |slot: &u32| changed.is_none_or(|changed| changed.contains(slot));
        let name = |at: Option<usize>| Some(unspelled(index.id_of(candidates.docs[at?])));
        for &at in &order {
            if hits.len() == search.limit {
                break;
            }
            let Some(row) = state.row(slots[at]) else {
                continue;
            };
            let (doc, standing) = (candidates.docs[at], &standings[at]);
            let is_by_words = standing.cosine.is_none() && standing.tokens.is_none();
            if is_changed(&slots[at]) {
                if !filter.accepts(&row) {
                    continue;
                }
                if *begins_anew {
                    is_sound = false;
                    break;
                }
                let is_allowed = record_filter.is_none_or(|record_filter| record_filter.holds_in(view, slots[at]));
                if !is_allowed || (is_by_words && !still_says(index, &row, &stems)) {
                    continue;
                }
            }
            let of_tokens = sayings.filter(|_| standing.tokens.is_some());
            let of_vector = near.filter(|_| standing.cosine.is_some());
            if of_vector.is_some_and(|near| !near.space.check_again(slots[at]))
                || of_tokens.is_some_and(|sayings| !sayings.space.check_again(slots[at]))
            {
                is_sound = false;
                break;
            }
            hits.push(SearchHit {
                record: row.record.into_owned(),
                moments: state.slots.moments(slots[at]),
                score: scores[at],
                alone: alone[at],
                text: standing.text,
                words: candidates
                    .question
                    .parts_of(doc)
                    .map(|(word, score)| (word.to_owned(), score))
                    .collect(),
                cosine: standing.cosine,
                tokens: standing.tokens,
                shares: standing.shares,
                lift: lifts[at],
                linked_by: name(lifts[at].by_link),
                second_by: name(lifts[at].by_second),
                grouped_by: name(lifts[at].by_group),
            });
        }
    })?;
    is_sound.then_some(hits)
}

/// Whether a record contains one of these words.
fn still_says(index: &TextIndex, row: &Row<'_>, stems: &[String]) -> bool {
    let mut says = false;
    index.fields().read(&row.record, &mut |found| {
        if let FoundField::Text(text, _) = found {
            says = says || says_any(text, stems);
        }
    });
    says
}

/// The documents of the highest cosines, best first; the index may have moved on since they were looked for.
fn nearest(index: &TextIndex, question: &TextQuestion<'_>, near: Option<&Near>) -> Vec<(u32, f64)> {
    let best = near.into_iter().flat_map(|near| &near.best);
    let known = best.filter_map(|&(slot, cosine)| Some((index.doc_of(slot)?, cosine)));
    known.filter(|(doc, _)| question.passes(*doc)).collect()
}
