//! The question that a recall puts to the blocks, and the answer to it.

use std::sync::Arc;

use roaring::RoaringBitmap;

use crate::vector::TokenQuestion;
use chronolog::scope::Viewer;
use chronomemory_state::condition::Condition;
use chronomemory_state::snapshot::Moments;
use chronomemory_state::state::{Sight, State};

/// What an asker sees, as of a state, and the clock that counts for it.
pub struct Outlook {
    /// The scopes.
    pub sight: Sight,
    /// The digits of the clock.
    pub clock: String,
}

impl Outlook {
    /// What a viewer sees in a state.
    pub fn of(state: &State, viewer: &Viewer) -> Self {
        let clock = match viewer.who() {
            Viewer::Named { scope, .. } => scope.of_clock().digits(),
            _ => String::new(),
        };
        Self {
            sight: state.sight(viewer),
            clock,
        }
    }
}

/// What is asked.
#[derive(Clone, Debug, Default)]
pub struct Ask {
    /// Who asks.
    pub viewer: Arc<Viewer>,
    /// How many active hours it is on the clock of whoever asks.
    pub hours: f64,
    /// How many results are wanted.
    pub k: usize,
    /// Whether the newest value of a subject comes before older ones.
    pub prefer_newest: bool,
    /// What the components count: similarity, confidence, recency, centrality, reinforcement.
    pub weights: [f64; 5],
    /// Only blocks with a tag like one of these; any if there is none.
    pub tag_patterns: Vec<String>,
    /// Only blocks with one of these very tags; any if there is none.
    pub tags: Vec<String>,
    /// Only blocks of these categories; any if there is none.
    pub categories: Vec<String>,
    /// Only blocks that were used within so many hours.
    pub window: Option<f64>,
    /// Only blocks that are at least this relevant to the query, or adjacent to one that is; see [`FoundBlock::relevance`].
    pub min_similarity: f64,
    /// Only blocks that are believed at least so much.
    pub min_confidence: f64,
    /// Only blocks for which this holds.
    pub condition: Option<Condition>,
    /// Only blocks that the state keeps in these slots: those for which the condition holds.
    pub slots: Option<RoaringBitmap>,
    /// Blocks with a tag like one of these are candidates in any case, and in a frame always shown.
    pub guarantees: Vec<String>,
    /// The space of the embeddings that count.
    pub space: String,
    /// What the query means; without a query all blocks that pass are candidates.
    pub query: Option<Vec<f32>>,
    /// A vector for each token of the query; they count beside what it means.
    pub tokens: Option<TokenQuestion>,
    /// The query in words; they count beside what it means, not instead.
    pub text: Option<String>,
    /// Where words are found they count alone: the vectors are made of nothing else.
    pub by_words: bool,
    /// When it is asked, in microseconds since 1970: a text may speak of yesterday.
    pub now: i64,
    /// How many blocks may come in by a link.
    pub expansion: usize,
    /// Whether results should be unlike each other.
    pub diversify: bool,
    /// How much being unknown counts.
    pub exploration: f64,
    /// Whether this is a frame: with guarantees and without contradictions.
    pub frame: bool,
}

/// How many of those behind the results are looked at: a newer value of what a result states may be among them.
const FURTHER: usize = 10;

impl Ask {
    /// The query that values are compared for, if the newest comes first.
    pub(super) fn newest_for(&self) -> Option<&str> {
        self.text
            .as_deref()
            .filter(|text| self.prefer_newest && !text.is_empty())
    }

    /// How many of those behind the results are looked at.
    pub(super) fn further(&self) -> usize {
        self.newest_for().map_or(0, |_| FURTHER)
    }

    /// Whether likeness to the query counts more than anything else does. Being used, linked or believed then says in which order
    /// the most alike come, but brings nothing in that is less about the query, and being shown does not lead to being shown.
    pub(super) fn likeness_decides(&self) -> bool {
        let [similarity, others @ ..] = self.weights;
        self.query.is_some() && others.iter().all(|other| similarity > *other)
    }
}

/// A block that was found.
#[derive(Clone, Debug)]
pub struct FoundBlock {
    /// Its id.
    pub id: String,
    /// The weighted sum.
    pub score: f64,
    /// Similarity, confidence, recency, centrality, reinforcement.
    pub components: [f64; 5],
    /// Its cosine to the query or the share of the query's words that it has, whichever is greater; 1 without a query.
    pub relevance: f64,
    /// It came in by a link.
    pub expanded: bool,
    /// It is always there.
    pub guaranteed: bool,
    /// The first result behind it whose value it replaces.
    pub newer_than: Option<String>,
    /// Its canonical record and when it was made, once they are looked up.
    pub record: Option<(Vec<u8>, Moments)>,
    /// The number of its scope, if whoever asks may change it: two that carry the same scope have the same one.
    pub own_scope: Option<u32>,
}

/// What was found.
#[derive(Clone, Debug, Default)]
pub struct BlockAnswer {
    /// The results, in order.
    pub results: Vec<FoundBlock>,
    /// The next ones, in order, until the records are looked up.
    pub(super) further: Vec<FoundBlock>,
    /// Blocks that are left out because a result contradicts them.
    pub suppressed: Vec<String>,
    /// Guaranteed blocks that contradict each other, sorted.
    pub clashes: Vec<(String, String)>,
    /// How many blocks were scored.
    pub candidates: usize,
}
