//! The inputs of the score of all blocks in columns, kept up to date with the state.

use std::cmp::Ordering;
use std::collections::{BTreeMap, HashMap};

use roaring::RoaringBitmap;

use super::circumstances::{CircumstanceFields, Circumstances};
use super::clocks::Clocks;
use super::fields::{block_in, number, plain, quoted};
use super::like::like;
use super::links::{Links, Pairs};
use super::members::RowScopes;
use super::names::NumberedNames;
use super::shape::{BlockMisfit, Head};
use crate::text::is_of_likeness;
use chronolog::json::members;
use chronomemory_state::state::{Sight, State, StateId, Watermark};

/// Defaults of fields that a record does not have.
const DEFAULT_CONFIDENCE: f64 = 0.5;
const DEFAULT_LAMBDA: f64 = 0.01;
/// The weight of the logarithm of a link's uses in its strength.
const USE_BONUS: f64 = 0.10;
/// No row, or no slot.
const NONE: u32 = u32::MAX;

/// The status of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BlockStatus {
    /// Only mentioned by a link or another block, or deleted.
    Absent,
    /// Learned, not consolidated.
    Inbox,
    /// Consolidated.
    Active,
    /// Archived.
    Archived,
}

impl BlockStatus {
    /// Whether its tags, links and contradictions are shown.
    pub fn is_shown(self) -> bool {
        matches!(self, Self::Inbox | Self::Active)
    }
}

/// All blocks, one row each. Rows are numbered in the order in which they were first mentioned, and never removed.
#[derive(Default)]
pub struct BlockColumns {
    /// The state that the columns follow, and the number of changes applied.
    mark: Watermark,
    pub(super) ids: NumberedNames,
    /// The slot of each row.
    slots: Vec<u32>,
    /// The row of each slot.
    rows: Vec<u32>,
    /// The first bytes of the id as a number that sorts alike, to decide most ties fast.
    first_bytes: Vec<u64>,
    pub(super) status: Vec<BlockStatus>,
    pub(super) category: Vec<u32>,
    pub(super) confidence: Vec<f64>,
    pub(super) last: Vec<f64>,
    pub(super) lambda: Vec<f64>,
    /// `ln(1 + uses)`.
    pub(super) uses: Vec<f64>,
    pub(super) evidence: Vec<f64>,
    /// The sum of link strengths, for a viewer who sees all scopes.
    pub(super) degree: Vec<f64>,
    /// The scope, by its number in the state.
    pub(super) members: RowScopes,
    /// The clock on which it ages.
    pub(super) clock: Vec<u32>,
    pub(super) clocks: Clocks,
    pub(super) circumstances: Circumstances,
    pub(super) categories: NumberedNames,
    tags: Vec<Box<[u32]>>,
    tag_names: NumberedNames,
    /// The rows with each tag, whatever their status.
    tagged: Vec<RoaringBitmap>,
    pub(super) edges: Links,
    /// Links that occurred in too few sessions to count.
    pub(super) forming: Pairs,
    pub(super) contradictions: Links,
    /// Rows whose degree must be computed again.
    unweighed: Vec<u32>,
    /// Records with an id of this face that do not have its form, by slot: scope, id, reason.
    pub(super) misfits: BTreeMap<u32, (u32, String, BlockMisfit)>,
}

impl BlockColumns {
    /// Whether the state has changes that are not applied here.
    pub fn is_behind(&self, state: &State) -> bool {
        self.mark.is_behind(state.changes())
    }

    /// The number of changes that are not applied here.
    pub fn lacks(&self, state: &State) -> usize {
        let changes = state.changes().since(&self.mark);
        changes.map_or_else(|| state.catalog.count(|class| class.face) as usize, <[u32]>::len)
    }

    /// Whether the columns follow this state; slots of another state are meaningless here.
    pub fn is_of(&self, state: &StateId) -> bool {
        self.mark.is_of(state)
    }

    /// Applies the changes of the state; another state is read from its beginning.
    pub fn follow(&mut self, state: &State) {
        match state.changes().since(&self.mark) {
            Some(slots) => {
                let is_of_a_face = |slot: &u32| state.class_in(*slot).is_some_and(|class| class.face);
                self.take_all(state, slots.iter().copied().filter(is_of_a_face));
            }
            None => {
                *self = Self::default();
                self.take_all(state, state.catalog.slots(|class| class.face));
            }
        }
        self.mark = state.changes().watermark();
        self.weigh();
    }

    fn take_all(&mut self, state: &State, slots: impl Iterator<Item = u32>) {
        for row in slots.filter_map(|slot| state.row(slot)) {
            self.take(row.slot, state.scope_in(row.slot), &row.record);
        }
    }

