//! Chooses what is shown of the best: unlike each other and without contradictions.

use super::columns::BlockColumns;
use super::rate::{Measure, Rated, better_first};
use super::vectors::{BlockVectors, Comparison};

/// How much of a choice is score, and how much is being unlike what was chosen.
const SCORE_SHARE: f64 = 0.7;
const LIKENESS_SHARE: f64 = 0.3;
/// From here on two blocks say nearly the same; what is less alike is not held against a block.
const NEAR_COPY: f64 = 0.8;
/// Where likeness decides, so many results have one spare, which takes the place of a near copy.
const RESULTS_PER_SPARE: usize = 10;
/// So many are at hand for each result, to move up where some must go.
const AT_HAND_PER_RESULT: usize = 2;

/// What results are taken from.
pub struct Pool {
    /// By their scores.
    first: Vec<Rated>,
    /// Those that take the places of near copies.
    spare: Vec<Rated>,
    /// Those that move up where some of the others must go.
    rest: Vec<Rated>,
}

impl Pool {
    /// All of these, the best first.
    pub fn best(rated: Vec<Rated>) -> Self {
        Self {
            first: rated,
            spare: Vec::new(),
            rest: Vec::new(),
        }
    }

    /// The most alike fill so many places, and so many `further` ones are at hand; of equals the better, for they come the
    /// best first.
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

    /// Those that fill the places by their scores, then the others, the most alike first.
    pub fn by_score(self) -> Vec<Rated> {
        let Self { mut first, spare, rest } = self;
        first.extend(spare.into_iter().chain(rest));
        first
    }

    /// By their scores, but near copies of what comes before them behind others. Where likeness decides, they come last, and a
    /// spare one that is worth more comes before them.
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

/// What is shown so far.
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

    /// Adds these, each time the one that is worth most; whether each is a near copy of one before it.
    fn in_turn(&mut self, pool: Vec<Rated>) -> Vec<(Rated, bool)> {
        let rows: Vec<u32> = pool.iter().map(|rated| rated.row).collect();
        let mut likeness = vec![f64::NEG_INFINITY; pool.len()];
        let mut left: Vec<usize> = (0..pool.len()).collect();
        // How alike those are to a row that are still to come.
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

/// What is shown of the results of a frame, and what had to go.
pub struct Shown {
    /// The results, guaranteed ones first.
    pub results: Vec<Rated>,
    /// Rows that had to go because something else contradicts them.
    pub suppressed: Vec<u32>,
    /// Guaranteed rows that contradict each other.
    pub clashes: Vec<(u32, u32)>,
    /// What found no place, in its order.
    pub further: Vec<Rated>,
}

/// Fills the places of a frame: the guaranteed ones, then the others in their order; of two that contradict each other
/// one goes and the next moves up.
pub fn settle(columns: &BlockColumns, measure: &Measure<'_>, sure: Vec<Rated>, order: Vec<Rated>, k: usize) -> Shown {
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

/// Who has to go in the first pair of results that contradict each other.
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
    let standing = |place: usize| {
        let row = results[place].row;
        (columns.confidence[row as usize], measure.recency(row))
    };
    let (mine, theirs) = (standing(one), standing(other));
    let order = mine.0.total_cmp(&theirs.0).then_with(|| mine.1.total_cmp(&theirs.1));
    // Of two that stand alike the one with the greater id goes.
    let order = order.then_with(|| columns.by_id(results[other].row, results[one].row));
    Some(if order.is_lt() { one } else { other })
}
