//! Declares the fields by which a store looks records up, and the names that it requires.

use crate::store::Store;
use chronolog::error::{Error, Result};
use chronolog::event::draft::Draft;
use chronolog::event::faces::SEARCH;
use chronolog::json::Value;
use chronolog::scope::LEVELS;
use chronomemory_state::condition::{FieldPath, INDEX_PREFIX, MAX_INDEXES, indexable};

use super::claims::{REQUIRING, is_required};

impl Store {
    /// Declares an index of a field, for all who use the store; says whether there was none.
    ///
    /// # Errors
    /// `Argument` for a path of which there can be none, `Limit` if there are too many; `Io`, `Locked`, `Closed`, `Poisoned`.
    pub fn create_index(&mut self, path: &str, now: i64) -> Result<bool> {
        let place = field_of(path)?;
        self.with_lock(now, |store| {
            let declared = store.declared()?;
            if declared.contains(&place.to_string()) {
                return Ok(false);
            }
            if declared.len() >= MAX_INDEXES {
                return Err(Error::limit(format!("there are {MAX_INDEXES} indexes already")));
            }
            let path = place.to_string();
            let record = Value::object([
                ("confidence", Value::from(1.0)),
                ("data", Value::object([("path", Value::from(path.as_str()))])),
                ("id", Value::from(format!("{INDEX_PREFIX}{path}"))),
                ("kind", Value::from("search_index")),
            ]);
            let mut draft = Draft::default();
            draft.upsert_value(&record, store.options.recursion_depth, Some(SEARCH))?;
            store.write(&[&draft], now)?;
            store.sync_if_due(now)?;
            Ok(true)
        })
    }

    /// Takes an index back; says whether there was one.
    ///
    /// # Errors
    /// As [`Store::create_index`].
    pub fn drop_index(&mut self, path: &str, now: i64) -> Result<bool> {
        let place = field_of(path)?;
        self.with_lock(now, |store| {
            if !store.declared()?.contains(&place.to_string()) {
                return Ok(false);
            }
            let mut draft = Draft::default();
            draft.delete(&format!("{INDEX_PREFIX}{place}"), Some(SEARCH))?;
            store.write(&[&draft], now)?;
            store.sync_if_due(now)?;
            Ok(true)
        })
    }

    /// Says that every write must come with a name of a level, or that it need not; says whether that is new.
    ///
    /// # Errors
    /// `Argument` for what is no level; `Io`, `Locked`, `Closed`, `Poisoned`.
    pub fn require(&mut self, level: &str, is_wanted: bool, now: i64) -> Result<bool> {
        let Some(place) = LEVELS.iter().position(|known| *known == level) else {
            let known = LEVELS.join(", ");
            return Err(Error::must("level", format!("be one of {known}"), format!("{level:?}")));
        };
        self.with_lock(now, |store| {
            store.settle();
            if is_required(&store.state, place) == is_wanted {
                return Ok(false);
            }
            let (id, mut draft) = (REQUIRING[place], Draft::default());
            if is_wanted {
                let record = Value::object([
                    ("confidence", Value::from(1.0)),
                    ("data", Value::object([("level", Value::from(level))])),
                    ("id", Value::from(id)),
                    ("kind", Value::from("search_require")),
                ]);
                draft.upsert_value(&record, store.options.recursion_depth, Some(SEARCH))?;
            } else {
                draft.delete(id, Some(SEARCH))?;
            }
            store.write(&[&draft], now)?;
            store.sync_if_due(now)?;
            Ok(true)
        })
    }

    /// The paths that it declares indexes of, the oldest first.
    ///
    /// # Errors
    /// `OutOfMemory`.
    pub fn declared(&self) -> Result<Vec<String>> {
        self.views.declared(&self.state)
    }
}

fn field_of(path: &str) -> Result<FieldPath> {
    let place = FieldPath::of_text(path).map_err(|why| Error::argument("path", format!("{path:?}: {why}")))?;
    if indexable(path).is_none() {
        let words = format!("{path:?} stands beside the records and not in them; there is no index of it");
        return Err(Error::argument("path", words));
    }
    Ok(place)
}
