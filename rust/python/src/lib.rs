//! What does Python see of the engine? The export list of `chronomemory._core`.

mod change;
mod engine;
mod enter;
mod flusher;
mod handle;
mod object;
mod record;
mod report;
mod value;
mod view;
mod words;

use pyo3::prelude::*;

#[pymodule(gil_used = false)]
mod _core {
    #[pymodule_export]
    use crate::engine::Engine;
    #[pymodule_export]
    use crate::view::View;
    #[pymodule_export]
    use crate::words::{canonical_json, event_hash, parse_json, verify_path};

    #[pymodule_export]
    #[allow(non_upper_case_globals)]
    const __version__: &str = env!("CARGO_PKG_VERSION");
}
