//! What does Python see of the engine? The export list of `chronomemory._core`.

mod batch;
mod blocks;
mod change;
mod desk;
mod door;
mod engine;
mod enter;
mod event;
mod find;
mod flusher;
mod handle;
mod object;
mod record;
mod report;
mod search;
mod shape;
mod speller;
mod unless;
mod upkeep;
mod value;
mod vectors;
mod view;
mod words;

use pyo3::pymodule;

/// Memory that cannot be had is an exception in Python, wherever Rust lets it be one.
#[global_allocator]
static MEMORY: chronomemory::memory::Reserved = chronomemory::memory::Reserved;

#[pymodule(gil_used = false)]
mod _core {
    use pyo3::prelude::*;
    use pyo3::types::PyDict;

    use crate::handle::{after_fork, after_fork_in_parent, before_fork};

    #[pymodule_export]
    use crate::blocks::{
        block_contradictions, block_count, block_links, block_misfits, block_record, block_records, blocks_forming,
        blocks_tagged, fit_budget, nearest_blocks, recall_blocks, records_at_once,
    };
    #[pymodule_export]
    use crate::door::Door;
    #[pymodule_export]
    use crate::engine::Engine;
    #[pymodule_export]
    use crate::event::WalEvent;
    #[pymodule_export]
    use crate::search::{question_words, text_words};
    #[pymodule_export]
    use crate::unless::{bookmark, write_unless_changed};
    #[pymodule_export]
    use crate::vectors::{attach, choose_space, detach, drop_space, embedding, matrix, nearest, spaces};
    #[pymodule_export]
    use crate::view::View;
    #[pymodule_export]
    use crate::words::{canonical_json, event_hash, parse_json, store_folder, verify_path};

    /// Children that the interpreter forks must open their stores themselves.
    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        let py = module.py();
        let hooks = PyDict::new(py);
        hooks.set_item("before", wrap_pyfunction!(before_fork, module)?)?;
        hooks.set_item("after_in_parent", wrap_pyfunction!(after_fork_in_parent, module)?)?;
        hooks.set_item("after_in_child", wrap_pyfunction!(after_fork, module)?)?;
        PyModule::import(py, "os")?.call_method("register_at_fork", (), Some(&hooks))?;
        Ok(())
    }

    #[pymodule_export]
    #[allow(non_upper_case_globals)]
    const __version__: &str = env!("CARGO_PKG_VERSION");
}
