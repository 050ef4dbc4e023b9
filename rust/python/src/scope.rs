//! The scopes for which Python asks and writes, and the moment at which it does.

use std::sync::Arc;

use chronomemory::{Scope, Viewer};
use pyo3::prelude::*;

use crate::engine::Engine;
use crate::enter::to_python;
use crate::names::{Names, digits_of, names_of, sees_wider};

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

    /// The same store for one without names who means all who use it.
    fn public(&self) -> Self {
        let mut own = self.for_viewer(Viewer::default());
        own.author.is_public = true;
        own
    }

    /// The same store for one who sees everything and acts for whom this is.
    fn acting(&self) -> Self {
        let mut own = self.for_viewer(Viewer::Everyone);
        own.author.acts_for = Some(Arc::clone(&self.viewer));
        own.author.is_public = self.author.is_public;
        own
    }

    /// Says that every write must come with a name of a level, or need not: whether that is new.
    fn require(&self, py: Python<'_>, level: &str, wanted: bool) -> PyResult<bool> {
        self.run(py, |engine| {
            engine.change(|store, now| store.require(level, wanted, now))
        })
    }

    /// The same store for one who sees everything.
    fn everyone(&self) -> Self {
        self.for_viewer(Viewer::Everyone)
    }

    /// The same store for one who also sees what has expired.
    fn with_expired(&self) -> Self {
        let mut own = self.for_viewer(Viewer::clone(&self.viewer).with_expired());
        own.author = self.author.clone();
        own
    }

    /// The ids of one's own records that have expired, by now or by a moment in microseconds since 1970.
    #[pyo3(signature = (now=None))]
    fn due(&self, py: Python<'_>, now: Option<i64>) -> PyResult<Vec<String>> {
        self.run(py, |engine| engine.due(&self.viewer, now))
    }

    /// Deletes them; gives their ids.
    #[pyo3(signature = (now=None))]
    fn sweep(&self, py: Python<'_>, now: Option<i64>) -> PyResult<Vec<String>> {
        self.run(py, |engine| engine.sweep(&self.author, now))
    }

    /// The moment that expiries are held against, in microseconds since 1970.
    fn moment(&self) -> i64 {
        self.engine.moment()
    }

    /// Holds expiries against this moment instead of the clock, for all who share the store in this process.
    #[pyo3(signature = (moment=None))]
    fn set_moment(&self, moment: Option<i64>) {
        self.engine.set_moment(moment);
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
            Ok(ids
                .iter()
                .map(|id| store.own_scope(&self.viewer, id).is_some())
                .collect())
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

    /// Who asks: user, agent and session; None for everyone.
    fn scope_names(&self) -> Option<Names> {
        names_of(&self.viewer)
    }

    /// Tells what is seen now from what was seen before.
    fn seen_version(&self, py: Python<'_>) -> PyResult<(u64, i64)> {
        self.read(py, |store| Ok(store.seen_version(&self.viewer)))
    }

    /// Whether what is wider is seen too.
    fn sees_wider(&self) -> bool {
        sees_wider(&self.viewer)
    }
}
