//! The rules for what becomes of blocks that were shown or got an outcome: section 7 of `docs/format.md`.
//!
//! A log that was written with a rule must come to the same records for ever, so a rule is never changed: another one
//! gets the next number.

mod book;
mod forming;
mod ids;
mod outcome;
mod payload;
mod shown;

use self::book::Book;
use self::outcome::GOOD_ABOVE;
use self::payload::{BlockAct, LINKED_BLOCKS, Payload};
use super::{Mention, Read, Rules};
use crate::json::Value;

/// The rules of the face.
pub static RULES: Rules = Rules {
    effects,
    mentions,
    most_touched,
};

fn effects<'a>(payload: &'a Value, read: &'a Read<'a>) -> Vec<(String, Value)> {
    let Some(payload) = Payload::of(payload) else {
        return Vec::new();
    };
    let mut book = Book::of(read, &payload);
    if !book.tick(payload.passed) {
        return Vec::new();
    }
    match payload.said {
        BlockAct::Shown { session } => shown::apply(&mut book, &payload, session),
        BlockAct::Outcome { signal, weight, source } => outcome::apply(&mut book, &payload, (signal, weight, source)),
    }
    book.changed()
}

fn mentions(payload: &Value) -> Vec<Mention> {
    let Some(payload) = Payload::of(payload) else {
        return Vec::new();
    };
    let mut found: Vec<Mention> = payload.ids.iter().map(|id| Mention::told(ids::block(id))).collect();
    if payload.passed > 0.0 {
        let clock = payload.scope.as_ref().map(ids::clock);
        found.push(Mention::told(clock.unwrap_or_else(|| ids::CLOCK.to_owned())));
    }
    let makes_links = match payload.said {
        BlockAct::Shown { session } => session.is_some(),
        BlockAct::Outcome { signal, .. } if signal > GOOD_ABOVE => true,
        BlockAct::Outcome { .. } => return found,
    };
    let linked = payload.linked();
    found.extend(ids::pairs(linked).map(|(one, other)| Mention {
        id: ids::edge(one, other),
        is_told: makes_links,
    }));
    found
}

/// The blocks and the clock; the links between the first of them, and as many as may give way to each.
fn most_touched(named: usize) -> usize {
    let linked = named.min(LINKED_BLOCKS);
    let pairs = linked * linked.saturating_sub(1) / 2;
    named + 1 + 3 * pairs
}

#[cfg(test)]
mod tests {
    use std::borrow::Cow;

    use std::collections::HashMap;

    use super::*;
    use crate::json;
    use crate::scope::Scope;

    fn parsed(text: &str) -> Value {
        json::parse(text.as_bytes()).expect("JSON")
    }

    fn mentioned(text: &str) -> Vec<(String, bool)> {
        let all = mentions(&parsed(text)).into_iter();
        all.map(|mention| (mention.id, mention.is_told)).collect()
    }

