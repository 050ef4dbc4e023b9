//! The terms of writing for each of those who share a store, and how its log is.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use chronomemory::{Durability, Salting, WriterTerms};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::engine::Engine;
use crate::enter::bad_choice;

/// What Python asks of its writes.
pub fn terms_of(
    py: Python<'_>,
    recursion_depth: i64,
    durability: &str,
    lock_timeout: f64,
    salt: &str,
) -> PyResult<WriterTerms> {
    if recursion_depth < 0 {
        let given = recursion_depth.to_string();
        return Err(bad_choice(py, "recursion_depth", &given, "at least 0"));
    }
    Ok(WriterTerms {
        recursion_depth,
        durability: match durability {
            "full" => Durability::Full,
            "normal" => Durability::Normal,
            "off" => Durability::Off,
            other => return Err(bad_choice(py, "durability", other, "one of full, normal, off")),
        },
        lock_timeout: Duration::try_from_secs_f64(lock_timeout)
            .map_err(|_| bad_choice(py, "lock_timeout", &lock_timeout.to_string(), "at least 0 seconds"))?,
        salt: match salt {
            "always" => Salting::Always,
            "scope" => Salting::Scoped,
            "never" => Salting::Never,
            other => return Err(bad_choice(py, "salt", other, "one of always, scope, never")),
        },
    })
}

#[pymethods]
impl Engine {
    /// The same store for one who writes on other terms.
    #[pyo3(signature = (*, recursion_depth, durability, lock_timeout, salt))]
    fn on_terms(
        &self,
        py: Python<'_>,
        recursion_depth: i64,
        durability: &str,
        lock_timeout: f64,
        salt: &str,
    ) -> PyResult<Self> {
        let terms = terms_of(py, recursion_depth, durability, lock_timeout, salt)?;
        Ok(Self {
            engine: Arc::new(self.engine.on_terms(terms)),
            author: self.author.clone(),
            viewer: Arc::clone(&self.viewer),
            depth: recursion_depth,
            spare: Mutex::default(),
            searches: Arc::clone(&self.searches),
        })
    }

    /// How the log is, as far as memory tells.
    fn pulse<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let pulse = self.run(py, chronomemory::Engine::pulse)?;
        let dict = PyDict::new(py);
        dict.set_item("commits", pulse.appended.commits)?;
        dict.set_item("events", pulse.appended.events)?;
        dict.set_item("bytes", pulse.appended.bytes)?;
        dict.set_item("syncs", pulse.syncs)?;
        dict.set_item("lock_waits", pulse.lock_waits)?;
        dict.set_item("searches", self.searches.load(Ordering::Relaxed))?;
        dict.set_item("unsynced_bytes", pulse.unsynced_bytes)?;
        dict.set_item("synced_until_us", pulse.synced_until)?;
        dict.set_item("poisoned", pulse.poisoned)?;
        Ok(dict)
    }
}
