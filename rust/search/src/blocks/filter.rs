//! The filters of a recall, and the guaranteed blocks.

use std::collections::HashSet;

use roaring::RoaringBitmap;

use super::ask::{Ask, BlockView};
use super::columns::{BlockColumns, BlockStatus};
use chronomemory_state::state::Sight;

/// The filters of a recall.
pub struct BlockFilter<'a> {
    columns: &'a BlockColumns,
    sight: &'a Sight,
    /// The visible rows, if they are few.
    few: Option<Vec<u32>>,
    /// The viewer's clock, and the hours on it.
    clock: Option<u32>,
    hours: f64,
    /// The rows with the requested tags.
    tagged: Option<RoaringBitmap>,
    /// For each category whether it was requested.
    categories: Option<Vec<bool>>,
    min_confidence: f64,
    /// The slots for which the condition holds.
    slots: Option<&'a RoaringBitmap>,
    /// The greatest number of hours since the last use, on the block's clock.
    window: Option<f64>,
}

impl<'a> BlockFilter<'a> {
    /// The filters of these parameters.
    pub fn new(columns: &'a BlockColumns, view: &'a BlockView, ask: &'a Ask) -> Self {
        let few = columns.members.few(&view.sight);
        let few_of = few.as_deref();
        let like = (!ask.tag_patterns.is_empty()).then(|| columns.tagged_like(&ask.tag_patterns, few_of));
        let wanted: HashSet<&str> = ask.tags.iter().map(String::as_str).collect();
        let is_one = |tag: &str| wanted.contains(tag);
        let exactly = (!ask.tags.is_empty()).then(|| columns.tagged_by(is_one, few_of));
        let tagged = match (like, exactly) {
            (Some(like), Some(exactly)) => Some(like & exactly),
            (like, exactly) => like.or(exactly),
        };
        let is_wanted = |name: &str| ask.categories.iter().any(|category| category == name);
        let categories = || columns.categories.iter().map(|(_, name)| is_wanted(name)).collect();
        Self {
            columns,
            sight: &view.sight,
            few,
            clock: columns.clocks.find(&view.clock),
            hours: ask.hours,
            tagged,
            categories: (!ask.categories.is_empty()).then(categories),
            min_confidence: ask.min_confidence,
            slots: ask.slots.as_ref(),
            window: ask.window,
        }
    }

    /// Whether a block passes all filters except the window.
    pub fn passes_at_any_age(&self, row: u32) -> bool {
        let at = row as usize;
        let columns = self.columns;
        columns.status[at] == BlockStatus::Active
            && columns.is_in(row, self.sight)
            && columns.confidence[at] >= self.min_confidence
            && self
                .categories
                .as_ref()
                .is_none_or(|wanted| wanted[columns.category[at] as usize])
            && self.tagged.as_ref().is_none_or(|tagged| tagged.contains(row))
            && self
                .slots
                .is_none_or(|slots| columns.slot_of(row).is_some_and(|slot| slots.contains(slot)))
    }

    /// Whether a block passes all filters.
    pub fn passes(&self, row: u32) -> bool {
        let at = row as usize;
        let (columns, clock) = (self.columns, self.columns.clock[at]);
        let hours = || columns.clocks.hours(clock, self.clock, self.hours);
        let is_within = |window: f64| columns.last[at] > hours() - window;
        self.window.is_none_or(is_within) && self.passes_at_any_age(row)
    }

    /// All rows that pass, ascending.
    pub fn rows(&self) -> Vec<u32> {
        match (&self.tagged, &self.few) {
            (Some(tagged), _) => tagged.iter().filter(|&row| self.passes(row)).collect(),
            (None, Some(few)) => few.iter().copied().filter(|&row| self.passes(row)).collect(),
            (None, None) => (0..self.columns.len() as u32).filter(|&row| self.passes(row)).collect(),
        }
    }

    /// Whether so few rows are visible that each one is examined.
    pub fn is_of_few(&self) -> bool {
        self.few.is_some()
    }

    /// The visible scopes.
    pub fn sight(&self) -> &'a Sight {
        self.sight
    }
}

/// The guaranteed rows, ascending.
pub fn guaranteed(columns: &BlockColumns, sight: &Sight, ask: &Ask) -> Vec<u32> {
    if ask.guarantees.is_empty() {
        return Vec::new();
    }
    let few = columns.members.few(sight);
    let tagged = columns.tagged_like(&ask.guarantees, few.as_deref());
    let is_there = |row: &u32| columns.status[*row as usize] == BlockStatus::Active && columns.is_in(*row, sight);
    tagged.iter().filter(is_there).collect()
}
