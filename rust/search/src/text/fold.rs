//! Folds letters, so that differences that nobody means are gone.
//!
//! Case, accents and vowel points, compatibility forms, strokes through letters, the colour of a thumb: whoever looks for a
//! word leaves them out, or types them in another way. Marks that make another letter, as in kana or Devanagari, stay.

use caseless::Caseless;
use unicode_normalization::UnicodeNormalization;
use unicode_properties::{GeneralCategory, UnicodeGeneralCategory};

/// What is typed for letters that Unicode does not take apart.
fn plain(letter: char) -> Option<&'static str> {
    Some(match letter {
        'æ' => "ae",
        'þ' => "th",
        'œ' => "oe",
        'ƀ' | 'ɓ' => "b",
        'ȼ' => "c",
        'ð' | 'đ' | 'ɖ' | 'ɗ' => "d",
        'ɇ' | 'ɛ' => "e",
        'ƒ' => "f",
        'ǥ' | 'ɣ' => "g",
        'ħ' => "h",
        'ı' | 'ɨ' => "i",
        'ȷ' | 'ɉ' => "j",
        'ĸ' | 'ƙ' => "k",
        'ł' | 'ƚ' => "l",
        'ŋ' | 'ɲ' => "n",
        'ø' | 'ɔ' => "o",
        'ɍ' => "r",
        'ȿ' => "s",
        'ŧ' => "t",
        'ʉ' => "u",
        'ƴ' | 'ɏ' => "y",
        'ƶ' => "z",
        _ => return None,
    })
}

/// Writes a text as it is compared.
pub(super) fn fold(text: &str, out: &mut String) {
    let kept = text.nfkd().filter(|&c| !is_left_out(c));
    for c in kept.default_case_fold().nfc() {
        match plain(c) {
            Some(plain) => out.push_str(plain),
            None => out.push(c),
        }
    }
}

/// Whether a character is a small picture, or another sign that says something alone. Those that only draw lines do not.
pub(super) fn is_picture(c: char) -> bool {
    !c.is_ascii()
        && !matches!(c, '\u{2500}'..='\u{259f}' | '\u{2800}'..='\u{28ff}' | '\u{fffc}'..='\u{fffd}')
        && c.general_category() == GeneralCategory::OtherSymbol
}

/// Whether a character only says how others look. A space without width is a space.
fn is_left_out(c: char) -> bool {
    if c.is_ascii() || c == '\u{200b}' {
        return false;
    }
    is_accent(c) || (!c.is_alphanumeric() && c.general_category() == GeneralCategory::Format)
}

/// Accents, points of Hebrew and Arabic, the stroke that stretches a word, and the shape and colour of an emoji.
fn is_accent(c: char) -> bool {
    matches!(c,
        '\u{300}'..='\u{36f}' | '\u{483}'..='\u{489}'
        | '\u{591}'..='\u{5bd}' | '\u{5bf}' | '\u{5c1}'..='\u{5c2}' | '\u{5c4}'..='\u{5c5}' | '\u{5c7}'
        | '\u{610}'..='\u{61a}' | '\u{640}' | '\u{64b}'..='\u{65f}' | '\u{670}' | '\u{6d6}'..='\u{6dc}'
        | '\u{6df}'..='\u{6e4}' | '\u{6e7}'..='\u{6e8}' | '\u{6ea}'..='\u{6ed}' | '\u{898}'..='\u{89f}' | '\u{8ca}'..='\u{8ff}'
        | '\u{1ab0}'..='\u{1aff}' | '\u{1dc0}'..='\u{1dff}' | '\u{20d0}'..='\u{20ff}' | '\u{2de0}'..='\u{2dff}'
        | '\u{a66f}'..='\u{a672}' | '\u{a674}'..='\u{a67d}' | '\u{a69e}'..='\u{a69f}' | '\u{fb1e}' | '\u{fe00}'..='\u{fe0f}'
        | '\u{fe20}'..='\u{fe2f}' | '\u{1f3fb}'..='\u{1f3ff}' | '\u{e0100}'..='\u{e01ef}')
}
