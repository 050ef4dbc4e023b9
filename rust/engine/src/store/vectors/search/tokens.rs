//! Scores the records that a search may find by the tokens of its question.
//!
//! Rows of codes are rows like any others, so which of them may be found is known as for vectors. They are only read one by
//! one: of all records where these are few, or else of those that words and vectors put forward.

use super::nearby::Nearby;
use crate::store::vectors::known::Vectors;
use crate::store::vectors::records::format::Bound;
use crate::store::vectors::records::index::CHUNK_ROWS;
use crate::store::vectors::rows::check::row_bytes;
use crate::store::vectors::rows::space_cache::Ready;
use chronolog::error::{At, Error, Result};
use chronomemory_search::score::Coded;
use chronomemory_search::vector::tokens::TokenQuery;
use chronomemory_search::vector::{Cpu, TokenQuestion};
use chronomemory_state::state::State;

impl Vectors {
    /// Whether the tokens of a question can be compared with a space; nobody minds if there is none of that name.
    ///
    /// # Errors
    /// `Argument` if they cannot.
    pub fn check_tokens(&self, state: &State, tokens: &TokenQuestion) -> Result<()> {
        let known = self.known(state);
        let index = known.spaces.spaces.get(tokens.space());
        index.map_or(Ok(()), |index| check(tokens, &index.bound))
    }
}

fn check(asked: &TokenQuestion, bound: &Bound) -> Result<()> {
    let Bound { name, tokens, .. } = bound;
    if *tokens == 0 {
        return Err(Error::argument(
            "token_space",
            format!("{name:?} holds vectors, no codes of tokens"),
        ));
    }
    if asked.dim != *tokens {
        let need = format!("have {tokens} components, as those of {name:?} had");
        return Err(Error::must("query_tokens", need, asked.dim));
    }
    if asked.vectors.is_empty() {
        return Err(Error::must("query_tokens", "have at least one row", 0));
    }
    match asked.vectors.iter().find(|value| !value.is_finite()) {
        Some(odd) => Err(Error::must("query_tokens", "be finite in all components", odd)),
        None => Ok(()),
    }
}

/// The rows of codes of a search.
pub(in crate::store) struct Sayings {
    nearby: Nearby,
    ready: Ready,
    query: TokenQuery,
}

impl Nearby {
    /// Goes on with the tokens of a question.
    ///
    /// # Errors
    /// `Argument` for vectors of another dimension or that are not finite, and for a space of vectors; `Io`.
    pub fn ask_tokens(self, tokens: &TokenQuestion) -> Result<Sayings> {
        let search = self.search();
        check(tokens, &search.cache.bound)?;
        let ready = search.ready().at(&search.cache.rows_path())?;
        Ok(Sayings {
            query: TokenQuery::new(&tokens.vectors, tokens.dim, Cpu::best()),
            nearby: self,
            ready,
        })
    }
}

impl Sayings {
    /// The rows that it was made of.
    pub fn nearby(&self) -> &Nearby {
        &self.nearby
    }

    /// The slots of all records that may be found, unless these are more.
    pub fn few(&self, most: usize) -> Option<Vec<u32>> {
        let search = self.nearby.search();
        let owner = |row: u32| search.chunks[row as usize / CHUNK_ROWS].owners[row as usize % CHUNK_ROWS];
        let rows = &search.filter.rows;
        (rows.len() <= most as u64).then(|| rows.iter().map(owner).collect())
    }

    /// Whether the codes of a record are still what the log says.
    pub fn check_again(&self, slot: u32) -> bool {
        self.nearby.is_still_right(&self.ready, slot)
    }
}

impl Coded for Sayings {
    fn asked(&self) -> usize {
        self.query.len()
    }

    fn products(&self, slot: u32, products: &mut Vec<i32>) -> bool {
        let bound = &self.nearby.search().cache.bound;
        let row = self.nearby.believed(&self.ready, slot);
        let Some(bytes) = row.and_then(|row| row_bytes(self.ready.rows.bytes(), row, bound)) else {
            return false;
        };
        self.query.best(bytes, products);
        true
    }
}
