//! What stands in a NumPy matrix, and in the list of ids beside it.

use chronomemory::Ids;
use numpy::{PyReadonlyArray2, PyUntypedArrayMethods};
use pyo3::prelude::*;
use pyo3::types::{PyList, PyString};

use crate::enter::invalid;

/// The floats of a matrix, and how many there are in a row.
pub fn floats<'a>(py: Python<'_>, matrix: &'a PyReadonlyArray2<'_, f32>) -> PyResult<(&'a [f32], usize)> {
    let dim = matrix.shape()[1];
    match matrix.as_slice() {
        Ok(floats) => Ok((floats, dim)),
        Err(_) => Err(invalid(py, "vector", "the array is not contiguous")),
    }
}

/// The ids in a list, without a string of its own for each.
pub fn ids_in(list: &Bound<'_, PyList>) -> PyResult<Ids> {
    let mut ids = Ids::with_capacity(list.len());
    for id in list {
        ids.push(id.cast::<PyString>()?.to_str()?);
    }
    Ok(ids)
}
