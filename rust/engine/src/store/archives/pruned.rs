//! Tells which archives were removed on purpose.

use chronolog::event::erasure::Pruning;
use chronolog::event::faces::ERASURES;
use chronolog::layout::last_seq_in_archive_name;
use chronomemory_state::state::State;

/// What a state says of archives that were pruned, in the order of the events.
pub(in crate::store) fn prunings_of(state: &State) -> Vec<Pruning> {
    let slots = state.of_kinds(ERASURES, &[b"pruned"]);
    let found = slots.filter_map(|slot| {
        let id = state.spelled_id(slot);
        let seq = std::str::from_utf8(id).ok()?.strip_prefix("pruned:")?.parse().ok()?;
        Pruning::read(seq, id, state.record_in(slot))
    });
    found.collect()
}

/// Up to which event archives were pruned; 0 if none was.
pub(in crate::store) fn pruned_until(state: &State) -> u64 {
    let last = prunings_of(state).into_iter().map(|told| told.last_seq);
    last.max().unwrap_or(0)
}

/// Says in a report which archives were pruned, instead of that they are missing.
pub(in crate::store) fn tell_pruned(state: &State, notes: &mut Vec<String>) {
    let (prunings, until) = (prunings_of(state), pruned_until(state));
    let is_pruned = |note: &String| {
        let name = note.strip_prefix("history unavailable: archive/");
        let name = name.and_then(|rest| rest.strip_suffix(" is not there"));
        name.and_then(last_seq_in_archive_name)
            .is_some_and(|last| last <= until)
    };
    notes.retain(|note| !is_pruned(note));
    notes.extend(prunings.iter().map(|told| {
        format!(
            "pruned at event {}: {:?}: {} archives, up to event {}",
            told.seq, told.reason, told.archives, told.last_seq
        )
    }));
}
