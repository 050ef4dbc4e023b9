//! A state that records were erased from is as if they had never been.

use std::sync::Arc;

use chronomemory::testing::json;
use chronomemory::testing::snapshot::{Moments, RecordSink, Stamp};
use chronomemory::testing::state::State;
use chronomemory::{Query, Viewer};

const RECORDS: u64 = 24;
/// Each record that has an end has expired by then, or has not.
const NOON: i64 = 1_800_000_000_000_000;

fn record(number: u64, round: u64) -> Vec<u8> {
    let kind = ["fact", "edge", "note"][number as usize % 3];
    let status = if (number + round).is_multiple_of(5) {
        "tombstone"
    } else {
        "active"
    };
    let scope = match number % 4 {
        0 => String::new(),
        1 => r#""@scope":{"user":"mia"}"#.to_owned(),
        2 => r#""@scope":{"session":"1","user":"tom"}"#.to_owned(),
        // Only this one is in it: it goes with it.
        _ => format!(r#""@scope":{{"user":"guest {number}"}}"#),
    };
    let end = match number % 7 {
        3 => r#""expires_at":"2027-01-01T00:00:00Z""#.to_owned(),
        4 => r#""expires_at":"2037-01-01T00:00:00Z""#.to_owned(),
        _ => String::new(),
    };
    let data = [scope, end].into_iter().filter(|part| !part.is_empty());
    let data = data.collect::<Vec<_>>().join(",");
    let text = format!(
        r#"{{"confidence":0.5,"data":{{{data}}},"id":"R{number}","kind":"{kind}","label":"said {round}","status":"{status}"}}"#
    );
    text.into_bytes()
}

fn put(state: &mut State, number: u64, round: u64) {
    let record = record(number, round);
    let fields = json::scan_record(&record).expect("a record");
    let at = Stamp::new(round * 100 + number, NOON);
    state.take(&record, fields, Some(Moments::of_stamps(at, at)));
}

/// All that can be asked of a state.
fn told(state: &mut State) -> Vec<String> {
    state.expire(NOON);
    let mut told = vec![format!("{} of them", state.len())];
    told.extend(state.due_at(&Viewer::Everyone, NOON));
    for viewer in [Viewer::default(), Viewer::Everyone, Viewer::Everyone.with_expired()] {
        for kind in [None, Some("fact"), Some("edge"), Some("note")] {
            for status in [None, Some("active"), Some("tombstone")] {
                let query = Query {
                    viewer: Arc::new(viewer.clone()),
                    kinds: kind.map(|kind| vec![kind.to_owned()]),
                    status: status.map(str::to_owned),
                    ..Query::default()
                };
                let found = query.records(state).expect("memory");
                told.extend(found.iter().map(|record| String::from_utf8_lossy(record).into_owned()));
                told.push(format!("{viewer:?} {kind:?} {status:?}"));
            }
        }
    }
    for number in 0..RECORDS {
        let found = state.get(&format!("R{number}"));
        told.push(format!("R{number}: {}", found.is_some()));
    }
    let named = |id: &[u8]| String::from_utf8_lossy(id).into_owned();
    let within = state.slots_within(|_| true);
    let mut within: Vec<String> = within.iter().map(|&slot| named(&state.slots.id(slot))).collect();
    within.sort();
    told.extend(within);
    let frozen = state.freeze().expect("memory");
    told.extend(
        frozen
            .records()
            .zip(frozen.moments())
            .map(|(record, moments)| format!("{} {moments:?}", named(&record))),
    );
    told
}

#[test]
fn what_is_left_is_as_if_the_others_had_never_been() {
    for seed in 0..40_u64 {
        let mut chance = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
        let mut toss = || {
            chance = chance.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            chance >> 33
        };
        let goes: Vec<bool> = (0..RECORDS).map(|_| toss() % 3 == 0).collect();
        let (mut state, mut twin) = (State::default(), State::default());
        for (number, goes) in (0..RECORDS).zip(&goes) {
            put(&mut state, number, 0);
            if !goes {
                put(&mut twin, number, 0);
            }
        }
        let before = told(&mut state);
        let going = (0..RECORDS).zip(&goes).filter(|(_, goes)| **goes);
        let ids: Vec<Vec<u8>> = going.map(|(number, _)| format!("R{number}").into_bytes()).collect();
        let slots = state.slots_named(ids.iter().map(Vec::as_slice));
        assert_eq!(slots.len(), ids.len());
        let mark = state.changes().watermark();
        let left = (0..state.slots.len() as u32).filter(|slot| !slots.contains(slot));
        let frozen = state.freeze_those(left).expect("memory");
        let kept: Vec<Vec<u8>> = frozen.records().map(std::borrow::Cow::into_owned).collect();
        drop(frozen);
        state.erase(&slots);
        let there = state.freeze().expect("memory");
        assert_eq!(
            there.records().map(std::borrow::Cow::into_owned).collect::<Vec<_>>(),
            kept
        );
        drop(there);
        assert_eq!(told(&mut state), told(&mut twin), "{seed}");
        assert_eq!(before == told(&mut twin), ids.is_empty());
        assert!(mark != state.changes().watermark(), "it is another life");
        assert!(state.slots_named(ids.iter().map(Vec::as_slice)).is_empty());
        // Life goes on: what is written anew under such an id is a new record, at the end.
        for _ in 0..12 {
            let number = toss() % RECORDS;
            put(&mut state, number, 1);
            put(&mut twin, number, 1);
        }
        assert_eq!(told(&mut state), told(&mut twin), "{seed}, later");
    }
}
