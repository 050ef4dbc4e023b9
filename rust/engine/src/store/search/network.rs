//! Walks a network of records, as of every write before the question.

use std::sync::{PoisonError, RwLock};

use crate::store::View;
use chronolog::error::{Error, Result};
use chronolog::event::faces::{FaceIndex, Network, index_named, network_named};
use chronolog::memory;
use chronolog::scope::Viewer;
use chronomemory_state::index::Indexes;
use chronomemory_state::network::{Net, Steps};
use chronomemory_state::state::State;

/// What an index takes for a record while it is made, and more.
const ENTRY_BYTES: usize = 512;

impl View {
    /// The same as it was then.
    ///
    /// # Errors
    /// As [`Store::walk`](crate::store::Store::walk).
    pub fn walk<T>(
        &self,
        network: &str,
        viewer: &Viewer,
        steps: &Steps,
        ask: impl FnOnce(&Net<'_>) -> Result<T>,
    ) -> Result<T> {
        walk(&self.indexes, &self.state, network, viewer, steps, ask)
    }
}

/// Asks something of a declared network, as somebody sees it.
///
/// # Errors
/// As [`Store::walk`](crate::store::Store::walk).
pub(in crate::store) fn walk<T>(
    indexes: &RwLock<Indexes>,
    state: &State,
    name: &str,
    viewer: &Viewer,
    steps: &Steps,
    ask: impl FnOnce(&Net<'_>) -> Result<T>,
) -> Result<T> {
    let network = network_named(name)
        .ok_or_else(|| Error::must("network", "be one that a face declares", format!("{name:?}")))?;
    let declared = indexes_of(network)?;
    let known = indexes.read().unwrap_or_else(PoisonError::into_inner);
    let is_fresh = declared.iter().all(|index| known.fresh(index.name, state).is_some());
    let known = if is_fresh {
        known
    } else {
        drop(known);
        follow(indexes, state, declared)?;
        indexes.read().unwrap_or_else(PoisonError::into_inner)
    };
    let of = |index: &'static FaceIndex| known.known(index).ok_or(Error::Closed);
    let [by_source, by_target, ends] = declared;
    let net = Net::new(
        state,
        network,
        [of(by_source)?, of(by_target)?, of(ends)?],
        viewer,
        steps,
    );
    ask(&net)
}

fn indexes_of(network: &Network) -> Result<[&'static FaceIndex; 3]> {
    let named = |name: &str| index_named(name).ok_or_else(|| Error::must("index", "be declared", name));
    Ok([
        named(network.by_source)?,
        named(network.by_target)?,
        named(network.ends)?,
    ])
}

/// Lets indexes take in what changed.
fn follow(indexes: &RwLock<Indexes>, state: &State, declared: [&'static FaceIndex; 3]) -> Result<()> {
    let mut indexes = indexes.write().unwrap_or_else(PoisonError::into_inner);
    for index in declared {
        let index = indexes.of(index);
        memory::could_have(index.lacks(state) * ENTRY_BYTES)?;
        index.follow(state);
    }
    Ok(())
}
