//! Takes an act into the state: applies its rule, and notes the event for every record that it speaks of.
//!
//! The rule of the act says what each record is afterwards. One event of the log speaks of all of them: of those that it
//! changed, and of those that it tells of. The latter is told by the act alone, so that whoever has only the log comes to the
//! same; of the former the state knows more.

use super::records::State;
use super::spelling::spelled;
use crate::event::Known;
use crate::event::act::Act;
use crate::snapshot::Stamp;

impl State {
    /// Takes an act.
    pub(super) fn apply_act(&mut self, known: Known<'_>, stamp: Stamp) {
        let Some(act) = Act::read(known.id, known.record) else {
            self.timeline.push(known.offset, known.seq, None);
            return;
        };
        let mut touched = Vec::new();
        for (id, record) in act.effects(&|id| self.get(id)) {
            let id = spelled(&id);
            let slot = self.put_value(self.find(&id), &id, record, stamp);
            self.note_change(slot);
            touched.push(slot);
        }
        self.speak_of(&act, touched, known, stamp);
    }

    /// Takes an act that the base already accounts for.
    pub(super) fn note_act(&mut self, known: Known<'_>, stamp: Stamp) {
        match Act::read(known.id, known.record) {
            Some(act) => self.speak_of(&act, Vec::new(), known, stamp),
            None => _ = self.timeline.push(known.offset, known.seq, None),
        }
    }

    fn speak_of(&mut self, act: &Act, mut slots: Vec<u32>, known: Known<'_>, stamp: Stamp) {
        for id in act.subjects() {
            let id = spelled(&id);
            slots.push(self.find(&id).unwrap_or_else(|| self.mention(&id, stamp)));
        }
        slots.sort_unstable();
        slots.dedup();
        let about = slots.iter().map(|&slot| (slot, self.slots[slot as usize].last_event));
        let mark = self.timeline.push_several(known.offset, known.seq, about);
        for slot in slots {
            self.slots[slot as usize].last_event = mark;
            self.moments.speak(slot, stamp);
            self.note_speech(slot, stamp);
        }
    }
}