    /// The number of rows.
    pub fn len(&self) -> usize {
        self.status.len()
    }

    /// Whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.status.is_empty()
    }

    /// The slot of a row.
    pub(super) fn slot_of(&self, row: u32) -> Option<u32> {
        Some(self.slots[row as usize]).filter(|&slot| slot != NONE)
    }

    /// The row of the block in a slot.
    pub(super) fn row_in(&self, slot: u32) -> Option<u32> {
        self.rows.get(slot as usize).copied().filter(|&row| row != NONE)
    }

    /// The slots of these rows.
    pub(super) fn slots_of(&self, rows: impl Iterator<Item = u32>) -> RoaringBitmap {
        let mut slots: Vec<u32> = rows.filter_map(|row| self.slot_of(row)).collect();
        slots.sort_unstable();
        slots.dedup();
        RoaringBitmap::from_sorted_iter(slots).unwrap_or_default()
    }

    fn set_slot(&mut self, row: u32, slot: u32) {
        let at = slot as usize;
        if at >= self.rows.len() {
            self.rows.resize(at + 1, NONE);
        }
        self.rows[at] = row;
        self.slots[row as usize] = slot;
    }

    /// Compares two rows by id.
    pub(super) fn by_id(&self, one: u32, other: u32) -> Ordering {
        let first = |row: u32| self.first_bytes[row as usize];
        first(one)
            .cmp(&first(other))
            .then_with(|| self.ids.name(one).cmp(self.ids.name(other)))
    }

    /// The rows with a tag that matches one of the patterns, among these or all rows.
    pub(super) fn tagged_like(&self, patterns: &[String], among: Option<&[u32]>) -> RoaringBitmap {
        self.tagged_by(|tag| patterns.iter().any(|pattern| like(pattern, tag)), among)
    }

    /// The rows with a tag for which `fits` holds, among these or all rows.
    pub(super) fn tagged_by(&self, fits: impl Fn(&str) -> bool, among: Option<&[u32]>) -> RoaringBitmap {
        let mut rows = RoaringBitmap::new();
        if let Some(among) = among {
            let mut known: HashMap<u32, bool> = HashMap::new();
            let mut is_wanted = |tag: u32| *known.entry(tag).or_insert_with(|| fits(self.tag_names.name(tag)));
            rows.extend(
                among
                    .iter()
                    .filter(|&&row| self.tags[row as usize].iter().any(|&tag| is_wanted(tag))),
            );
            return rows;
        }
        for (number, _) in self.tag_names.iter().filter(|(_, tag)| fits(tag)) {
            rows |= &self.tagged[number as usize];
        }
        rows
    }

    fn row(&mut self, id: &str) -> u32 {
        let row = self.ids.number(id);
        if row as usize == self.status.len() {
            let mut first = [0; 8];
            let length = id.len().min(8);
            first[..length].copy_from_slice(&id.as_bytes()[..length]);
            self.first_bytes.push(u64::from_be_bytes(first));
            self.slots.push(NONE);
            self.status.push(BlockStatus::Absent);
            self.category.push(0);
            self.confidence.push(0.0);
            self.last.push(0.0);
            self.lambda.push(0.0);
            self.uses.push(0.0);
            self.evidence.push(0.0);
            self.degree.push(0.0);
            self.clock.push(0);
            self.circumstances.add_row();
            self.tags.push(Box::default());
        }
        row
    }

    /// Applies the current version of a record. Records of other faces are skipped; misfits count as deleted.
    fn take(&mut self, slot: u32, scope: u32, record: &[u8]) {
        let mut head = Head::of(record);
        let Some((prefix, _)) = head.split_id() else { return };
        match head.misfit() {
            Some(found) => {
                self.misfits.insert(slot, (scope, plain(head.id), found));
                head.status = b"tombstone";
                head.data = b"";
            }
            None if !self.misfits.is_empty() => {
                self.misfits.remove(&slot);
            }
            None => {}
        }
        match prefix {
            b"block" => self.take_block(slot, scope, &head),
            b"bedge" => self.take_edge(scope, &head),
            b"contradiction" => self.take_contradiction(scope, &head),
            b"config" => self.clocks.set(&head),
            _ => {}
        }
    }

    fn take_block(&mut self, slot: u32, scope: u32, head: &Head<'_>) {
        let Some(id) = block_in(head.id) else {
            return;
        };
        let row = self.row(&plain(id));
        self.set_slot(row, slot);
        self.members.set(row, scope);
        let at = row as usize;
        let mut tags = Vec::new();
        let mut category: &[u8] = b"";
        let (mut count, mut lambda, mut last, mut evidence) = (0.0, DEFAULT_LAMBDA, 0.0, 0.0);
        let mut circumstances = CircumstanceFields::default();
        for (key, value) in members(head.data) {
            match key {
                b"category" => category = quoted(value).unwrap_or_default(),
                b"decay_lambda" => lambda = number(value).unwrap_or(lambda),
                b"evidence" => evidence = number(value).unwrap_or(evidence),
                b"last_reinforced_at" => last = number(value).unwrap_or(last),
                b"reinforcement_count" => count = number(value).unwrap_or(count),
                b"tags" => tags = members(value).map(|(tag, _)| plain(tag)).collect(),
                _ => circumstances.read(key, value),
            }
        }
        let previous = circumstances
            .previous()
            .and_then(block_in)
            .map(|id| self.row(&plain(id)));
        self.circumstances.set(row, &circumstances, previous);
        let status = match head.status {
            b"inbox" => BlockStatus::Inbox,
            b"active" => BlockStatus::Active,
            b"archived" => BlockStatus::Archived,
            _ => BlockStatus::Absent,
        };
        if self.status[at].is_shown() != status.is_shown() {
            let all = Sight::ALL;
            let neighbours = self.edges.of(row, &all).map(|(link, _)| link.across(row));
            self.unweighed.extend(neighbours);
        }
        self.status[at] = status;
        self.category[at] = self.categories.number(&plain(category));
        self.confidence[at] = head.confidence.unwrap_or(DEFAULT_CONFIDENCE);
        self.last[at] = last;
        self.lambda[at] = lambda;
        self.uses[at] = f64::ln_1p(count);
        self.evidence[at] = evidence;
        self.clock[at] = self.clocks.of_scope(scope, head.data);
        self.set_tags(row, &tags);
    }

    fn set_tags(&mut self, row: u32, tags: &[String]) {
        let mut tags: Box<[u32]> = tags.iter().map(|tag| self.tag_names.number(tag)).collect();
        tags.sort_unstable();
        self.tagged.resize_with(self.tag_names.len(), RoaringBitmap::new);
        let before = std::mem::replace(&mut self.tags[row as usize], tags);
        let now = &self.tags[row as usize];
        for tag in before.iter().filter(|tag| now.binary_search(tag).is_err()) {
            self.tagged[*tag as usize].remove(row);
        }
        for tag in now.iter().filter(|tag| before.binary_search(tag).is_err()) {
            self.tagged[*tag as usize].insert(row);
        }
    }

    fn take_edge(&mut self, scope: u32, head: &Head<'_>) {
        let Some((from, to)) = head.ends() else { return };
        let (mut weight, mut count) = (0.0, 0.0);
        for (key, value) in members(head.data) {
            match key {
                b"reinforcement_count" => count = number(value).unwrap_or(count),
                b"weight" => weight = number(value).unwrap_or(weight),
                _ => {}
            }
        }
        let (a, b) = (self.row(&from), self.row(&to));
        let counts = head.status == b"active";
        let strength = weight + USE_BONUS * f64::ln_1p(count);
        self.edges.set(a, b, scope, counts.then_some(strength));
        self.forming.set(a, b, head.status == b"forming");
        self.edges.set_likeness(a, b, is_of_likeness(head.data));
        self.unweighed.extend([a, b]);
    }

    fn take_contradiction(&mut self, scope: u32, head: &Head<'_>) {
        let Some((a, b)) = head.ends() else { return };
        let (a, b) = (self.row(&a), self.row(&b));
        let is_open = head.status == b"active";
        self.contradictions.set(a, b, scope, is_open.then_some(1.0));
    }

    /// Computes the degrees that changed.
    fn weigh(&mut self) {
        let mut rows = std::mem::take(&mut self.unweighed);
        rows.sort_unstable();
        rows.dedup();
        for row in rows {
            self.degree[row as usize] = self.degree_in(row, &Sight::ALL);
        }
    }

    /// The sum of the strengths of visible links. They are added scope by scope, in the order in which they were made, so that
    /// links in hidden scopes cannot change the rounding.
    pub(super) fn degree_in(&self, row: u32, sight: &Sight) -> f64 {
        let counts = |other: u32| self.status[other as usize].is_shown() && self.is_in(other, sight);
        let links = self.edges.of(row, sight).filter(|(link, _)| counts(link.across(row)));
        // `sum()` of an empty iterator would be -0.0.
        links.fold(0.0, |sum, (_, strength)| sum + strength)
    }

    /// Whether a block is visible.
    pub(super) fn is_in(&self, row: u32, sight: &Sight) -> bool {
        sight.is_all() || self.members.of(row).is_some_and(|scope| sight.sees(scope))
    }
}
