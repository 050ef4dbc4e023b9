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

    const SHOWN: &str = r#"{"act":"shown/1","at":"t","ids":["b","a"]}"#;
    const OUTCOME: &str = r#"{"act":"outcome/1","at":"t","ids":["b","a"],"signal":1.0,"weight":1.0}"#;

    /// An act with some fields changed.
    fn act(act: &str, changes: &str) -> Value {
        let [act, changes] = [act, changes].map(|text| json::parse(text.as_bytes()).expect("JSON"));
        json::merge(act, &changes)
    }

    #[test]
    fn an_act_mentions_blocks_clock_and_links() {
        let named = r#"{"ids":["b","a:x","b"],"passed":0.5,"session":"s"}"#;
        for (act, expected) in [
            (
                act(SHOWN, named),
                "block:b block:a:x config:total_active_hours bedge:a%3Ax:b",
            ),
            // Without a session no link comes about; one that is there is used.
            (act(SHOWN, "{}"), "block:b block:a (bedge:a:b)"),
            (act(OUTCOME, r#"{"signal":0.5}"#), "block:b block:a"),
            (act(OUTCOME, "{}"), "block:b block:a bedge:a:b"),
        ] {
            let told = mentions(&act).into_iter().map(|mention| match mention.is_told {
                true => mention.id,
                false => format!("({})", mention.id),
            });
            assert_eq!(told.collect::<Vec<_>>().join(" "), expected);
        }
    }

    #[test]
    fn what_is_not_formed_as_it_should_be_changes_nothing() {
        let there = br#"{"confidence":0.5,"data":{},"id":"block:a","kind":"block","status":"active"}"#;
        let shown = r#"[] {"act":null} {"act":"shown/2"} {"act":"shown"} {"act":"hidden/1"} {"at":null} {"at":7}
            {"ids":null} {"ids":[]} {"ids":["a",7]} {"ids":["a",""]} {"ids":"a"} {"passed":-1.0} {"passed":"1"}
            {"session":""} {"depth":0.5} {"act":"shown/2","scope":{}} {"act":"shown/2","scope":7}
            {"act":"shown/2","scope":{"user":""}} {"act":"shown/2","scope":{"name":"x"}}"#;
        let outcome = r#"{"signal":null} {"signal":1.5} {"weight":0.0} {"weight":1e7} {"source":7}"#;
        let odd = shown.split_whitespace().map(|odd| act(SHOWN, odd));
        for odd in odd.chain(outcome.split_whitespace().map(|odd| act(OUTCOME, odd))) {
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
        let records = HashMap::from([
            ("block:own", block(r#""@scope":{"user":"ann"},"#)),
            ("block:now", block(r#""@scope":{"session":"s","user":"ann"},"#)),
            ("block:bobs", block(r#""@scope":{"user":"bob"},"#)),
            ("block:shared", block("")),
            (
                "config:total_active_hours",
                r#"{"data":{"value":"90.0"},"kind":"config"}"#.to_owned(),
            ),
        ]);
        let read = |id: &str| records.get(id).map(|record| Cow::Borrowed(record.as_bytes()));
        let of_ann = r#"{"act":"outcome/2","ids":["own","shared","bobs","now"],"passed":2.0,"scope":{"user":"ann"}}"#;
        let made = effects(&act(OUTCOME, of_ann), &read);
        let ann = Scope::new([Some("ann"), None, None]).expect("names").digits();
        let expected = [
            (
                format!("config:{ann}:total_active_hours"),
                r#""data":{"@scope":{"user":"ann"},"value":"2.0"}"#,
            ),
            ("block:own".to_owned(), r#""last_reinforced_at":2.0"#),
            ("block:now".to_owned(), r#""last_reinforced_at":2.0"#),
            (
                "bedge:now:own".to_owned(),
                r#""data":{"@scope":{"session":"s","user":"ann"},"created_at":"t","from_id":"now","last_active_hours":2.0"#,
            ),
        ];
        assert_eq!(made.len(), expected.len());
        for ((id, record), (expected_id, part)) in made.iter().zip(&expected) {
            assert_eq!(id, expected_id);
            assert!(String::from_utf8_lossy(&record.to_bytes()).contains(part), "{record:?}");
        }
    }

    #[test]
    fn odd_records_are_left_alone_or_mended_and_never_break_anything() {
        let records = r#"{"id":"block:a","kind":"block","status":"active"}
            {"data":7,"id":"block:a","kind":"block","status":"active"}
            {"confidence":"x","data":{"decay_lambda":[],"evidence":"much","forming":7,"last_reinforced_at":null,"reinforcement_count":"many","tags":3},"kind":"block","status":"active"}
            {"confidence":1e300,"data":{"evidence":1.7e308,"reinforcement_count":9223372036854775807},"kind":"block","status":"active"}
            {"data":{"value":"1e308"},"kind":"config"}
            {"data":{"sessions":7,"weight":"x"},"kind":"bedge","status":"forming"}
            {"data":{"weight":1e308},"kind":"bedge","status":"active"}
            {"kind":"block","status":"tombstone"}
            7"#;
        for act in [
            act(SHOWN, r#"{"passed":1e308,"session":"s"}"#),
            act(SHOWN, r#"{"session":"s"}"#),
            act(OUTCOME, r#"{"weight":1e6}"#),
            act(OUTCOME, r#"{"signal":0.0,"weight":1e6}"#),
        ] {
            for record in records.split_whitespace() {
                for (id, made) in effects(&act, &|_| Some(Cow::Borrowed(record.as_bytes()))) {
                    assert_eq!(
                        json::parse(&made.to_bytes()).ok().as_ref(),
                        Some(&made),
                        "{id} of {record}"
                    );
                }
            }
        }
    }
}
