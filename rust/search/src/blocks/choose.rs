//! Chooses the results from the best candidates: without near copies and without contradictions.

use super::columns::BlockColumns;
use super::rate::{Measure, Rated, better_first};
use super::vectors::{BlockVectors, Comparison};

/// Weights of the score of a candidate and of its similarity to results already chosen.
const SCORE_SHARE: f64 = 0.7;
const LIKENESS_SHARE: f64 = 0.3;
/// Two blocks with at least this cosine are near copies; a smaller one does not lower a score.
const NEAR_COPY: f64 = 0.8;
/// Where likeness decides: one spare candidate per this number of results. It can replace a near copy.
const RESULTS_PER_SPARE: usize = 10;
/// Candidates kept for each result, to replace those that are removed.
const AT_HAND_PER_RESULT: usize = 2;

/// The candidates that results are taken from.
pub struct Pool {
    /// Candidates for the places, by score.
    first: Vec<Rated>,
    /// Candidates that can replace near copies.
    spare: Vec<Rated>,
    /// Candidates that replace those removed.
    rest: Vec<Rated>,
}

impl Pool {
    /// A pool ordered by score.
    pub fn best(rated: Vec<Rated>) -> Self {
        Self {
            first: rated,
            spare: Vec::new(),
            rest: Vec::new(),
        }
    }

    /// A pool whose first `places` candidates are the most similar ones. `rated` is ordered by score, which decides ties.
    pub fn most_alike(columns: &BlockColumns, mut rated: Vec<Rated>, places: usize, further: usize) -> Self {
        rated.sort_by(|one, other| other.components[0].total_cmp(&one.components[0]));
        let spares = places.div_ceil(RESULTS_PER_SPARE);
        rated.truncate((AT_HAND_PER_RESULT * places).max(places + further));
        let mut spare = rated.split_off(places.min(rated.len()));
        let rest = spare.split_off(spares.min(spare.len()));
        rated.sort_unstable_by(|one, other| better_first(columns, one, other));
        Self {
            first: rated,
            spare,
            rest,
        }
    }

    /// The candidates for the places by score, then the others by similarity.
    pub fn by_score(self) -> Vec<Rated> {
        let Self { mut first, spare, rest } = self;
        first.extend(spare.into_iter().chain(rest));
        first
    }

    /// Candidates by score, lowered for near copies of earlier ones. Where likeness decides, near copies come last and compete
    /// with the spare candidates.
    pub fn unlike(self, columns: &BlockColumns, vectors: Option<&dyn BlockVectors>, chosen: &[Rated]) -> Vec<Rated> {
        let placed = ShownRows::new(columns, vectors, chosen).in_turn(self.first);
        if self.spare.is_empty() {
            return placed.into_iter().map(|one| one.0).collect();
        }
        let (copies, others): (Vec<_>, Vec<_>) = placed.into_iter().partition(|one| one.1);
        let mut order: Vec<Rated> = others.into_iter().map(|one| one.0).collect();
        let mut seen = ShownRows::new(columns, vectors, &[chosen, &order].concat());
        let contested = copies.into_iter().map(|one| one.0).chain(self.spare).collect();
        for part in [contested, self.rest] {
            order.extend(seen.in_turn(part).into_iter().map(|one| one.0));
        }
        order
    }
}

/// The rows chosen so far.
struct ShownRows<'a> {
    columns: &'a BlockColumns,
    vectors: Option<&'a dyn BlockVectors>,
    rows: Vec<u32>,
}

impl<'a> ShownRows<'a> {
    fn new(columns: &'a BlockColumns, vectors: Option<&'a dyn BlockVectors>, chosen: &[Rated]) -> Self {
        let rows = chosen.iter().map(|rated| rated.row).collect();
        Self { columns, vectors, rows }
    }

