//! The export list of `chronomemory._core`: all that Python sees of the engine. `_core.pyi` documents it.

// The arguments of a method are those of its Python signature.
#![allow(clippy::too_many_arguments, clippy::type_complexity)]

/// Builds a dict of values, `dict!(py; key: value)`, or of fields of a struct, `dict!(py, report; field; key: value)`.
macro_rules! dict {
    ($py:expr, $from:expr; $($field:ident),*; $($key:ident: $value:expr),* $(,)?) => {{
        let dict = dict!($py; $($key: $value),*);
        $(dict.set_item(stringify!($field), &$from.$field)?;)*
        dict
    }};
    ($py:expr, $from:expr; $($field:ident),*) => {
        dict!($py, $from; $($field),*;)
    };
    ($py:expr; $($key:ident: $value:expr),* $(,)?) => {{
        let dict = pyo3::types::PyDict::new($py);
        $(dict.set_item(stringify!($key), $value)?;)*
        dict
    }};
}

/// Builds a struct of the items of a request that have the names of its fields, and of other values.
macro_rules! from_items {
    ($type:ident, $request:expr; $($field:ident),*; $($key:ident: $value:expr),* $(,)?) => {
        $type { $($field: $crate::requests::item($request, stringify!($field))?,)* $($key: $value,)* }
    };
}

mod blocks;
mod boundary;
mod draft;
mod engine;
mod functions;
mod json;
mod packed;
mod reader;
mod requests;
mod tables;
mod upkeep;
mod vectors;

use pyo3::types::PyDict;
use pyo3::{Bound, PyAny, pymodule};

/// A Python object, and a dict.
type Object<'py> = Bound<'py, PyAny>;
type Dict<'py> = Bound<'py, PyDict>;

/// Makes a failed allocation an exception in Python, wherever Rust allows it.
#[global_allocator]
static MEMORY: chronomemory::Reserved = chronomemory::Reserved;

#[pymodule(gil_used = false)]
mod _core {
    #[pymodule_export]
    use crate::{
        blocks::Blocks,
        engine::{Edition, Engine, StoreBase},
        functions::{
            after_fork_in_child, after_fork_in_parent, before_fork, canonical_json, event_hash, file_holds,
            indented_json, parse_json, question_words, sha256_hex, statement_pieces, store_folder, text_words,
            verify_path,
        },
        packed::unset_attribute,
        reader::{Reader, Walk},
        tables::{TablePart, TableReader},
        upkeep::Upkeep,
        vectors::{Vectors, token_rows},
    };
    #[pymodule_export]
    #[allow(non_upper_case_globals)]
    const __version__: &str = env!("CARGO_PKG_VERSION");
    #[pymodule_export]
    const WHERE_KEYS: [&str; 20] = chronomemory::WHERE_KEYS;
}
