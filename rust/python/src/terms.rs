//! The terms on which Python writes, in the words of the engine.

use std::time::Duration;

use chronomemory::{Durability, Salting, WriterTerms};
use pyo3::prelude::*;

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