    /// Adds all candidates, the best remaining one first. The flag marks near copies of earlier rows.
    fn in_turn(&mut self, pool: Vec<Rated>) -> Vec<(Rated, bool)> {
        let rows: Vec<u32> = pool.iter().map(|rated| rated.row).collect();
        let mut likeness = vec![f64::NEG_INFINITY; pool.len()];
        let mut left: Vec<usize> = (0..pool.len()).collect();
        // Updates the greatest similarity of the remaining candidates to the chosen rows.
        let take_note = |row: u32, left: &[usize], likeness: &mut [f64]| {
            let comparison = self
                .vectors
                .and_then(|vectors| Comparison::with_row(self.columns, vectors, row));
            for &at in left {
                let cosine = comparison.as_ref().and_then(|comparison| comparison.cosine(rows[at]));
                likeness[at] = likeness[at].max(cosine.unwrap_or(0.0));
            }
        };
        self.rows.iter().for_each(|&row| take_note(row, &left, &mut likeness));
        let mut order = Vec::with_capacity(pool.len());
        while !left.is_empty() {
            let worth = |at: usize| {
                let alike = if likeness[at] < NEAR_COPY { 0.0 } else { likeness[at] };
                SCORE_SHARE * pool[at].score - LIKENESS_SHARE * alike
            };
            let mut best = 0;
            for place in 1..left.len() {
                let (one, other) = (left[best], left[place]);
                let ahead = worth(other).total_cmp(&worth(one));
                if ahead
                    .then_with(|| self.columns.by_id(pool[one].row, pool[other].row))
                    .is_gt()
                {
                    best = place;
                }
            }
            let pick = left.swap_remove(best);
            order.push((pool[pick], likeness[pick] >= NEAR_COPY));
            take_note(pool[pick].row, &left, &mut likeness);
        }
        self.rows.extend(rows);
        order
    }
}

/// The results of a frame, and the rows that were removed.
pub struct Shown {
    /// The results, guaranteed ones first.
    pub results: Vec<Rated>,
    /// Rows removed because another result contradicts them.
    pub suppressed: Vec<u32>,
    /// Guaranteed rows that contradict each other.
    pub clashes: Vec<(u32, u32)>,
    /// The candidates after the results, in order.
    pub further: Vec<Rated>,
}

/// Fills the places of a frame: guaranteed rows first, then the others in order. Of two that contradict each other one is
/// removed, and the next candidate takes its place.
pub fn fill_places(
    columns: &BlockColumns,
    measure: &Measure<'_>,
    sure: Vec<Rated>,
    order: Vec<Rated>,
    k: usize,
) -> Shown {
    let sight = measure.sight();
    let guaranteed = sure.len();
    let mut clashes = Vec::new();
    let mut results = sure;
    let mut waiting = order.into_iter();
    results.extend(waiting.by_ref().take(k.saturating_sub(guaranteed)));
    let mut suppressed = Vec::new();
    if !columns.contradictions.is_empty() {
        for (place, one) in results[..guaranteed].iter().enumerate() {
            for other in &results[place + 1..guaranteed] {
                if columns.contradictions.joins(one.row, other.row, sight) {
                    clashes.push((one.row, other.row));
                }
            }
        }
        while let Some(loser) = first_loser(columns, measure, &results, guaranteed) {
            suppressed.push(results.remove(loser).row);
            results.extend(waiting.next());
        }
    }
    Shown {
        results,
        suppressed,
        clashes,
        further: waiting.collect(),
    }
}

/// The place of the row to remove from the first pair of results that contradict each other.
fn first_loser(columns: &BlockColumns, measure: &Measure<'_>, results: &[Rated], guaranteed: usize) -> Option<usize> {
    let contradict = |&(one, other): &(usize, usize)| {
        other >= guaranteed
            && columns
                .contradictions
                .joins(results[one].row, results[other].row, measure.sight())
    };
    let places = results.len();
    let (one, other) = (0..places)
        .flat_map(|one| (one + 1..places).map(move |other| (one, other)))
        .find(contradict)?;
    if one < guaranteed {
        return Some(other);
    }
    let strength = |place: usize| {
        let row = results[place].row;
        (columns.confidence[row as usize], measure.recency(row))
    };
    let (first, second) = (strength(one), strength(other));
    let order = first.0.total_cmp(&second.0).then_with(|| first.1.total_cmp(&second.1));
    // If both are equal, the one with the greater id is removed.
    let order = order.then_with(|| columns.by_id(results[other].row, results[one].row));
    Some(if order.is_lt() { one } else { other })
}
