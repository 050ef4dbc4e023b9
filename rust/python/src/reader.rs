//! Reads records for Python, from the current state or from a past one.

use std::borrow::Cow;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use chronomemory::{
    Carried, Dated, Frozen, IndexLookup, Listing, Net, Page, PageEnd, Result, Scope, SearchHit, SeenAs, Store,
    Unchanged, View, Viewer, islands, members, reach, routes, spelled,
};
use pyo3::prelude::*;
use pyo3::types::{IntoPyDict, PyBytes};

use crate::boundary::{detached, must, to_python};
use crate::draft::record_id;
use crate::engine::Handle;
use crate::json::argument_text;
use crate::packed::{OneRecord, Records};
use crate::requests::{End, Kinds, end_of, index_key, item, listing_of, query_of, search_of, selection_of, steps_of};
use crate::{Dict, Object};

/// User, agent and session.
pub type Names = (Option<String>, Option<String>, Option<String>);

/// A record, its score and the parts of it.
type Hit<'py> = (Object<'py>, f64, Option<Dict<'py>>);

/// What is seen, whether wider scopes are, the names of the scope, and whether it has records.
type Scopes = ((u64, i64), bool, Option<Names>, bool);

/// Where records are read from.
pub enum Source {
    Now(Handle),
    Then(Box<View>, Unchanged),
}

/// Reads records as one viewer sees them.
#[pyclass(frozen, subclass, module = "chronomemory._core")]
pub struct Reader {
    viewer: Arc<Viewer>,
    source: Source,
}

/// Evaluates an expression on the current state, which catches up with other processes first, or on the past one.
macro_rules! read {
    ($self:expr, $py:expr, $source:ident => $ask:expr) => {
        match &$self.source {
            Source::Now(handle) => handle.read($py, |$source| $ask),
            Source::Then(view, since) => detached($py, || {
                // What was erased since is not shown.
                since.check(view.seq())?;
                let $source = view;
                let answer = $ask;
                view.state().slots.check()?;
                answer
            }),
        }
    };
}

impl Reader {
    pub fn new(viewer: &Arc<Viewer>, source: Source) -> Self {
        let viewer = Arc::clone(viewer);
        Self { viewer, source }
    }
}

#[pymethods]
impl Reader {
    fn last_seq(&self, py: Python<'_>) -> PyResult<u64> {
        match &self.source {
            Source::Now(handle) => handle.read(py, |store| Ok(store.last_seq())),
            Source::Then(view, _) => Ok(view.seq()),
        }
    }

    fn scope_digits(&self) -> String {
        match self.viewer.who() {
            Viewer::Named { scope, .. } => scope.digits(),
            _ => String::new(),
        }
    }

    fn scope_names(&self) -> Option<Names> {
        match self.viewer.who() {
            Viewer::Named { scope, .. } => Some(names_of(scope)),
            _ => None,
        }
    }

    fn sees_wider(&self) -> bool {
        !matches!(self.viewer.who(), Viewer::Named { shared: false, .. })
    }

    fn is_known(&self, py: Python<'_>) -> PyResult<bool> {
        read!(self, py, source => Ok(source.state().scopes().knows(&self.viewer)))
    }

    pub(crate) fn get<'py>(&self, py: Python<'py>, id: &Object<'py>) -> PyResult<Option<Object<'py>>> {
        let id = record_id(id)?;
        let id = argument_text(&id, "id")?;
        let found = read!(self, py, source => Ok(source.state().dated(&self.viewer, id).map(OneRecord::of)))?;
        found.map(|one| one.into_python(py)).transpose()
    }

