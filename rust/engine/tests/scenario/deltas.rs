//! Applies deltas to facts, for scenarios.

use chronomemory::{AtomicBatch, Draft, Query, Result, Store, Value};

use super::{label, model_of};

const FACE: Option<&str> = Some("episodes");
/// How far a rule got.
const PROGRESS: &str = "rule:run:0";

fn record(id: &str, kind: &str, n: u32) -> Value {
    let step = Value::object([("note", Value::from(label(n))), ("rule_id", Value::from("r"))]);
    Value::object([
        ("data", Value::object([("lineage", Value::Array(vec![step]))])),
        ("id", Value::from(id)),
        ("kind", Value::from(kind)),
        ("label", Value::from(label(n))),
    ])
}

/// Applies a delta as the face of episodes does, in one batch that minds what it has read: the facts that are pinned go,
/// two others are pinned unless it is a delete, and how far the rule got is noted with them.
///
/// # Errors
/// What the store says.
pub fn apply(store: &mut Store, n: u32, now: i64) -> Result<()> {
    store.refresh()?;
    let since = store.bookmark();
    let pinned = Query {
        kinds: Some(vec!["fact".to_owned()]),
        status: Some("active".to_owned()),
        faces: true,
        ..Query::default()
    };
    // Plain records may be of this kind too.
    let known = model_of(pinned.records(store.state())?).into_keys();
    let mut read: Vec<String> = known.filter(|id| id.starts_with("fact:")).collect();
    let mut draft = Draft::default();
    for id in &read {
        draft.delete(id, FACE).expect("an id");
    }
    if n % 3 != 2 {
        for id in [2 * n, 2 * n + 1] {
            let fact = record(&format!("fact:{id}"), "fact", id);
            draft.upsert_value(&fact, 0, FACE).expect("a fact");
        }
    }
    draft
        .upsert_value(&record(PROGRESS, "rule", n), 0, FACE)
        .expect("a note");
    read.push(PROGRESS.to_owned());
    let change = AtomicBatch {
        at: None,
        draft: &draft,
        attachments: &[],
        unless_changed: Some((&since, &read)),
    };
    let written = store.commit_change(&change, now)?;
    assert!(written.is_some(), "nobody else wrote");
    Ok(())
}
