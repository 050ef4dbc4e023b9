//! How do a text score and a cosine become one score?
//!
//! Each is first brought to a share of what the question can reach: a text score has a natural zero, a cosine has not, so
//! that one begins at the worst of its pool. Nothing changes if all cosines are shifted or stretched, as they are from one
//! model to the next. Why these weights: docs/decisions/2026-11-15-fusion.md.

/// How many records each side puts forward; more if more are asked for.
pub const POOL_RECORDS: usize = 100;
/// Text weighs a third more than the vector.
const TEXT_WEIGHT: f64 = 2.0;
const VECTOR_WEIGHT: f64 = 1.5;

/// What scores mean for one question.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Scale {
    /// The highest text score.
    pub text_max: f64,
    /// The highest cosine.
    pub cosine_max: f64,
    /// The lowest cosine among the best [`POOL_RECORDS`].
    pub cosine_floor: f64,
}

impl Scale {
    /// The share of a text score, 0 to 1.
    pub fn text_share(&self, text: f64) -> f64 {
        if self.text_max > 0.0 {
            (text / self.text_max).clamp(0.0, 1.0)
        } else {
            0.0
        }
    }

    /// The share of a cosine, 0 to 1; what points away from the question has none.
    pub fn vector_share(&self, cosine: Option<f64>) -> f64 {
        let Some(cosine) = cosine.filter(|&cosine| cosine > 0.0) else {
            return 0.0;
        };
        let room = self.cosine_max - self.cosine_floor;
        if room > 0.0 {
            ((cosine - self.cosine_floor) / room).clamp(0.0, 1.0)
        } else {
            f64::from(u8::from(cosine >= self.cosine_max))
        }
    }
}

/// One score from both, 0 to 1.
pub fn fused(text: f64, cosine: Option<f64>, scale: &Scale) -> f64 {
    let sum = TEXT_WEIGHT * scale.text_share(text) + VECTOR_WEIGHT * scale.vector_share(cosine);
    sum / (TEXT_WEIGHT + VECTOR_WEIGHT)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SCALE: Scale = Scale {
        text_max: 8.0,
        cosine_max: 0.9,
        cosine_floor: 0.4,
    };

    #[test]
    fn the_best_of_both_scores_one() {
        assert_eq!(fused(8.0, Some(0.9), &SCALE), 1.0);
        assert_eq!(fused(0.0, None, &SCALE), 0.0);
        assert_eq!(fused(0.0, Some(0.4), &SCALE), 0.0);
        assert!((fused(4.0, Some(0.65), &SCALE) - 0.5).abs() < 1e-12);
    }

    #[test]
    fn a_pool_of_one_is_its_own_best() {
        let scale = Scale {
            cosine_floor: 0.9,
            ..SCALE
        };
        assert_eq!(scale.vector_share(Some(0.9)), 1.0);
        assert_eq!(scale.vector_share(Some(-0.5)), 0.0);
        assert_eq!(Scale::default().text_share(3.0), 0.0);
    }

    #[test]
    fn shifting_all_cosines_changes_nothing() {
        let shifted = Scale {
            cosine_max: 0.95,
            cosine_floor: 0.7,
            ..SCALE
        };
        let same = fused(3.0, Some(0.5), &SCALE) - fused(3.0, Some(0.75), &shifted);
        assert!(same.abs() < 1e-12);
    }
}
