//! Puts on hold the records that acts made of one that is in doubt.
//!
//! What an act makes of its records follows from what they were. If a lost event spoke of one of them, a whole act behind it
//! was applied to something else than it was then: all that it is about becomes as doubtful, and whatever later acts make of
//! that. What is written whole meanwhile is in doubt no more.

use std::collections::{BTreeMap, BTreeSet};
use std::io;

use chronolog::event::Op;
use chronolog::event::act::Act;
use chronomemory_state::state::unspelled;

use super::on_hold::ReadLog;
use super::runs::each_event;

/// Why such a record is on hold.
const REASON: &str = "an act changed it that also changed, or looked at, a record which a lost event spoke of";

impl ReadLog<'_> {
    /// Puts on hold what acts made of records that are in doubt.
    ///
    /// # Errors
    /// What the disk says.
    pub fn hold_derived(&mut self) -> io::Result<()> {
        let mut coming: BTreeMap<u64, Vec<String>> = BTreeMap::new();
        for (place, id) in std::mem::take(&mut self.doubts) {
            coming.entry(place).or_default().push(id);
        }
        let Some(first) = coming.keys().next().copied() else {
            return Ok(());
        };
        let mut doubtful = BTreeSet::new();
        let mut derived: Vec<(u64, String)> = Vec::new();
        each_event(self.file, 0..self.end, |offset, _, text, event| {
            if offset < first {
                return;
            }
            while let Some(entry) = coming.first_entry().filter(|entry| *entry.key() <= offset) {
                doubtful.extend(entry.remove());
            }
            match event.op {
                Op::Upsert | Op::Migrate => {
                    doubtful.remove(&unspelled(event.record_id(text)));
                }
                Op::Act => {
                    let act = Act::read(event.record_id(text), event.record(text));
                    let ids: Vec<String> = act.iter().flat_map(Act::mentions).map(|mention| mention.id).collect();
                    // Whatever it names, it looks at what all acts of its face look at: the clocks.
                    let looked_at: Vec<String> = act.iter().flat_map(Act::looked_at).collect();
                    if ids.iter().chain(&looked_at).any(|id| doubtful.contains(id)) {
                        derived.extend(ids.iter().map(|id| (offset, id.clone())));
                        doubtful.extend(ids);
                    }
                }
                _ => {}
            }
        })?;
        for (place, id) in derived
            .into_iter()
            .filter(|(_, id)| !self.held.contains(id))
            .collect::<Vec<_>>()
        {
            self.hold(&id, place, REASON)?;
        }
        Ok(())
    }
}
