//! Settings that the log keeps for all who use the store: indexes of fields, and names that every write must give.

use super::claims::{REQUIRING, is_required};
use crate::store::Store;
use chronolog::error::{Error, Result};
use chronolog::event::draft::Draft;
use chronolog::event::faces::SEARCH;
use chronolog::json::Value;
use chronolog::scope::LEVELS;
use chronomemory_state::condition::{FieldPath, INDEX_PREFIX, indexable};

/// A setting that a store has or has not.
pub enum Setting {
    /// An index of this field.
    Index(FieldPath),
    /// Every write must name this level of scope, given by its place in the order of the levels.
    Required(usize),
}

impl Setting {
    /// The index of a field. Errors: `Argument` for a path that cannot be indexed.
    pub fn index(path: &str) -> Result<Self> {
        let place = FieldPath::of_text(path).map_err(|why| Error::argument("path", format!("{path:?}: {why}")))?;
        if indexable(path).is_none() {
            let words = format!("{path:?} stands beside the records and not in them; there is no index of it");
            return Err(Error::argument("path", words));
        }
        Ok(Self::Index(place))
    }

    /// That writes must name a level of scope. Errors: `Argument` for what is no level.
    pub fn required(level: &str) -> Result<Self> {
        let place = LEVELS.iter().position(|known| *known == level);
        let wrong = || {
            Error::must(
                "level",
                format!("be one of {}", LEVELS.join(", ")),
                format!("{level:?}"),
            )
        };
        place.map(Self::Required).ok_or_else(wrong)
    }

    /// The paths of the fields that a store has indexes of, the oldest first.
    pub fn indexes(store: &Store) -> Result<Vec<String>> {
        store.views.declared(&store.state)
    }

    /// Whether a store has it.
    pub(super) fn is_of(&self, store: &Store) -> Result<bool> {
        match self {
            Self::Index(path) => Ok(Self::indexes(store)?.contains(&path.to_string())),
            Self::Required(place) => Ok(is_required(&store.state, *place)),
        }
    }

    /// The change that sets it, or takes it back.
    pub(super) fn draft(&self, is_wanted: bool, depth: i64) -> Result<Draft> {
        let (id, kind, key, value) = match self {
            Self::Index(path) => (
                format!("{INDEX_PREFIX}{path}"),
                "search_index",
                "path",
                path.to_string(),
            ),
            Self::Required(place) => (
                REQUIRING[*place].to_owned(),
                "search_require",
                "level",
                LEVELS[*place].to_owned(),
            ),
        };
        let mut draft = Draft::default();
        if !is_wanted {
            draft.delete(&id, Some(SEARCH))?;
            return Ok(draft);
        }
        let record = Value::object([
            ("confidence", Value::from(1.0)),
            ("data", Value::object([(key, Value::from(value))])),
            ("id", Value::from(id)),
            ("kind", Value::from(kind)),
        ]);
        draft.upsert_value(&record, depth, Some(SEARCH))?;
        Ok(draft)
    }
}
