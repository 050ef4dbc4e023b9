//! Scores the candidates of a recall and keeps the best.

use std::cmp::Ordering;

use super::ask::{Ask, BlockView};
use super::columns::BlockColumns;
use chronomemory_state::state::Sight;

/// The centrality of a block with few links is raised while it is fresh.
const FLOOR_BELOW: f64 = 0.10;
const FRESH_ABOVE: f64 = 0.70;
const FLOOR_SHARE: f64 = 0.5;
/// Hours of wall-clock time that count as one active hour on a clock without sessions.
const WALL_HOURS_PER_ACTIVE: f64 = 10.0;
const MICROS_PER_HOUR: i64 = 3_600_000_000;
/// The strength of the prior of a block's confidence.
const PRIOR_STRENGTH: f64 = 2.0;

/// A candidate with its score.
#[derive(Clone, Copy, Debug)]
pub struct Rated {
    /// The block.
    pub row: u32,
    /// The weighted sum.
    pub score: f64,
    /// Similarity, confidence, recency, centrality, reinforcement.
    pub components: [f64; 5],
}

/// The parameters and maxima that all candidates of a recall share.
pub struct Measure<'a> {
    columns: &'a BlockColumns,
    sight: &'a Sight,
    /// The viewer's clock, and the hours on it.
    clock: Option<u32>,
    hours: f64,
    /// The time of the query in microseconds since 1970.
    now: i64,
    weights: [f64; 5],
    exploration: f64,
    /// The degree of each candidate, and the largest.
    degrees: Vec<f64>,
    largest_degree: f64,
    most_uses: f64,
}

impl<'a> Measure<'a> {
    /// Computes the maxima over the candidates.
    pub fn new(columns: &'a BlockColumns, view: &'a BlockView, ask: &Ask, candidates: &[u32]) -> Self {
        let sight = &view.sight;
        let largest = |values: &mut dyn Iterator<Item = f64>| values.fold(0.0, f64::max);
        let degrees: Vec<f64> = candidates.iter().map(|&row| degree(columns, sight, row)).collect();
        Self {
            columns,
            sight,
            clock: columns.clocks.find(&view.clock),
            hours: ask.hours,
            now: ask.now,
            weights: match ask.query {
                Some(_) => ask.weights,
                None => without_similarity(ask.weights),
            },
            exploration: ask.exploration,
            largest_degree: largest(&mut degrees.iter().copied()),
            most_uses: largest(&mut candidates.iter().map(|&row| columns.uses[row as usize])),
            degrees,
        }
    }

    /// The visible scopes.
    pub fn sight(&self) -> &'a Sight {
        self.sight
    }

    /// The freshness of a block, 1 if it was just used. On a clock that no session has advanced, its age in whole hours of
    /// wall-clock time counts.
    pub fn recency(&self, row: u32) -> f64 {
        let at = row as usize;
        let hours = self
            .columns
            .clocks
            .hours(self.columns.clock[at], self.clock, self.hours);
        let since = if hours > 0.0 {
            (hours - self.columns.last[at]).max(0.0)
        } else {
            let age = self
                .columns
                .circumstances
                .moment(row)
                .map_or(0, |moment| self.now.saturating_sub(moment));
            (age / MICROS_PER_HOUR).max(0) as f64 / WALL_HOURS_PER_ACTIVE
        };
        (-self.columns.lambda[at] * since).exp()
    }

    /// The score of the candidate at a place.
    pub fn rate(&self, place: usize, row: u32, similarity: f64) -> Rated {
        let at = row as usize;
        let recency = self.recency(row);
        let reinforcement = if self.most_uses > 0.0 {
            self.columns.uses[at] / self.most_uses
        } else {
            0.0
        };
        let components = [
            similarity,
            self.columns.confidence[at],
            recency,
            self.centrality(self.degrees[place], recency),
            reinforcement,
        ];
        let mut score = 0.0;
        for (weight, value) in self.weights.iter().zip(components) {
            score += weight * value;
        }
        if self.exploration != 0.0 {
            score += self.exploration * self.uncertainty(at);
        }
        Rated { row, score, components }
    }

    fn centrality(&self, degree: f64, recency: f64) -> f64 {
        let share = if self.largest_degree > 0.0 {
            degree / self.largest_degree
        } else {
            0.0
        };
        if share < FLOOR_BELOW && recency > FRESH_ABOVE {
            share.max(FLOOR_SHARE * recency)
        } else {
            share
        }
    }

    /// The standard deviation of the Beta distribution of a block's confidence.
    fn uncertainty(&self, at: usize) -> f64 {
        let strength = PRIOR_STRENGTH + self.columns.evidence[at];
        let confidence = self.columns.confidence[at];
        let (alpha, beta) = (confidence * strength, (1.0 - confidence) * strength);
        let total = alpha + beta;
        (alpha * beta / (total * total * (total + 1.0))).sqrt()
    }
}

/// The degree of a block: precomputed for a viewer who sees all scopes.
fn degree(columns: &BlockColumns, sight: &Sight, row: u32) -> f64 {
    if sight.is_all() {
        columns.degree[row as usize]
    } else {
        columns.degree_in(row, sight)
    }
}

fn without_similarity(weights: [f64; 5]) -> [f64; 5] {
    let rest: f64 = weights[1..].iter().sum();
    let share = |weight: f64| if rest > 0.0 { weight / rest } else { 0.0 };
    let [_, confidence, recency, centrality, reinforcement] = weights;
    [
        0.0,
        share(confidence),
        share(recency),
        share(centrality),
        share(reinforcement),
    ]
}

/// Orders by score, the greatest first; ties by id.
pub fn better_first(columns: &BlockColumns, one: &Rated, other: &Rated) -> Ordering {
    other
        .score
        .total_cmp(&one.score)
        .then_with(|| columns.by_id(one.row, other.row))
}

/// Keeps the best `number`, in no order.
pub fn keep_best(columns: &BlockColumns, rated: &mut Vec<Rated>, number: usize) {
    if (1..rated.len()).contains(&number) {
        rated.select_nth_unstable_by(number - 1, |one, other| better_first(columns, one, other));
    }
    rated.truncate(number);
}
