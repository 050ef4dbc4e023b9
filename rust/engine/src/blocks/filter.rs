//! Which blocks may be found at all, and which are guaranteed?

use roaring::RoaringBitmap;

use super::ask::Ask;
use super::columns::{Columns, Standing};

/// What a question lets through.
pub struct Filter<'a> {
    columns: &'a Columns,
    /// Rows that have one of the tags; all if none is asked for.
    tagged: Option<RoaringBitmap>,
    /// For each category whether it is wanted; all if none is asked for.
    categories: Option<Vec<bool>>,
    min_confidence: f64,
    /// The slots that may be found; all if nobody looked into the records.
    slots: Option<&'a RoaringBitmap>,
    /// Blocks that were last used later than this are within the window.
    after: f64,
}

impl<'a> Filter<'a> {
    /// The filter of a question.
    pub fn new(columns: &'a Columns, ask: &'a Ask) -> Self {
        let tagged = (!ask.tag_patterns.is_empty()).then(|| columns.tagged_like(&ask.tag_patterns));
        let is_wanted = |name: &str| ask.categories.iter().any(|category| category == name);
        let categories = || columns.categories.iter().map(|(_, name)| is_wanted(name)).collect();
        Self {
            columns,
            tagged,
            categories: (!ask.categories.is_empty()).then(categories),
            min_confidence: ask.min_confidence,
            slots: ask.slots.as_ref(),
            after: ask.window.map_or(f64::NEG_INFINITY, |window| ask.hours - window),
        }
    }

    /// Whether a block passes, whenever it was used last.
    pub fn passes_at_any_age(&self, row: u32) -> bool {
        let at = row as usize;
        let columns = self.columns;
        columns.standing[at] == Standing::Active
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

    /// Whether a block passes.
    pub fn passes(&self, row: u32) -> bool {
        self.columns.last[row as usize] > self.after && self.passes_at_any_age(row)
    }

    /// All blocks that pass, in the order of their rows.
    pub fn rows(&self) -> Vec<u32> {
        match &self.tagged {
            Some(tagged) => tagged.iter().filter(|&row| self.passes(row)).collect(),
            None => (0..self.columns.len() as u32).filter(|&row| self.passes(row)).collect(),
        }
    }
}

/// The blocks that are always there, in the order of their rows.
pub fn guaranteed(columns: &Columns, ask: &Ask) -> Vec<u32> {
    if ask.guarantees.is_empty() {
        return Vec::new();
    }
    let tagged = columns.tagged_like(&ask.guarantees);
    let is_active = |row: &u32| columns.standing[*row as usize] == Standing::Active;
    tagged.iter().filter(is_active).collect()
}