    fn get_many<'py>(&self, py: Python<'py>, ids: Vec<String>) -> PyResult<Vec<Option<Object<'py>>>> {
        let found = read!(self, py, source => {
            Ok(ids.iter().map(|id| source.state().dated(&self.viewer, id).map(OneRecord::of)).collect())
        });
        OneRecord::all_into_python(found?, py)
    }

    #[pyo3(signature = (*, kind=None, status=Some("active".to_owned()), min_confidence=0.0, limit=None, faces=false), text_signature = "($self, *, kind=None, status='active', min_confidence=0.0, limit=None, faces=False)")]
    fn query<'py>(
        &self,
        py: Python<'py>,
        kind: Option<Kinds>,
        status: Option<String>,
        min_confidence: f64,
        limit: Option<usize>,
        faces: bool,
    ) -> PyResult<Vec<Object<'py>>> {
        let query = query_of(&self.viewer, kind, status, min_confidence, limit, faces);
        read!(self, py, source => Records::of(&query.dated(source.state())?))?.into_python(py)
    }

    fn export<'py>(&self, py: Python<'py>, request: &Dict<'py>) -> PyResult<Vec<Dict<'py>>> {
        let (query, condition) = selection_of(request, &self.viewer)?;
        let listing = Listing {
            query,
            ..Listing::default()
        };
        let found = match &condition {
            None => read!(self, py, source => Records::of(&listing.query.dated(source.state())?)),
            condition => read!(self, py, source => Records::of(&source.page(&listing, condition.as_ref())?.records)),
        };
        found?.into_dicts(py)
    }

    #[pyo3(signature = (*, kind=None, status=Some("active".to_owned()), faces=false), text_signature = "($self, *, kind=None, status='active', faces=False)")]
    fn count(&self, py: Python<'_>, kind: Option<Kinds>, status: Option<String>, faces: bool) -> PyResult<u64> {
        let query = query_of(&self.viewer, kind, status, 0.0, None, faces);
        read!(self, py, source => Ok(query.count(source.state())))
    }

    fn page<'py>(&self, py: Python<'py>, request: &Dict<'py>) -> PyResult<(Vec<Object<'py>>, Option<End>, String)> {
        let (listing, condition) = listing_of(request, &self.viewer)?;
        let (found, end, plan) = read!(self, py, source => copied(source.page(&listing, condition.as_ref())?))?;
        Ok((found.into_python(py)?, end.map(end_of), plan))
    }

    #[pyo3(signature = (index, key, *, after=None, limit, reverse=false))]
    fn find<'py>(
        &self,
        py: Python<'py>,
        index: &str,
        key: &Object<'py>,
        after: Option<Object<'py>>,
        limit: &Object<'py>,
        reverse: bool,
    ) -> PyResult<Vec<Object<'py>>> {
        let (key, after) = index_key(key, after)?;
        let whole = limit.extract();
        let lookup = IndexLookup {
            viewer: &self.viewer,
            key: &key,
            after: after.as_ref(),
            limit: whole.map_err(|_| must("limit", "be a whole number of at least 0", limit))?,
            reverse,
        };
        read!(self, py, source => Records::of(&source.find(index, &lookup)?))?.into_python(py)
    }

    fn search<'py>(&self, py: Python<'py>, request: &Dict<'py>, explain: bool) -> PyResult<(Vec<Hit<'py>>, Scopes)> {
        let search = search_of(request, &self.viewer)?;
        let (version, known, hits) = match &self.source {
            Source::Now(handle) => handle.counted().run(py, |engine| {
                let seen = |store: &Store| {
                    let state = store.state();
                    Ok((
                        state.scopes().seen_version(&self.viewer),
                        state.scopes().knows(&self.viewer),
                    ))
                };
                let (version, known) = engine.read(seen)?;
                Ok((version, known, engine.search(&search)?))
            }),
            Source::Then(view, since) => detached(py, || {
                since.check(view.seq())?;
                let known = view.state().scopes().knows(&self.viewer);
                let hits = view.search(&search)?;
                view.state().slots.check()?;
                Ok(((view.seq(), 0), known, hits))
            }),
        }?;
        let asker = (version, self.sees_wider(), self.scope_names(), known);
        let hits = hits.into_iter().map(|hit| {
            let why = explain.then(|| explained(py, &hit)).transpose()?;
            let (record, moments) = (&*hit.record, hit.moments);
            let found = OneRecord::of(Dated {
                record: Cow::Borrowed(record),
                moments,
            });
            Ok((found.into_python(py)?, hit.score, why))
        });
        Ok((hits.collect::<PyResult<_>>()?, asker))
    }

    fn reach(&self, py: Python<'_>, network: &str, request: &Dict<'_>) -> PyResult<(Vec<(String, u32)>, Vec<String>)> {
        let starts: Vec<String> = item(request, "starts")?;
        let (hops, joints): (u32, bool) = (item(request, "hops")?, item(request, "joints")?);
        self.walk_network(py, network, request, |net| {
            let starts: Vec<u32> = starts.iter().filter_map(|name| net.end(name)).collect();
            let reached = reach(net, &starts, hops, joints);
            let ends = reached.ends.into_iter().map(|(end, steps)| (net.name(end), steps));
            let joints = reached.joints.into_iter().map(|joint| net.id(joint));
            Ok((ends.collect(), joints.collect()))
        })
    }

    fn routes(&self, py: Python<'_>, network: &str, request: &Dict<'_>) -> PyResult<Vec<Vec<String>>> {
        let (source, target): (String, String) = (item(request, "source")?, item(request, "target")?);
        let (hops, limit): (u32, usize) = (item(request, "hops")?, item(request, "limit")?);
        self.walk_network(py, network, request, |net| {
            let (Some(source), Some(target)) = (net.end(&source), net.end(&target)) else {
                return Ok(Vec::new());
            };
            let named = |route: Vec<u32>| route.into_iter().map(|joint| net.id(joint)).collect();
            let found = routes(net, source, target, hops, limit)?;
            Ok(found.into_iter().map(named).collect())
        })
    }

    fn islands(&self, py: Python<'_>, network: &str, request: &Dict<'_>) -> PyResult<Vec<Vec<String>>> {
        self.walk_network(py, network, request, |net| {
            let named = |ends: Vec<u32>| ends.into_iter().map(|end| net.name(end)).collect();
            Ok(islands(net).into_iter().map(named).collect())
        })
    }
}

