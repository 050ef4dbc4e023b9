//! Collects the rows of a base while it is written, so that its segment is made without reading the base.

use std::collections::HashMap;

use super::changes::StateId;
use super::rows::Frozen;
use super::scopes::name_of;
use crate::segment::{EventRow, Head, Locator, NO_EVENT, SegmentDraft, SegmentRow, Source, id_hash};
use crate::snapshot::Stamp;
use chronolog::event::faces::{SEARCH, face_of, is_told};
use chronolog::scope::{Carried, carried};

/// The rows of the records of a base, in their order.
pub struct BaseRows {
    seed: u64,
    draft: SegmentDraft,
    rows: Vec<SegmentRow>,
    /// Whose slots are meant; `None` before the first record.
    source: Option<StateId>,
    /// The slot that each row has in the state that it comes from, ascending.
    slots: Vec<u32>,
    /// Classes and scopes of that state, each with its place among the names.
    classes: HashMap<u32, u32>,
    scopes: HashMap<u32, u32>,
    /// Records came from several states or out of order, so slots do not identify rows.
    is_mixed: bool,
}

impl BaseRows {
    /// No rows. Ids are hashed with this seed.
    pub fn new(seed: u64) -> Self {
        Self {
            seed,
            draft: SegmentDraft::default(),
            rows: Vec::new(),
            source: None,
            slots: Vec::new(),
            classes: HashMap::new(),
            scopes: HashMap::new(),
            is_mixed: false,
        }
    }

    /// Takes a record that was just written to the base at this offset. It replaces an earlier one of the same slot.
    pub fn add(&mut self, frozen: &Frozen, place: usize, offset: u64, record: &[u8]) {
        let Some(&number) = frozen.numbers.get(place) else {
            self.is_mixed = true;
            return;
        };
        let slot = frozen.slots.get(number);
        let source = self.source.get_or_insert_with(|| frozen.state_id.clone());
        self.is_mixed |= *source != frozen.state_id;
        let id = slot.id.of(record);
        let (names, scopes) = (&mut self.draft.classes, &mut self.draft.scopes);
        let class = *self.classes.entry(slot.class).or_insert_with(|| {
            names.push(frozen.classes[slot.class as usize].name());
            names.len() as u32 - 1
        });
        let scope = *self.scopes.entry(slot.scope).or_insert_with(|| {
            let carried = carried(record).map_or_else(Carried::shared, Carried::of_value);
            scopes.push((name_of(&carried), Stamp::UNKNOWN.numbers()));
            scopes.len() as u32 - 1
        });
        self.draft.head.declares |= names[class as usize].2 && face_of(id) == Some(SEARCH);
        let at = match self.slots.last() {
            Some(&last) if last >= number => self.slots.binary_search(&number).unwrap_or_else(|_| {
                self.is_mixed = true;
                0
            }),
            _ => {
                self.slots.push(number);
                self.slots.len() - 1
            }
        };
        let locator = Locator::of(Source::Base, offset, record);
        let row = SegmentRow {
            last_event: NO_EVENT,
            ..slot.row(at as u32, locator, id_hash(id, self.seed), [class, scope])
        };
        match self.rows.get_mut(at) {
            Some(older) => *older = row,
            None => self.rows.push(row),
        }
    }

    /// The segment of a log that begins with one event, which changes no record. `head` tells origin, head, position and the next seq.
    /// `None` if the records did not all come from one state.
    pub fn end(mut self, head: Head) -> Option<BaseSegment> {
        if self.is_mixed {
            return None;
        }
        let mut unscoped = Stamp::UNKNOWN;
        for row in &self.rows {
            let (kind, _, is_of_face) = &self.draft.classes[row.class as usize];
            let spoken = Stamp::of_numbers(row.moments[2], row.moments[3]);
            if !is_told(kind, *is_of_face) {
                unscoped = later(unscoped, spoken);
                continue;
            }
            let numbers = &mut self.draft.scopes[row.scope as usize].1;
            *numbers = later(Stamp::of_numbers(numbers[0], numbers[1]), spoken).numbers();
        }
        let made = |row: &SegmentRow| Stamp::of_numbers(row.moments[0], row.moments[1]).seq();
        let inversions = self.rows.windows(2).filter(|pair| made(&pair[0]) > made(&pair[1]));
        self.draft.head = Head {
            from: 0,
            to: 1,
            first_slot: 0,
            end_slot: self.rows.len() as u32,
            inversions: inversions.count() as u64,
            declares: self.draft.head.declares,
            unscoped: unscoped.numbers(),
            seed: self.seed,
            ..head
        };
        self.draft.events = vec![EventRow {
            offset: 0,
            slot: NO_EVENT,
            earlier: NO_EVENT,
        }];
        self.draft.runs = vec![(0, self.draft.head.next_seq.saturating_sub(1))];
        Some(BaseSegment {
            draft: self.draft,
            rows: self.rows,
        })
    }
}

/// The segment of a base and the first event behind it.
pub struct BaseSegment {
    /// All but the rows.
    pub draft: SegmentDraft,
    /// The rows.
    pub rows: Vec<SegmentRow>,
}

fn later(one: Stamp, other: Stamp) -> Stamp {
    if other.seq() >= one.seq() { other } else { one }
}
