//! Takes an act into the state: applies its rule, and notes the event for every record that it speaks of.
//!
//! The rule of the act says what each record is afterwards. One event of the log speaks of all of them: of those that it
//! changed, and of those that it tells of. The latter is told by the act alone, so that whoever has only the log comes to the
//! same; of the former the state knows more.

use super::records::State;
use super::spelling::spelled;
use crate::snapshot::Stamp;
use chronolog::event::Known;
use chronolog::event::act::Act;

/// Takes an act.
pub(super) fn apply_act(state: &mut State, known: Known<'_>, stamp: Stamp) {
    let Some(act) = Act::read(known.id, known.record) else {
        state.timeline.push(known.offset, known.seq, None);
        return;
    };
    let mut touched = Vec::new();
    for (id, record) in act.effects(&|id| state.get(id)) {
        let id = spelled(&id);
        let slot = state.put_value(state.find(&id), &id, record, stamp);
        state.note_change(slot);
        touched.push(slot);
    }
    speak_of(state, &act, touched, known, stamp);
}

/// Takes an act that the base already accounts for.
pub(super) fn note_act(state: &mut State, known: Known<'_>, stamp: Stamp) {
    match Act::read(known.id, known.record) {
        Some(act) => speak_of(state, &act, Vec::new(), known, stamp),
        None => _ = state.timeline.push(known.offset, known.seq, None),
    }
}

fn speak_of(state: &mut State, act: &Act, mut slots: Vec<u32>, known: Known<'_>, stamp: Stamp) {
    for id in act.subjects() {
        let id = spelled(&id);
        slots.push(state.find(&id).unwrap_or_else(|| state.mention(&id, stamp)));
    }
    slots.sort_unstable();
    slots.dedup();
    let about = slots.iter().map(|&slot| (slot, state.slots.get(slot).last_event));
    let mark = state.timeline.push_several(known.offset, known.seq, about);
    for slot in slots {
        state.slot_mut(slot).last_event = mark;
        state.touch_moments(slot, stamp, false);
        state.note_speech(slot, stamp);
    }
}