impl Reader {
    fn walk_network<T: Send>(
        &self,
        py: Python<'_>,
        network: &str,
        request: &Dict<'_>,
        mut ask: impl FnMut(&Net<'_>) -> Result<T> + Send,
    ) -> PyResult<T> {
        let steps = steps_of(request)?;
        read!(self, py, source => source.walk(network, &self.viewer, &steps, &mut ask))
    }
}

pub fn names_of(scope: &Scope) -> Names {
    let [user, agent, session] = scope.names().map(|name| name.map(str::to_owned));
    (user, agent, session)
}

fn copied(page: Page<'_>) -> Result<(Records, Option<PageEnd>, String)> {
    let plan = page.plan.map(|plan| plan.to_string()).unwrap_or_default();
    Ok((Records::of(&page.records)?, page.end, plan))
}

fn explained<'py>(py: Python<'py>, hit: &SearchHit) -> PyResult<Dict<'py>> {
    let (shares, lift) = (&hit.shares, &hit.lift);
    Ok(dict!(py;
        text: hit.text, words: hit.words.iter().map(|(word, score)| (word, score)).into_py_dict(py)?,
        cosine: hit.cosine, tokens: hit.tokens,
        text_share: shares.text, vector_share: shares.vector, token_share: shares.tokens,
        alone: hit.alone, linked: lift.linked, linked_by: &hit.linked_by, second: lift.second,
        second_by: &hit.second_by, grouped: lift.grouped, grouped_by: &hit.grouped_by,
        timed: lift.timed, spoken: lift.spoken, score: hit.score,
    ))
}

/// Records as they were when the walk began, each made when it is asked for.
#[pyclass(frozen, module = "chronomemory._core")]
pub struct Walk {
    /// The records, and the row of the next one.
    pub rest: Mutex<Option<(Frozen, usize)>>,
    pub since: Unchanged,
    pub viewer: Arc<Viewer>,
}

impl Walk {
    fn rest(&self) -> MutexGuard<'_, Option<(Frozen, usize)>> {
        self.rest.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[pymethods]
impl Walk {
    fn __iter__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        slf
    }

    fn __next__<'py>(&self, py: Python<'py>) -> PyResult<Option<Object<'py>>> {
        // The lock is not held during the check, which may wait for a writer.
        let row = self.rest().as_ref().map(|(_, row)| *row);
        if let Some(row) = row {
            detached(py, || self.since.check_on_the_way(row))?;
        }
        let mut rest = self.rest();
        let Some((frozen, row)) = rest.as_mut() else {
            return Ok(None);
        };
        let Some(one) = frozen.dated(*row) else {
            // Releases the records that writers replaced meanwhile.
            *rest = None;
            return Ok(None);
        };
        frozen.check().map_err(|fault| to_python(py, fault))?;
        *row += 1;
        OneRecord::of(one).into_python(py).map(Some)
    }

    #[pyo3(signature = (count, *, ids, kind, prefixes, line_of))]
    fn lines_without<'py>(
        &self,
        py: Python<'py>,
        count: usize,
        ids: Vec<String>,
        kind: &str,
        prefixes: Vec<String>,
        line_of: &Object<'py>,
    ) -> PyResult<Option<Bound<'py, PyBytes>>> {
        detached(py, || self.since.check_on_the_way(0))?;
        let ids: Vec<_> = ids.iter().map(|id| spelled(id)).collect();
        let is_left_out = |record: &[u8]| {
            let text = |name: &[u8]| {
                let found = members(record).find(|(key, _)| *key == name);
                found.and_then(|(_, value)| value.strip_prefix(b"\"")?.strip_suffix(b"\""))
            };
            let id = text(b"id").unwrap_or_default();
            prefixes.iter().any(|prefix| id.starts_with(prefix.as_bytes()))
                || text(b"kind") == Some(kind.as_bytes())
                || ids.iter().any(|known| known == id)
        };
        let (mut lines, mut others) = (Vec::new(), Vec::new());
        {
            let mut rest = self.rest();
            let Some((frozen, row)) = rest.as_mut().filter(|(frozen, row)| *row < frozen.len()) else {
                return Ok(None);
            };
            let end = frozen.len().min(row.saturating_add(count));
            for one in (*row..end).filter_map(|place| frozen.dated(place)) {
                let is_own = self.viewer.sees(&Carried::of(&one.record)) == Some(SeenAs::Own);
                if is_own && !is_left_out(&one.record) && !one.add_export_line(&mut lines) {
                    others.push((lines.len(), OneRecord::of(one)));
                }
            }
            frozen.check().map_err(|fault| to_python(py, fault))?;
            *row = end;
        }
        for (place, record) in others.into_iter().rev() {
            let line: Vec<u8> = line_of.call1((record.into_python(py)?,))?.extract()?;
            lines.splice(place..place, line);
        }
        Ok(Some(PyBytes::new(py, &lines)))
    }

    fn __length_hint__(&self) -> usize {
        self.rest().as_ref().map_or(0, |(frozen, row)| frozen.len() - row)
    }

    fn close(&self) {
        *self.rest() = None;
    }
}
