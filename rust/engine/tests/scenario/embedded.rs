//! The embeddings that the records of a scenario get.

use chronomemory::{AtomicBatch, Attachment, Draft, Query, Result, Store};

use super::{Model, label, model_of, record};

/// How many components the embeddings have.
pub const DIM: usize = 150;

/// A vector whose bytes span more than a sector, and that no other is like.
pub fn vector(n: u32) -> Vec<f32> {
    (0..DIM as u32).map(|i| ((n * 31 + i * 7) % 97) as f32 - 48.5).collect()
}

/// The plain records.
pub fn ids_of(model: &Model) -> Vec<String> {
    let plain = model.keys().filter(|id| id.starts_with('R'));
    plain.cloned().collect()
}

/// Gives some records that are there embeddings.
///
/// # Errors
/// What the store says; likewise below.
pub fn attach(store: &mut Store, n: u32, now: i64) -> Result<()> {
    store.refresh()?;
    let active = Query {
        status: Some("active".to_owned()),
        ..Query::default()
    };
    let mut ids = ids_of(&model_of(active.records(store.state()).expect("memory")));
    ids.truncate(1 + n as usize % 4);
    attach_to(store, &ids, n, now)
}

/// Gives records the vectors from number `n` on.
pub fn attach_to(store: &mut Store, ids: &[String], n: u32, now: i64) -> Result<()> {
    let rows: Vec<f32> = (n..).take(ids.len()).flat_map(vector).collect();
    write(store, &Draft::default(), ids, &rows, now)
}

/// Writes changes and embeddings as one batch.
fn write(store: &mut Store, draft: &Draft, ids: &[String], rows: &[f32], now: i64) -> Result<()> {
    let attachments = [Attachment {
        space: None,
        model: Some("a model"),
        dim: DIM,
        tokens: 0,
        ids: &ids.iter().collect(),
        rows,
    }];
    let change = AtomicBatch {
        draft,
        attachments: &attachments,
        unless_changed: None,
        at: None,
    };
    store.commit_change(&change, now).map(|_| ())
}

/// Writes records and their embeddings as one change.
pub fn bear(store: &mut Store, n: u32, now: i64) -> Result<()> {
    let mut draft = Draft::default();
    let ids: Vec<String> = (n..n + 3).map(|n| format!("R{}", n % 11)).collect();
    for id in &ids {
        draft.upsert_value(&record(id, &label(n)), 0, None).expect("a record");
    }
    // Other vectors than those that the same record may have had before.
    let rows: Vec<f32> = (3 * n..).take(ids.len()).flat_map(vector).collect();
    write(store, &draft, &ids, &rows, now)
}
