//! Guesses of which records an act speaks that cannot be read any more.
//!
//! An act names its records in a list, by less than their ids, and what it is of stands elsewhere in its line. So each may be
//! lost without the other.

use std::collections::BTreeSet;

use chronolog::event::Op;
use chronolog::event::act::Act;
use chronolog::event::faces::{acting_ids, acting_prefixes, rules_of};

use super::scraps::{ids_of_event, object_at, strings_at, strings_from, values_of};

/// The acts that a line seems to hold.
pub(super) struct SeemingActs {
    /// What the records are called that they are about, as far as that can be read.
    pub told: Vec<String>,
    /// All of it can be read that tells.
    pub is_certain: bool,
    /// Part of what they say is lost: they may be about other records too.
    pub is_torn: bool,
}

impl SeemingActs {
    /// Those of a line; `None` if it seems to hold none.
    pub fn of(line: &[u8]) -> Option<Self> {
        let is_act = |id: &String| rules_of(id.as_bytes()).is_some();
        let named: Vec<String> = ids_of_event(line).into_iter().filter(is_act).collect();
        let kinds = strings_at(line, b"\"act\"", |_| true);
        if named.is_empty() && !is_called_act(line) && !kinds.iter().any(|kind| is_known(kind)) {
            return None;
        }
        // Where the name is lost, it may be any that acts have.
        let ids: BTreeSet<String> = match named.is_empty() {
            true => acting_ids().collect(),
            false => named.iter().cloned().collect(),
        };
        let (mut told, mut whole) = (Vec::new(), 0);
        for record in values_of(line, b"\"record\"").filter_map(|(_, at)| object_at(line, at)) {
            let acts = ids.iter().filter_map(|id| Act::read(id.as_bytes(), record));
            let mentions: Vec<_> = acts.flat_map(|act| act.mentions()).collect();
            whole += usize::from(!mentions.is_empty());
            told.extend(mentions.into_iter().map(|mention| mention.id));
        }
        // One line may be what is left of two.
        let is_torn = whole < kinds.len().max(named.len()).max(1);
        if is_torn {
            let lists = values_of(line, b"\"ids\"").filter(|(_, at)| line[*at] == b'[');
            let left: Vec<String> = lists.flat_map(|(_, at)| strings_from(line, at + 1)).collect();
            let rules = ids.iter().filter_map(|id| rules_of(id.as_bytes()));
            told.extend(rules.flat_map(|rules| (rules.touched)(&left)));
        }
        Some(Self {
            told,
            is_certain: !is_torn && !named.is_empty(),
            is_torn,
        })
    }
}

/// What stands before the ids that a line names, if it seems to be an act.
pub(super) fn prefixes(line: &[u8]) -> Vec<&'static str> {
    let has_name = strings_at(line, b"\"record_id\"", |_| true)
        .iter()
        .any(|id| rules_of(id.as_bytes()).is_some());
    let is_act = has_name || is_called_act(line) || !strings_at(line, b"\"act\"", |_| true).is_empty();
    if is_act { acting_prefixes() } else { Vec::new() }
}

fn is_called_act(line: &[u8]) -> bool {
    let ops = strings_at(line, b"\"op\"", |_| true);
    ops.iter().any(|op| Op::read(op.as_bytes()) == Op::Act)
}

fn is_known(kind: &str) -> bool {
    let mut rules = acting_ids().filter_map(|id| rules_of(id.as_bytes()));
    rules.any(|rules| rules.kinds.contains(&kind))
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINE: &str = r#"{?"op":"act","prev_hash":"","record":{"act":"shown/1","at":"t","ids":["a","b","c"],"passed":0.5,"session":"s"},"record_id":"act:blocks","seq":1}"#;
    const ALL: [&str; 7] = [
        "bedge:a:b",
        "bedge:a:c",
        "bedge:b:c",
        "block:a",
        "block:b",
        "block:c",
        "config:total_active_hours",
    ];

    fn acts(line: &str) -> (BTreeSet<String>, bool, bool) {
        let found = SeemingActs::of(line.as_bytes()).expect("an act");
        (found.told.into_iter().collect(), found.is_certain, found.is_torn)
    }

    #[test]
    fn an_act_whose_name_is_lost_still_speaks_of_all_its_records() {
        let all: BTreeSet<String> = ALL.map(str::to_owned).into();
        assert_eq!(acts(LINE), (all.clone(), true, false));
        for name in [r#""act:bl??ks""#, r#""??"#, "", r#""tea""#] {
            let line = LINE.replace(r#""act:blocks""#, name);
            assert_eq!(acts(&line), (all.clone(), false, false), "{line}");
        }
        // The word alone tells too, and so does the kind.
        assert!(acts(&LINE.replace("act:blocks", "?").replace("shown/1", "shown/?")).2);
        assert_eq!(acts(&LINE.replace("act:blocks", "?").replace(r#""act","#, "?")).0, all);
        assert!(SeemingActs::of(br#"{"record":{"data":{"act":"the third"},"id":"play"}"#).is_none());
    }

    #[test]
    fn what_is_left_of_a_list_speaks_of_links_and_of_the_clock() {
        let (told, is_certain, is_torn) = acts(&LINE.replace(r#""c"],"passed""#, "?"));
        let left = ["bedge:a:b", "block:a", "block:b", "config:total_active_hours"];
        assert_eq!(told, left.map(str::to_owned).into());
        assert!(is_torn && !is_certain);
        let (told, ..) = acts(&LINE.replace(r#"["a","b","c"]"#, "?"));
        assert_eq!(told, ["config:total_active_hours".to_owned()].into());
    }

    #[test]
    fn two_acts_in_one_line_are_both_looked_for() {
        let both = format!("{LINE}?{}", LINE.replace(r#"["a","b","c"]"#, r#"["d"?"#));
        let (told, is_certain, is_torn) = acts(&both);
        assert!(told.contains("block:d") && told.contains("bedge:b:c"), "{told:?}");
        assert!(is_torn && !is_certain);
    }
}
