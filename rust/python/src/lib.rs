//! The export list of `chronomemory._core`: all that Python sees of the engine.

mod asked;
mod blocks;
mod change;
mod deltas;
mod door;
mod draft_buffer;
mod edition;
mod engine;
mod enter;
mod event;
mod find;
mod fork;
mod matrix;
mod names;
mod network;
mod object;
mod optimistic;
mod page;
mod record;
mod refusal;
mod report;
mod rows;
mod scope;
mod search;
mod select;
mod shape;
mod shared_words;
mod sharing;
mod terms;
mod told;
mod upkeep;
mod value;
mod vectors;
mod view;
mod words;

use pyo3::pymodule;

/// Memory that cannot be had is an exception in Python, wherever Rust lets it be one.
#[global_allocator]
static MEMORY: chronomemory::Reserved = chronomemory::Reserved;

#[pymodule(gil_used = false)]
mod _core {
    use pyo3::prelude::*;

    #[pymodule_export]
    use crate::blocks::fit_budget;
    #[pymodule_export]
    use crate::deltas::Deltas;
    #[pymodule_export]
    use crate::door::Door;
    #[pymodule_export]
    use crate::edition::Edition;
    #[pymodule_export]
    use crate::engine::Engine;
    #[pymodule_export]
    use crate::event::WalEvent;
    #[pymodule_export]
    use crate::page::Walk;
    #[pymodule_export]
    use crate::search::{question_words, text_words};
    #[pymodule_export]
    use crate::told::Told;
    #[pymodule_export]
    use crate::vectors::token_rows;
    #[pymodule_export]
    use crate::view::View;
    #[pymodule_export]
    use crate::words::{canonical_json, event_hash, file_holds, indented_json, parse_json, store_folder, verify_path};

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        crate::fork::register(module)
    }

    #[pymodule_export]
    #[allow(non_upper_case_globals)]
    const __version__: &str = env!("CARGO_PKG_VERSION");
}