    #[test]
    fn an_act_tells_what_it_is_of() {
        let told = mentioned(r#"{"act":"shown/1","at":"t","ids":["b","a:x","b"],"passed":0.5,"session":"s"}"#);
        let names: Vec<&str> = told.iter().map(|(id, _)| id.as_str()).collect();
        assert_eq!(
            names,
            ["block:b", "block:a:x", "config:total_active_hours", "bedge:a%3Ax:b"]
        );
        assert!(told.iter().all(|(_, is_told)| *is_told));
        // Without a session no link comes about; one that is there is used.
        let told = mentioned(r#"{"act":"shown/1","at":"t","ids":["b","a"]}"#);
        assert_eq!(told.last(), Some(&("bedge:a:b".to_owned(), false)));
        let told = mentioned(r#"{"act":"outcome/1","at":"t","ids":["b","a"],"signal":0.5,"weight":1.0}"#);
        assert_eq!(told.len(), 2);
        let told = mentioned(r#"{"act":"outcome/1","at":"t","ids":["b","a"],"signal":1,"weight":1}"#);
        assert_eq!(told.last(), Some(&("bedge:a:b".to_owned(), true)));
    }

    #[test]
    fn what_is_not_formed_as_it_should_be_changes_nothing() {
        let there = br#"{"confidence":0.5,"data":{},"id":"block:a","kind":"block","status":"active"}"#;
        for odd in [
            "{}",
            "[]",
            r#"{"act":"shown/2","at":"t","ids":["a"]}"#,
            r#"{"act":"shown","at":"t","ids":["a"]}"#,
            r#"{"act":"hidden/1","at":"t","ids":["a"]}"#,
            r#"{"act":"shown/1","ids":["a"]}"#,
            r#"{"act":"shown/1","at":7,"ids":["a"]}"#,
            r#"{"act":"shown/1","at":"t","ids":[]}"#,
            r#"{"act":"shown/1","at":"t","ids":["a",7]}"#,
            r#"{"act":"shown/1","at":"t","ids":["a",""]}"#,
            r#"{"act":"shown/1","at":"t","ids":"a"}"#,
            r#"{"act":"shown/1","at":"t","ids":["a"],"passed":-1.0}"#,
            r#"{"act":"shown/1","at":"t","ids":["a"],"passed":"1"}"#,
            r#"{"act":"shown/1","at":"t","ids":["a"],"session":""}"#,
            r#"{"act":"shown/1","at":"t","ids":["a"],"depth":0.5}"#,
            r#"{"act":"outcome/1","at":"t","ids":["a"]}"#,
            r#"{"act":"outcome/1","at":"t","ids":["a"],"signal":1.5,"weight":1.0}"#,
            r#"{"act":"outcome/1","at":"t","ids":["a"],"signal":1.0,"weight":0.0}"#,
            r#"{"act":"outcome/1","at":"t","ids":["a"],"signal":1.0,"weight":1e7}"#,
            r#"{"act":"outcome/1","at":"t","ids":["a"],"signal":1.0,"weight":1.0,"source":7}"#,
        ] {
            let odd = parsed(odd);
            assert_eq!(effects(&odd, &|_| Some(Cow::Borrowed(&there[..]))), [], "{odd:?}");
            assert_eq!(mentions(&odd), [], "{odd:?}");
        }
    }

    #[test]
    fn an_act_of_a_scope_changes_what_is_its_own_on_its_own_clock() {
        let block = |scope: &str| {
            format!(
                r#"{{"confidence":0.5,"data":{{{scope}"last_reinforced_at":1.0}},"kind":"block","status":"active"}}"#
            )
        };
        let ann = r#""@scope":{"user":"ann"},"#;
        let records: HashMap<String, String> = HashMap::from([
            ("block:own".to_owned(), block(ann)),
            (
                "block:now".to_owned(),
                block(r#""@scope":{"session":"s","user":"ann"},"#),
            ),
            ("block:bobs".to_owned(), block(r#""@scope":{"user":"bob"},"#)),
            ("block:shared".to_owned(), block("")),
            (
                "config:total_active_hours".to_owned(),
                r#"{"data":{"value":"90.0"},"kind":"config"}"#.to_owned(),
            ),
        ]);
        let read = |id: &str| records.get(id).map(|record| Cow::Borrowed(record.as_bytes()));
        let act = parsed(
            r#"{"act":"outcome/2","at":"t","ids":["own","shared","bobs","now"],"passed":2.0,"scope":{"user":"ann"},"signal":1.0,"weight":1.0}"#,
        );
        let made = effects(&act, &read);
        let clock = format!(
            "config:{}:total_active_hours",
            Scope::new([Some("ann"), None, None]).expect("names").digits()
        );
        let ids: Vec<&str> = made.iter().map(|(id, _)| id.as_str()).collect();
        assert_eq!(ids, [clock.as_str(), "block:own", "block:now", "bedge:now:own"]);
        let text = |at: usize| {
            let text = made[at].1.to_bytes();
            String::from_utf8(text).expect("text")
        };
        assert!(text(0).contains(r#""data":{"@scope":{"user":"ann"},"value":"2.0"}"#));
        assert!(text(1).contains(r#""last_reinforced_at":2.0"#));
        assert!(text(3).contains(r#""data":{"@scope":{"session":"s","user":"ann"},"created_at":"t""#));
        assert!(text(3).contains(r#""last_active_hours":2.0"#));
        // Without a scope that is one, nothing happens.
        for odd in ["{}", "7", r#"{"user":""}"#, r#"{"name":"x"}"#] {
            let odd = format!(r#"{{"act":"shown/2","at":"t","ids":["own"],"scope":{odd}}}"#);
            let odd = parsed(&odd);
            let made = effects(&odd, &|id| {
                records.get(id).map(|record| Cow::Borrowed(record.as_bytes()))
            });
            assert_eq!(made, [], "{odd:?}");
        }
    }

    #[test]
    fn odd_records_are_left_alone_or_mended_and_never_break_anything() {
        let odd = [
            r#"{"id":"block:a","kind":"block","status":"active"}"#,
            r#"{"data":7,"id":"block:a","kind":"block","status":"active"}"#,
            r#"{"confidence":"x","data":{"decay_lambda":[],"evidence":"much","forming":7,"last_reinforced_at":null,"reinforcement_count":"many","tags":3},"kind":"block","status":"active"}"#,
            r#"{"confidence":1e300,"data":{"evidence":1.7e308,"reinforcement_count":9223372036854775807},"kind":"block","status":"active"}"#,
            r#"{"data":{"value":"1e308"},"kind":"config"}"#,
            r#"{"data":{"sessions":7,"weight":"x"},"kind":"bedge","status":"forming"}"#,
            r#"{"data":{"weight":1e308},"kind":"bedge","status":"active"}"#,
            r#"{"kind":"block","status":"tombstone"}"#,
            "7",
        ];
        for act in [
            r#"{"act":"shown/1","at":"t","ids":["a","b"],"passed":1e308,"session":"s"}"#,
            r#"{"act":"shown/1","at":"t","ids":["a","b"],"session":"s"}"#,
            r#"{"act":"outcome/1","at":"t","ids":["a","b"],"signal":1.0,"weight":1e6}"#,
            r#"{"act":"outcome/1","at":"t","ids":["a","b"],"signal":0.0,"weight":1e6}"#,
        ] {
            for record in odd {
                for (id, made) in effects(&parsed(act), &|_| Some(Cow::Borrowed(record.as_bytes()))) {
                    let text = made.to_bytes();
                    assert_eq!(json::parse(&text).ok().as_ref(), Some(&made), "{id} of {record}");
                }
            }
        }
    }
}
