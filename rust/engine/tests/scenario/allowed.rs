//! The states that may be found after a crash.

use std::collections::BTreeMap;

use chronomemory::Damage;

use super::{LOST, Model};

/// Whether a state is that of a model, but for embeddings that a power failure may take: those that were not synced.
fn is_but_for_lost_rows(found: &Model, model: &Model, synced: &Model) -> bool {
    found.len() == model.len()
        && found.iter().zip(model).all(|((id, value), (other, wanted))| {
            let was_synced = synced.get(id) == Some(wanted);
            id == other && (value == wanted || (value == LOST && !was_synced))
        })
}

/// What may be found after a crash.
#[derive(Clone)]
pub struct Allowed {
    /// The states of all moments from the last known sync on.
    pub models: Vec<Model>,
    /// Whether the store was damaged before.
    pub damaged: bool,
    /// Whether embeddings may be missing that were not synced: a row may be lost though its event is kept.
    pub rows: bool,
}

impl Allowed {
    /// Whether it is one of those states.
    pub fn has(&self, found: &Model) -> bool {
        let but_for_rows = |model: &Model| is_but_for_lost_rows(found, model, &self.models[0]);
        self.models.contains(found) || (self.rows && self.models.iter().any(but_for_rows))
    }

    /// What was found otherwise than at each moment: id, then and now.
    pub fn differences<'a>(&'a self, found: &'a Model) -> Vec<BTreeMap<&'a String, [Option<&'a String>; 2]>> {
        let differing = |model: &'a Model| {
            let ids = model.keys().chain(found.keys());
            let both = ids.map(|id| (id, [model.get(id), found.get(id)]));
            both.filter(|(_, [then, now])| then != now).collect()
        };
        self.models.iter().map(differing).collect()
    }

    /// Whether this damage was there before, or is what a power failure may do.
    pub fn holds(&self, damage: &Damage) -> bool {
        self.damaged || (self.rows && damage.kind.is_of_row())
    }

    /// The same, and one state more.
    pub fn with(&self, model: &Model) -> Self {
        let mut more = self.clone();
        more.models.push(model.clone());
        more
    }
}
