//! Joins a text score, a cosine and a score of tokens into one score.
//!
//! Each is first brought to a share of what the question can reach: a text score has a natural zero; a cosine has not,
//! so it begins at the worst of its pool, and shifting or stretching all cosines changes nothing. Why these weights:
//! docs/decisions/ranking.md.

/// How many records each side puts forward; more if more are asked for.
pub const POOL_RECORDS: usize = 100;
/// Text weighs more than the vector by three fifths.
const TEXT_WEIGHT: f64 = 2.0;
const VECTOR_WEIGHT: f64 = 1.25;
/// What the three weigh where tokens are asked too: they tell more apart than both others.
const TEXT_BESIDE: f64 = 1.0;
const VECTOR_BESIDE: f64 = 0.5;
const TOKEN_WEIGHT: f64 = 3.0;

/// What scores mean for one question.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Scale {
    /// The highest text score.
    pub text_max: f64,
    /// The highest cosine.
    pub cosine_max: f64,
    /// The lowest cosine among the best [`POOL_RECORDS`].
    pub cosine_floor: f64,
    /// The highest score of tokens, and the lowest among the best [`POOL_RECORDS`].
    pub token_max: f64,
    /// See `token_max`.
    pub token_floor: f64,
}

/// The share of each score of a record in what the question can reach; none of what was not asked.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Shares {
    /// Of the text score.
    pub text: Option<f64>,
    /// Of the cosine.
    pub vector: Option<f64>,
    /// Of the score of tokens.
    pub tokens: Option<f64>,
}

impl Shares {
    /// One score from those that were asked, 0 to 1.
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
        share_above(cosine, self.cosine_floor, self.cosine_max)
    }

    /// The share of a score of tokens likewise.
    pub fn token_share(&self, score: Option<f64>) -> f64 {
        share_above(score, self.token_floor, self.token_max)
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

/// One score from a text score and a cosine, 0 to 1.
pub fn fused(text: f64, cosine: Option<f64>, scale: &Scale) -> f64 {
    let shares = Shares {
        text: Some(scale.text_share(text)),
        vector: Some(scale.vector_share(cosine)),
        tokens: None,
    };
    shares.fused()
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

    #[test]
    fn tokens_weigh_more_than_both_others() {
        let all = Shares {
            text: Some(1.0),
            vector: Some(1.0),
            tokens: Some(SCALE.token_share(Some(0.7))),
        };
        assert!((all.fused() - 3.0 / 4.5).abs() < 1e-12);
        let no_vector = Shares { vector: None, ..all };
        assert!((no_vector.fused() - 2.5 / 4.0).abs() < 1e-12);
        assert_eq!(SCALE.token_share(None), 0.0);
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
