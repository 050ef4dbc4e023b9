//! The space that an attachment goes to, and the row behind its last one.

use super::write::{free_generation, is_finite, not_finite, rows_not_to_touch};
use crate::store::vectors::known::Vectors;
use crate::store::vectors::records::format::{self, Bound, GROUP_ROWS, check_dim, check_name};
use crate::store::vectors::records::ids::Attachment;
use crate::store::vectors::records::index::Spaces;
use chronolog::error::{Error, Result};
use chronolog::event::draft::Draft;
use chronomemory_state::state::State;

impl Vectors {
    /// The space of an attachment and its next row; a new space is put into the draft.
    ///
    /// # Errors
    /// `Bound`, `Argument`, `Io`.
    pub fn bound_for(
        &self,
        state: &State,
        is_log_damaged: bool,
        attachment: &Attachment<'_>,
        depth: i64,
        draft: &mut Draft,
    ) -> Result<(Bound, u32)> {
        let known = self.known(state);
        let name = attachment.space.unwrap_or_else(|| known.spaces.choice());
        if let Some(index) = known.spaces.spaces.get(name) {
            let bound = &index.bound;
            let is_lost = bound.model.is_empty();
            let shown = if is_lost {
                "a model whose name is lost"
            } else {
                &bound.model
            };
            let model = attachment.model.unwrap_or(&bound.model);
            if is_lost && model.is_empty() {
                let reason = format!("the record that bound {name:?} is lost: name its model, and it is bound anew");
                return Err(Error::argument("model", reason));
            }
            if (model != bound.model && !is_lost) || attachment.dim != bound.dim {
                return Err(Error::Bound {
                    space: name.to_owned(),
                    model: shown.to_owned(),
                    dim: bound.dim,
                    given_model: model.to_owned(),
                    given_dim: attachment.dim,
                });
            }
            let mut bound = bound.clone();
            if attachment.tokens != bound.tokens && !is_lost {
                return Err(Error::argument("space", of_another_kind(&bound, attachment.tokens)));
            }
            if is_lost {
                bound.tokens = attachment.tokens;
                model.clone_into(&mut bound.model);
                format::write_space(draft, &bound, depth)?;
            }
            let row = index
                .rows
                .max(index.reserved())
                .max(rows_not_to_touch(&self.site, is_log_damaged, &bound)?);
            return Ok((bound, row));
        }
        check_name(name)?;
        let Spaces { spaces, dropped, .. } = &known.spaces;
        let mut others = spaces.keys().chain(dropped.keys()).filter(|other| *other != name);
        if let Some(other) = others.find(|other| other.eq_ignore_ascii_case(name)) {
            return Err(Error::argument(
                "space",
                format!("{name:?} differs from {other:?} only in case"),
            ));
        }
        let Some(model) = attachment.model.filter(|model| !model.is_empty()) else {
            return Err(Error::argument(
                "model",
                format!("the new space {name:?} needs the name of its model"),
            ));
        };
        let generation = free_generation(
            &self.site,
            is_log_damaged,
            name,
            dropped.get(name).map_or(0, |last| last + 1),
            &[],
        );
        let bound = Bound {
            name: name.to_owned(),
            model: model.to_owned(),
            dim: attachment.dim,
            generation,
            tokens: attachment.tokens,
        };
        format::write_space(draft, &bound, depth)?;
        Ok((bound, 0))
    }
}

/// What to say if rows of one kind are meant for a space of the other, or are codes of other token vectors.
fn of_another_kind(bound: &Bound, tokens: usize) -> String {
    let kind = |tokens: usize| match tokens {
        0 => "vectors".to_owned(),
        _ => format!("codes of token vectors of {tokens} components"),
    };
    format!("{:?} holds {}, not {}", bound.name, kind(bound.tokens), kind(tokens))
}

/// Whether an attachment can be meant.
///
/// # Errors
/// `Argument`, and `Invalid` for a vector that is not finite.
pub(in crate::store) fn check_attachment(attachment: &Attachment<'_>) -> Result<()> {
    check_dim(attachment.dim)?;
    if attachment.ids.is_empty() {
        return Err(Error::argument("ids", "there must be at least one"));
    }
    if attachment.ids.len().checked_mul(attachment.dim) != Some(attachment.rows.len()) {
        let rows = attachment.rows.len() / attachment.dim;
        return Err(Error::argument(
            "vector",
            format!("{} ids and {rows} vectors do not go together", attachment.ids.len()),
        ));
    }
    // More are looked at when they are copied: reading all of them twice takes longer than writing garbage.
    let mut few = attachment.rows.chunks_exact(attachment.dim).take(GROUP_ROWS);
    match few.position(|row| !is_finite(row)) {
        Some(odd) => Err(not_finite(&attachment.ids.shown(odd))),
        None => Ok(()),
    }
}
