//! The token vectors of a question, and the space that they are held against.

/// The space that is asked for tokens when none is named.
const TOKEN_SPACE: &str = "tokens";

/// The token vectors of a question.
#[derive(Clone, Debug, Default)]
pub struct TokenQuestion {
    /// The space that they are compared with, or `tokens`.
    pub space: Option<String>,
    /// The vectors, end to end.
    pub vectors: Vec<f32>,
    /// How many components each has.
    pub dim: usize,
}

impl TokenQuestion {
    /// The space that they are compared with.
    pub fn space(&self) -> &str {
        self.space.as_deref().unwrap_or(TOKEN_SPACE)
    }
}
