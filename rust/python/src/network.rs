//! The walks over networks of records, for Python.

use chronomemory::{Direction, Error, Net, Steps, islands, reach, routes};
use pyo3::prelude::*;

use crate::engine::Engine;
use crate::enter::{bad_choice, enter};
use crate::view::View;

/// Ends with the number of steps to each, and what joins them.
type Reached = (Vec<(String, u32)>, Vec<String>);

/// Which steps are taken, as Python says it.
#[derive(FromPyObject)]
struct WantedSteps {
    #[pyo3(item)]
    direction: String,
    #[pyo3(item)]
    kinds: Option<Vec<String>>,
    #[pyo3(item)]
    end_kinds: Option<Vec<String>>,
}

impl WantedSteps {
    fn steps(self, py: Python<'_>) -> PyResult<Steps> {
        let spelled = |kinds: Vec<String>| {
            let spell = |kind: String| {
                let mut out = Vec::new();
                chronomemory::write_string(&kind, &mut out);
                out
            };
            kinds.into_iter().map(spell).collect()
        };
        Ok(Steps {
            direction: match &*self.direction {
                "out" => Direction::Out,
                "in" => Direction::In,
                "both" => Direction::Both,
                other => return Err(bad_choice(py, "direction", other, "one of out, in, both")),
            },
            kinds: self.kinds.map(spelled),
            end_kinds: self.end_kinds.map(spelled),
        })
    }
}

fn ask_reach(net: &Net<'_>, starts: &[String], hops: u32, joints: bool) -> Reached {
    let starts: Vec<u32> = starts.iter().filter_map(|name| net.end(name)).collect();
    let reached = reach(net, &starts, hops, joints);
    let ends = reached.ends.into_iter().map(|(end, steps)| (net.name(end), steps));
    (
        ends.collect(),
        reached.joints.into_iter().map(|joint| net.id(joint)).collect(),
    )
}

fn ask_routes(net: &Net<'_>, source: &str, target: &str, hops: u32, limit: usize) -> Result<Vec<Vec<String>>, Error> {
    let (Some(source), Some(target)) = (net.end(source), net.end(target)) else {
        return Ok(Vec::new());
    };
    let found = routes(net, source, target, hops, limit)?;
    let named = |route: Vec<u32>| route.into_iter().map(|joint| net.id(joint)).collect();
    Ok(found.into_iter().map(named).collect())
}

fn ask_islands(net: &Net<'_>) -> Vec<Vec<String>> {
    let named = |ends: Vec<u32>| ends.into_iter().map(|end| net.name(end)).collect();
    islands(net).into_iter().map(named).collect()
}

#[pymethods]
impl Engine {
    /// The ends of a declared network within so many steps of some, each with the number of steps to it, and the ids of what
    /// joins them, if that is asked for.
    #[pyo3(signature = (network, starts, hops, wanted, *, joints=false))]
    #[allow(clippy::needless_pass_by_value)] // what is extracted is owned
    fn reach(
        &self,
        py: Python<'_>,
        network: &str,
        starts: Vec<String>,
        hops: u32,
        wanted: WantedSteps,
        joints: bool,
    ) -> PyResult<Reached> {
        let (steps, viewer) = (wanted.steps(py)?, &self.viewer);
        self.read(py, |store| {
            store.walk(network, viewer, &steps, |net| Ok(ask_reach(net, &starts, hops, joints)))
        })
    }

    /// The shortest ways between two ends, each as the ids of what joins one to the next.
    #[pyo3(signature = (network, source, target, wanted, *, hops, limit))]
    #[allow(clippy::too_many_arguments)] // the signature is the public one
    fn routes(
        &self,
        py: Python<'_>,
        network: &str,
        source: &str,
        target: &str,
        wanted: WantedSteps,
        hops: u32,
        limit: usize,
    ) -> PyResult<Vec<Vec<String>>> {
        let (steps, viewer) = (wanted.steps(py)?, &self.viewer);
        self.read(py, |store| {
            store.walk(network, viewer, &steps, |net| {
                ask_routes(net, source, target, hops, limit)
            })
        })
    }

    /// The ends in groups that hang together.
    fn islands(&self, py: Python<'_>, network: &str, wanted: WantedSteps) -> PyResult<Vec<Vec<String>>> {
        let (steps, viewer) = (wanted.steps(py)?, &self.viewer);
        self.read(py, |store| {
            store.walk(network, viewer, &steps, |net| Ok(ask_islands(net)))
        })
    }
}

#[pymethods]
impl View {
    /// The same as it was then.
    #[pyo3(signature = (network, starts, hops, wanted, *, joints=false))]
    #[allow(clippy::needless_pass_by_value)] // what is extracted is owned
    fn reach(
        &self,
        py: Python<'_>,
        network: &str,
        starts: Vec<String>,
        hops: u32,
        wanted: WantedSteps,
        joints: bool,
    ) -> PyResult<Reached> {
        let steps = wanted.steps(py)?;
        let ask = |net: &Net<'_>| Ok(ask_reach(net, &starts, hops, joints));
        enter(py, || self.past()?.walk(network, &self.viewer, &steps, ask))
    }

    /// The same as it was then.
    #[pyo3(signature = (network, source, target, wanted, *, hops, limit))]
    #[allow(clippy::too_many_arguments)] // the signature is the public one
    fn routes(
        &self,
        py: Python<'_>,
        network: &str,
        source: &str,
        target: &str,
        wanted: WantedSteps,
        hops: u32,
        limit: usize,
    ) -> PyResult<Vec<Vec<String>>> {
        let steps = wanted.steps(py)?;
        let ask = |net: &Net<'_>| ask_routes(net, source, target, hops, limit);
        enter(py, || self.past()?.walk(network, &self.viewer, &steps, ask))
    }

    /// The same as it was then.
    fn islands(&self, py: Python<'_>, network: &str, wanted: WantedSteps) -> PyResult<Vec<Vec<String>>> {
        let steps = wanted.steps(py)?;
        enter(py, || {
            self.past()?
                .walk(network, &self.viewer, &steps, |net| Ok(ask_islands(net)))
        })
    }
}
