//! The parameters of a recall, and its results.

use std::sync::Arc;

use roaring::RoaringBitmap;

use crate::vector::TokenQuestion;
use chronolog::scope::Viewer;
use chronomemory_state::condition::Condition;
use chronomemory_state::snapshot::Moments;
use chronomemory_state::state::{Sight, State};

/// The scopes that a viewer sees in a state, and the viewer's clock.
pub struct BlockView {
    /// The visible scopes.
    pub sight: Sight,
    /// The digest of the scope whose clock counts; empty for the shared clock.
    pub clock: String,
}

impl BlockView {
    /// The view of a viewer.
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

/// The parameters of a recall.
#[derive(Clone, Debug, Default)]
pub struct Ask {
    /// The viewer, whose scopes are visible.
    pub viewer: Arc<Viewer>,
    /// The active hours on the viewer's clock.
    pub hours: f64,
    /// The greatest number of results.
    pub k: usize,
    /// Whether the newest value of a subject comes before older ones.
    pub prefer_newest: bool,
    /// The weights of similarity, confidence, recency, centrality and reinforcement.
    pub weights: [f64; 5],
    /// Only blocks with a tag that matches one of these patterns; all if empty.
    pub tag_patterns: Vec<String>,
    /// Only blocks with one of these tags; all if empty.
    pub tags: Vec<String>,
    /// Only blocks of these categories; all if empty.
    pub categories: Vec<String>,
    /// Only blocks that were used within this number of active hours.
    pub window: Option<f64>,
    /// Only blocks with at least this [`FoundBlock::relevance`], or adjacent to one that has it.
    pub min_similarity: f64,
    /// Only blocks with at least this confidence.
    pub min_confidence: f64,
    /// Only blocks for which this condition holds.
    pub condition: Option<Condition>,
    /// Only blocks in these slots: those for which the condition holds.
    pub slots: Option<RoaringBitmap>,
    /// Blocks with a tag that matches one of these patterns are always candidates, and always shown in a frame.
    pub guarantees: Vec<String>,
    /// The space of the embeddings.
    pub space: String,
    /// The embedding of the query; without one all blocks that pass the filters are candidates.
    pub query: Option<Vec<f32>>,
    /// A vector for each token of the query.
    pub tokens: Option<TokenQuestion>,
    /// The text of the query.
    pub text: Option<String>,
    /// Whether the vectors are made of words only; cosines then do not count where words are found.
    pub by_words: bool,
    /// The time of the query in microseconds since 1970, for words such as "yesterday".
    pub now: i64,
    /// The greatest number of candidates that are added by their links.
    pub expansion: usize,
    /// Whether results should be unlike each other.
    pub diversify: bool,
    /// The weight of uncertainty.
    pub exploration: f64,
    /// Whether this is a frame: with guaranteed blocks and without contradictions.
    pub frame: bool,
}

/// How many candidates after the results are examined for a newer value of what a result states.
const FURTHER: usize = 10;

impl Ask {
    /// The text of the query, if the newest value of a subject comes first.
    pub(super) fn newest_for(&self) -> Option<&str> {
        self.text
            .as_deref()
            .filter(|text| self.prefer_newest && !text.is_empty())
    }

    /// How many candidates after the results are examined.
    pub(super) fn further(&self) -> usize {
        self.newest_for().map_or(0, |_| FURTHER)
    }

    /// Whether similarity has the greatest weight. The other components then order the most similar blocks, but add no block that
    /// is less similar, so that being shown does not lead to being shown again.
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
    /// The slot of its record when it was found.
    pub(super) slot: Option<u32>,
    /// The weighted sum.
    pub score: f64,
    /// Similarity, confidence, recency, centrality, reinforcement.
    pub components: [f64; 5],
    /// The greater of its cosine and the share of the query's words that it contains; 1 without a query.
    pub relevance: f64,
    /// Whether it was added by a link.
    pub expanded: bool,
    /// Whether it is guaranteed.
    pub guaranteed: bool,
    /// The first later result whose value it replaces.
    pub newer_than: Option<String>,
    /// Its canonical record and times, set by [`BlockAnswer::look_up`].
    pub record: Option<(Vec<u8>, Moments)>,
    /// The number of its scope, if the viewer may change the block.
    pub own_scope: Option<u32>,
}

/// The results of a recall.
#[derive(Clone, Debug, Default)]
pub struct BlockAnswer {
    /// The results, in order.
    pub results: Vec<FoundBlock>,
    /// The candidates after the results, in order; emptied by [`Self::look_up`].
    pub(super) further: Vec<FoundBlock>,
    /// Blocks that were left out because a result contradicts them.
    pub suppressed: Vec<String>,
    /// Guaranteed blocks that contradict each other, sorted.
    pub clashes: Vec<(String, String)>,
    /// The number of blocks that were scored.
    pub candidates: usize,
}
