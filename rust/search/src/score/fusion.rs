//! Fuses a text score, a cosine and a token score into one score.
//!
//! Each is first scaled to 0 to 1. A text score has a natural zero. A cosine has none: its scale begins at the lowest of its
//! pool, so that shifting or stretching all cosines changes nothing. Reasons for the weights: docs/decisions/ranking.md.

/// Candidates taken from each source; more if more results are requested.
pub const POOL_RECORDS: usize = 100;
/// Weights without tokens.
const TEXT_WEIGHT: f64 = 2.0;
const VECTOR_WEIGHT: f64 = 1.25;
/// Weights with tokens, which distinguish more than both others.
const TEXT_BESIDE: f64 = 1.0;
const VECTOR_BESIDE: f64 = 0.5;
const TOKEN_WEIGHT: f64 = 3.0;

/// The ranges of the scores of one query.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Scale {
    /// The highest text score.
    pub text_max: f64,
    /// The highest cosine.
    pub cosine_max: f64,
    /// The lowest cosine among the best [`POOL_RECORDS`].
    pub cosine_floor: f64,
    /// The highest token score.
    pub token_max: f64,
    /// The lowest token score among the best [`POOL_RECORDS`].
    pub token_floor: f64,
}

/// The scores of a record scaled to 0 to 1; `None` for a source that was not used.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Shares {
    /// The text score.
    pub text: Option<f64>,
    /// The cosine.
    pub vector: Option<f64>,
    /// The token score.
    pub tokens: Option<f64>,
}

impl Shares {
    /// The weighted mean of the sources used.
    pub fn fused(&self) -> f64 {
        let weights = match self.tokens {
            None => [TEXT_WEIGHT, VECTOR_WEIGHT, 0.0],
            Some(_) => [TEXT_BESIDE, VECTOR_BESIDE, TOKEN_WEIGHT],
        };
        let (mut sum, mut all) = (0.0, 0.0);
        for (share, weight) in [self.text, self.vector, self.tokens].into_iter().zip(weights) {
            if let Some(share) = share {
                sum += weight * share;
                all += weight;
            }
        }
        sum / all
    }
}

impl Scale {
    /// The ranges of lists of records by words, by vector and by tokens, each with the best first.
    pub fn of(by_text: &[(u32, f64)], by_vector: &[(u32, f64)], by_tokens: &[(u32, f64)]) -> Self {
        let highest = |best: &[(u32, f64)]| best.first().map_or(0.0, |one| one.1);
        let lowest = |best: &[(u32, f64)]| best.iter().take(POOL_RECORDS).next_back().map_or(0.0, |one| one.1);
        Self {
            text_max: highest(by_text),
            cosine_max: highest(by_vector),
            cosine_floor: lowest(by_vector),
            token_max: highest(by_tokens),
            token_floor: lowest(by_tokens),
        }
    }

    /// Scales the scores of a record, which may lack a cosine or token codes. A negative cosine scales to 0.
    pub fn shares(&self, text: Option<f64>, cosine: Option<Option<f64>>, tokens: Option<Option<f64>>) -> Shares {
        let text_share = |text: f64| match self.text_max > 0.0 {
            true => (text / self.text_max).clamp(0.0, 1.0),
            false => 0.0,
        };
        Shares {
            text: text.map(text_share),
            vector: cosine.map(|cosine| share_above(cosine, self.cosine_floor, self.cosine_max)),
            tokens: tokens.map(|score| share_above(score, self.token_floor, self.token_max)),
        }
    }
}

fn share_above(score: Option<f64>, floor: f64, top: f64) -> f64 {
    let Some(score) = score.filter(|&score| score > 0.0) else {
        return 0.0;
    };
    let room = top - floor;
    if room > 0.0 {
        ((score - floor) / room).clamp(0.0, 1.0)
    } else {
        f64::from(u8::from(score >= top))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SCALE: Scale = Scale {
        text_max: 8.0,
        cosine_max: 0.9,
        cosine_floor: 0.4,
        token_max: 0.8,
        token_floor: 0.6,
    };

    fn fused(text: f64, cosine: Option<f64>, scale: &Scale) -> f64 {
        scale.shares(Some(text), Some(cosine), None).fused()
    }

    #[test]
    fn tokens_weigh_more_than_both_others() {
        let all = SCALE.shares(Some(8.0), Some(Some(0.9)), Some(Some(0.7)));
        assert!((all.fused() - 3.0 / 4.5).abs() < 1e-12);
        let no_vector = Shares { vector: None, ..all };
        assert!((no_vector.fused() - 2.5 / 4.0).abs() < 1e-12);
        assert_eq!(SCALE.shares(None, None, Some(None)).tokens, Some(0.0));
    }

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
        assert_eq!(scale.shares(None, Some(Some(0.9)), None).vector, Some(1.0));
        assert_eq!(scale.shares(None, Some(Some(-0.5)), None).vector, Some(0.0));
        assert_eq!(Scale::default().shares(Some(3.0), None, None).text, Some(0.0));
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
