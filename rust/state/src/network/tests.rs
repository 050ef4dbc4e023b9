//! Tests that walks find what is joined, and nothing else.

use super::{Direction, Net, Steps, islands, reach, routes};
use crate::index::OrderedIndex;
use crate::state::State;
use chronolog::event::faces::{index_named, network_named};
use chronolog::event::{Known, Op};
use chronolog::json;
use chronolog::scope::Viewer;

const NETWORK: &str = "graph.edges";

/// A state with nodes named by letters, and edges such as `ab`; capitals are of another kind, and so are edges with a third
/// letter.
fn state_of(ends: &str, joints: &[&str]) -> State {
    let mut state = State::default();
    let mut seq = 0;
    let mut hear = |id: String, kind: &str, data: String| {
        seq += 1;
        let record = format!(r#"{{"data":{data},"id":"{id}","kind":"{kind}","status":"active"}}"#);
        let known = Known {
            op: Op::Upsert,
            seq,
            hash: b"",
            offset: seq,
            id: id.as_bytes(),
            record: record.as_bytes(),
            fields: json::scan_record(record.as_bytes()).expect("a record"),
        };
        state.apply(known, 0, false);
    };
    for end in ends.chars() {
        let kind = if end.is_uppercase() { "upper" } else { "lower" };
        hear(
            format!("node:{end}"),
            "node",
            format!(r#"{{"id":"{end}","kind":"{kind}"}}"#),
        );
    }
    for joint in joints {
        let (source, target, kind) = (&joint[..1], &joint[1..2], if joint.len() > 2 { "x" } else { "k" });
        let data = format!(r#"{{"id":"{joint}","kind":"{kind}","source":"{source}","target":"{target}"}}"#);
        hear(format!("gedge:{joint}"), "gedge", data);
    }
    state
}

fn ask<T>(state: &State, steps: &Steps, question: impl FnOnce(&Net<'_>) -> T) -> T {
    let network = network_named(NETWORK).expect("declared");
    let indexes = [network.by_source, network.by_target, network.ends].map(|name| {
        let mut index = OrderedIndex::new(index_named(name).expect("declared"));
        index.follow(state).expect("memory");
        index
    });
    let [source, target, ends] = &indexes;
    question(&Net::new(
        state,
        network,
        [source, target, ends],
        &Viewer::default(),
        steps,
    ))
}

fn towards(direction: Direction) -> Steps {
    Steps {
        direction,
        kinds: None,
        end_kinds: None,
    }
}

fn near(state: &State, steps: &Steps, from: &str, hops: u32) -> String {
    ask(state, steps, |net| {
        let starts: Vec<u32> = net.end(from).into_iter().collect();
        let found = reach(net, &starts, hops, false).ends;
        found.into_iter().map(|(end, _)| net.name(end)).collect()
    })
}

#[test]
fn what_is_near_is_found_by_the_steps_that_are_asked_for() {
    let state = state_of("abcDe", &["ab", "bc", "Da", "bex", "aa", "ag"]);
    assert_eq!(near(&state, &towards(Direction::Out), "a", 1), "ab");
    assert_eq!(near(&state, &towards(Direction::In), "a", 1), "aD");
    assert_eq!(near(&state, &towards(Direction::Both), "a", 2), "abDce");
    assert_eq!(near(&state, &towards(Direction::Both), "g", 2), "", "no record, no end");
    let only = |kinds: Option<&str>, end_kinds: Option<&str>| Steps {
        direction: Direction::Both,
        kinds: kinds.map(|kind| vec![kind.as_bytes().to_vec()]),
        end_kinds: end_kinds.map(|kind| vec![kind.as_bytes().to_vec()]),
    };
    assert_eq!(near(&state, &only(Some("\"x\""), None), "b", 9), "be");
    assert_eq!(near(&state, &only(None, Some("\"lower\"")), "a", 9), "abce");
}

#[test]
fn what_joins_two_that_were_reached_is_told_once() {
    let state = state_of("abc", &["ab", "bc", "ca", "bb"]);
    let joints = ask(&state, &towards(Direction::Both), |net| {
        let start = net.end("a").expect("it is there");
        let found = reach(net, &[start, start], 1, true).joints;
        found.into_iter().map(|joint| net.id(joint)).collect::<Vec<_>>()
    });
    assert_eq!(joints, ["gedge:ab", "gedge:bb", "gedge:bc", "gedge:ca"]);
}

#[test]
fn ways_come_shortest_first_and_meet_no_end_twice() {
    let state = state_of("abcdz", &["ab", "bd", "ac", "cd", "ad", "ba", "da"]);
    let ways = |hops: u32, limit: usize, target: &str| {
        ask(&state, &towards(Direction::Out), |net| {
            let (source, target) = (net.end("a").expect("there"), net.end(target).expect("there"));
            let found = routes(net, source, target, hops, limit).expect("few enough");
            let named = |route: Vec<u32>| route.into_iter().map(|joint| net.id(joint)[6..].to_owned()).collect();
            found.into_iter().map(named).collect::<Vec<Vec<String>>>()
        })
    };
    assert_eq!(ways(6, 9, "d"), [vec!["ad"], vec!["ab", "bd"], vec!["ac", "cd"]]);
    assert_eq!(ways(6, 2, "d").len(), 2);
    assert_eq!(ways(1, 9, "d"), [["ad"]]);
    assert!(ways(6, 9, "z").is_empty());
    assert_eq!(ways(6, 9, "a"), [Vec::<String>::new()]);
    let too_long = ask(&state, &towards(Direction::Out), |net| {
        routes(net, 0, 1, 257, 1).is_err()
    });
    assert!(too_long);
}

#[test]
fn what_hangs_together_is_one_island() {
    let state = state_of("abcxyz", &["ab", "cb", "xy", "zg"]);
    let mut found = ask(&state, &towards(Direction::Out), |net| {
        let named = |ends: Vec<u32>| {
            let mut names: Vec<String> = ends.into_iter().map(|end| net.name(end)).collect();
            names.sort();
            names.concat()
        };
        islands(net).into_iter().map(named).collect::<Vec<_>>()
    });
    found.sort();
    assert_eq!(found, ["abc", "xy", "z"]);
}
