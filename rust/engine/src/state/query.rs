//! The query with which a caller looks for records.

use std::sync::Arc;

use super::spelling::spelled;
use crate::scope::Viewer;

/// What a caller looks for.
#[derive(Clone, Debug, Default)]
pub struct Query {
    /// Who asks.
    pub viewer: Arc<Viewer>,
    /// Only this kind.
    pub kind: Option<String>,
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
    let kind = query.kind.as_deref().map(spelled);
    let status = query.status.as_deref().map(spelled);
    let faces = query.faces || kind.is_some();
    move |of_kind, of_status, of_face| {
        (faces || !of_face)
            && kind.as_ref().is_none_or(|kind| kind == of_kind)
            && status.as_ref().is_none_or(|status| status == of_status)
    }
}
