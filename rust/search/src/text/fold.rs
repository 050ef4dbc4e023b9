//! Folds letters, so that differences that nobody means are gone.
//!
//! Case, accents and vowel points, compatibility forms, strokes through letters, the colour of a thumb: whoever looks for a
//! word leaves them out, or types them in another way. Marks that make another letter, as in kana or Devanagari, stay.

use caseless::Caseless;
use unicode_normalization::UnicodeNormalization;
use unicode_properties::{GeneralCategory, UnicodeGeneralCategory};

/// Letters that Unicode does not take apart, and how people write them who do not have them.
const PLAIN: [(char, &str); 35] = [
    ('æ', "ae"),
    ('ð', "d"),
    ('ø', "o"),
    ('þ', "th"),
    ('đ', "d"),
    ('ħ', "h"),
    ('ı', "i"),
    ('ĸ', "k"),
    ('ł', "l"),
    ('ŋ', "n"),
    ('œ', "oe"),
    ('ŧ', "t"),
    ('ƀ', "b"),
    ('ƒ', "f"),
    ('ƙ', "k"),
    ('ƚ', "l"),
    ('ƴ', "y"),
    ('ƶ', "z"),
    ('ǥ', "g"),
    ('ȷ', "j"),
    ('ȼ', "c"),
    ('ȿ', "s"),
    ('ɇ', "e"),
    ('ɉ', "j"),
    ('ɍ', "r"),
    ('ɏ', "y"),
    ('ɓ', "b"),
    ('ɖ', "d"),
    ('ɗ', "d"),
    ('ɛ', "e"),
    ('ɣ', "g"),
    ('ɨ', "i"),
    ('ɲ', "n"),
    ('ɔ', "o"),
    ('ʉ', "u"),
];

/// Writes a text as it is compared.
pub(super) fn fold(text: &str, out: &mut String) {
    let kept = text.nfkd().filter(|&c| !is_left_out(c));
    for c in kept.default_case_fold().nfc() {
        match PLAIN.iter().find(|(letter, _)| *letter == c) {
            Some((_, plain)) => out.push_str(plain),
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

/// Accents of spaced scripts, points of Hebrew and Arabic (with the stroke that only stretches a word), the shape and the
/// colour of an emoji.
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

#[cfg(test)]
mod tests {
    use super::*;

    fn folded(text: &str) -> String {
        let mut out = String::new();
        fold(text, &mut out);
        out
    }

    #[test]
    fn nobody_has_to_type_an_accent() {
        for (written, typed) in [
            ("Đặng Thị Hồng", "dang thi hong"),
            ("ISPARTA ısparta İzmir", "isparta isparta izmir"),
            ("Łódź Øresund Ærø Þór", "lodz oresund aero thor"),
            ("Straße STRASSE ẞ", "strasse strasse ss"),
            ("ὈΔΥΣΣΕΎΣ ὀδυσσεύς", "οδυσσευσ οδυσσευσ"),
            ("مُحَمَّد أحمـد", "محمد احمد"),
            ("שָׁלוֹם", "שלום"),
            ("co\u{ad}operate می\u{200c}خواهم", "cooperate میخواهم"),
            ("ﬁne ½ Ⅷ ｶﾞ", "fine 1⁄2 viii ガ"),
            ("👍🏽 ❤\u{fe0f} 1\u{fe0f}\u{20e3}", "👍 ❤ 1"),
        ] {
            assert_eq!(folded(written), typed);
        }
    }

    #[test]
    fn folding_twice_changes_nothing() {
        for c in (0x80..0x3_0000).filter_map(char::from_u32) {
            let once = folded(&c.to_string());
            assert_eq!(folded(&once), once, "{:x}", c as u32);
        }
    }
}
