//! Tells the engine when the interpreter forks, so that a child lets go of open stores.

use chronomemory::forked;
use pyo3::prelude::*;
use pyo3::types::PyDict;

/// The interpreter calls this before it forks. Not with the interpreter in hand: whoever opens a store has let go of it.
#[pyfunction]
fn before_fork(py: Python<'_>) {
    py.detach(forked::before_fork);
}

/// And this afterwards, in the parent.
#[pyfunction]
fn after_fork_in_parent() {
    forked::after_fork_in_parent();
}

/// And this in every child, which lets go of its parent's locks, or nobody could write after the parent was killed.
#[pyfunction]
fn after_fork(py: Python<'_>) -> PyResult<()> {
    let locks = forked::after_fork_in_child();
    let Some((&first, others)) = locks.split_first() else {
        return Ok(());
    };
    let os = PyModule::import(py, "os")?;
    // Closed first, so that there is a free descriptor even where no more can be had; nobody else is here to take it.
    os.call_method1("close", (first,))?;
    let nothing: i32 = os
        .call_method1("open", (os.getattr("devnull")?, os.getattr("O_RDONLY")?))?
        .extract()?;
    let stays_here = false;
    if nothing != first {
        os.call_method1("dup2", (nothing, first, stays_here))?;
        os.call_method1("close", (nothing,))?;
    }
    for &lock in others {
        os.call_method1("dup2", (first, lock, stays_here))?;
    }
    Ok(())
}

/// Asks the interpreter to call the three: children that it forks must open their stores themselves.
pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let py = module.py();
    let hooks = PyDict::new(py);
    hooks.set_item("before", wrap_pyfunction!(before_fork, module)?)?;
    hooks.set_item("after_in_parent", wrap_pyfunction!(after_fork_in_parent, module)?)?;
    hooks.set_item("after_in_child", wrap_pyfunction!(after_fork, module)?)?;
    PyModule::import(py, "os")?.call_method("register_at_fork", (), Some(&hooks))?;
    Ok(())
}
