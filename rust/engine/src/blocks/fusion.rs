//! How alike is a block to a query, when both meaning and words have something to say?

/// How many of the best cosines say what a low and a high one is.
pub const POOL: usize = 100;
/// Words count twice as much as meaning.
const TEXT_WEIGHT: f64 = 2.0;
const VECTOR_WEIGHT: f64 = 1.0;

/// What is high and what is low for one query.
#[derive(Clone, Copy, Debug)]
pub struct Scale {
    /// The best BM25.
    pub most_words: f64,
    /// The highest cosine of the pool, and the lowest.
    pub cosines: Option<(f64, f64)>,
}

impl Scale {
    /// Two parts words, one part meaning, each as a share of the best. A block without a vector has no cosine.
    pub fn fused(&self, cosine: Option<f64>, words: f64) -> f64 {
        let text_share = if self.most_words > 0.0 {
            (words / self.most_words).min(1.0)
        } else {
            0.0
        };
        let vector_share = match (cosine, self.cosines) {
            (Some(cosine), Some((high, low))) if cosine > 0.0 => {
                if high > low {
                    ((cosine - low) / (high - low)).clamp(0.0, 1.0)
                } else {
                    f64::from(u8::from(cosine >= high))
                }
            }
            _ => 0.0,
        };
        (TEXT_WEIGHT * text_share + VECTOR_WEIGHT * vector_share) / (TEXT_WEIGHT + VECTOR_WEIGHT)
    }
}
