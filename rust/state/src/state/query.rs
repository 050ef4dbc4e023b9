//! The query with which a caller looks for records.

use std::sync::Arc;

use super::spelling::spelled;
use chronolog::scope::Viewer;

/// What a caller looks for.
#[derive(Clone, Debug, Default)]
pub struct Query {
    /// Who asks.
    pub viewer: Arc<Viewer>,
    /// Only these kinds.
    pub kinds: Option<Vec<String>>,
    /// Not these kinds, unless `kinds` names them.
    pub without_kinds: Option<Vec<String>>,
    /// Only this status.
    pub status: Option<String>,
    /// At least this confidence.
    pub min_confidence: f64,
    /// At most so many.
    pub limit: Option<usize>,
    /// The faces' records too; a kind that is named includes them anyway.
    pub faces: bool,
}

/// Whether a query asks for records of a kind and status, as these stand between quotes, and of a face or not.
pub(super) fn wanted(query: &Query) -> impl Fn(&[u8], &[u8], bool) -> bool + use<> {
    let spell = |kinds: &Vec<String>| -> Vec<_> { kinds.iter().map(|kind| spelled(kind)).collect() };
    let kinds = query.kinds.as_ref().map(spell);
    let without = query.without_kinds.as_ref().filter(|_| kinds.is_none()).map(spell);
    let status = query.status.as_deref().map(spelled);
    let faces = query.faces || kinds.is_some();
    move |of_kind, of_status, of_face| {
        (faces || !of_face)
            && kinds
                .as_ref()
                .is_none_or(|some| some.iter().any(|kind| kind == of_kind))
            && !without
                .as_ref()
                .is_some_and(|some| some.iter().any(|kind| kind == of_kind))
            && status.as_ref().is_none_or(|status| status == of_status)
    }
}
