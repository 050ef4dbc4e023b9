//! Reads what an act of blocks says, and refuses one that says something else.

use std::collections::HashSet;

use crate::json::Value;
use crate::scope::Scope;

/// The first so many blocks of an act are linked to each other.
pub const LINKED_BLOCKS: usize = 20;
/// An outcome that weighs more is none.
const HEAVIEST_OUTCOME: f64 = 1e6;

/// That blocks were shown: of what is shared, and of a scope.
pub const SHOWN: &str = "shown/1";
pub const SHOWN_IN_SCOPE: &str = "shown/2";
/// That they got an outcome, likewise.
pub const OUTCOME: &str = "outcome/1";
pub const OUTCOME_IN_SCOPE: &str = "outcome/2";

/// An act that is formed as its rule asks.
pub struct Payload<'a> {
    /// When it happened, spelled.
    pub at: &'a str,
    /// The blocks, each once.
    pub ids: Vec<&'a str>,
    /// Only records of this scope are changed; all, if there is none.
    pub scope: Option<Scope>,
    /// How many hours the clock goes on by.
    pub passed: f64,
    /// The recursion depth of records that come about.
    pub depth: i64,
    /// What happened.
    pub said: BlockAct<'a>,
}

/// What happened to the blocks.
#[derive(Clone, Copy)]
pub enum BlockAct<'a> {
    /// They were shown, in a session or in none.
    Shown { session: Option<&'a str> },
    /// They got an outcome.
    Outcome { signal: f64, weight: f64, source: &'a str },
}

impl<'a> Payload<'a> {
    /// Reads an act; `None` if it is not known, or not formed as its rule asks.
    pub fn of(payload: &'a Value) -> Option<Self> {
        let number = |name: &str| payload.get(name).and_then(Value::as_f64);
        let text = |name: &str| match payload.get(name) {
            None => Some(""),
            Some(given) => given.as_str().filter(|text| !text.is_empty()),
        };
        let act = payload.get("act")?.as_str()?;
        let said = match act {
            SHOWN | SHOWN_IN_SCOPE => BlockAct::Shown {
                session: Some(text("session")?).filter(|session| !session.is_empty()),
            },
            OUTCOME | OUTCOME_IN_SCOPE => BlockAct::Outcome {
                signal: number("signal").filter(|signal| (0.0..=1.0).contains(signal))?,
                weight: number("weight").filter(|weight| *weight > 0.0 && *weight <= HEAVIEST_OUTCOME)?,
                source: text("source")?,
            },
            _ => return None,
        };
        let named = payload.get("ids")?.as_array()?.iter();
        let mut ids = named
            .map(|id| id.as_str().filter(|id| !id.is_empty()))
            .collect::<Option<Vec<&str>>>()?;
        let mut seen = HashSet::new();
        ids.retain(|id| seen.insert(*id));
        if ids.is_empty() {
            return None;
        }
        let scope = match act {
            SHOWN_IN_SCOPE | OUTCOME_IN_SCOPE => Some(scope_of(payload.get("scope")?)?),
            _ => None,
        };
        Some(Self {
            scope,
            at: payload.get("at")?.as_str()?,
            ids,
            passed: match payload.get("passed") {
                None => 0.0,
                Some(given) => given.as_f64().filter(|hours| *hours >= 0.0)?,
            },
            depth: match payload.get("depth") {
                None => 0,
                Some(given) => given.as_i64()?,
            },
            said,
        })
    }

    /// The blocks that are linked to each other.
    pub fn linked(&self) -> &[&'a str] {
        &self.ids[..self.ids.len().min(LINKED_BLOCKS)]
    }
}

/// The scope that a value spells; one without names is none.
pub fn scope_of(value: &Value) -> Option<Scope> {
    let text = value.to_bytes();
    Scope::read(&text).filter(|_| value.as_object().is_some())
}
