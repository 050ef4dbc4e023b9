//! For whom does Python ask and write?

use chronomemory::{Scope, Viewer};
use pyo3::prelude::*;

use crate::engine::Engine;
use crate::enter::to_python;

/// The digits that stand for the scope of somebody in ids.
pub fn digits_of(viewer: &Viewer) -> String {
    match viewer {
        Viewer::Named { scope, .. } => scope.digits(),
        Viewer::Everyone => String::new(),
    }
}

#[pymethods]
impl Engine {
    /// The same store for one who gives names.
    #[pyo3(signature = (user=None, agent=None, session=None, *, shared=true))]
    fn scoped(
        &self,
        py: Python<'_>,
        user: Option<&str>,
        agent: Option<&str>,
        session: Option<&str>,
        shared: bool,
    ) -> PyResult<Self> {
        let scope = Scope::new([user, agent, session]).map_err(|fault| to_python(py, fault))?;
        Ok(self.for_viewer(Viewer::Named { scope, shared }))
    }

    /// The same store for one who sees everything.
    fn everyone(&self) -> Self {
        self.for_viewer(Viewer::Everyone)
    }

    /// The scopes behind this one, in their order: user, agent, session and the number of records.
    #[pyo3(signature = (after=None, *, limit))]
    #[allow(clippy::type_complexity)]
    fn scopes(
        &self,
        py: Python<'_>,
        after: Option<(Option<String>, Option<String>, Option<String>)>,
        limit: usize,
    ) -> PyResult<Vec<(Option<String>, Option<String>, Option<String>, usize)>> {
        let after =
            after.map(|(user, agent, session)| Scope::new([user.as_deref(), agent.as_deref(), session.as_deref()]));
        let after = after.transpose().map_err(|fault| to_python(py, fault))?;
        self.read(py, |store| {
            let listed = store.scopes().listed(after).take(limit);
            let told = listed.map(|(scope, records)| {
                let [user, agent, session] = scope.names().map(|name| name.map(str::to_owned));
                (user, agent, session, records)
            });
            Ok(told.collect())
        })
    }

    /// Which of these records may be changed.
    #[allow(clippy::needless_pass_by_value)] // what is extracted is owned
    fn are_own(&self, py: Python<'_>, ids: Vec<String>) -> PyResult<Vec<bool>> {
        self.read(py, |store| {
            Ok(ids.iter().map(|id| store.owns(&self.viewer, id)).collect())
        })
    }

    /// Whether anything was ever written that is one's own, as far as the state knows.
    fn is_known(&self, py: Python<'_>) -> PyResult<bool> {
        self.read(py, |store| Ok(store.knows(&self.viewer)))
    }

    /// The digits that stand for the scope in ids.
    fn scope_digits(&self) -> String {
        digits_of(&self.viewer)
    }
}
