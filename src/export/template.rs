//! Python templates: what a plan decides is filled in, and lines that it does not need are left out.
//!
//! All marks are Python comments or stand where a value stands, so that templates read as what they
//! become:
//!
//! | mark | meaning |
//! | --- | --- |
//! | `@name@` | a value |
//! | `#? fp16 !clip` at a line's end | keep the line if `fp16` holds and `clip` does not |
//! | `#? fp16` alone, up to `#? end` | the same for several lines; not nested |
//! | `#+ name` alone | another template, at this place |

use std::collections::{BTreeMap, BTreeSet};

/// What a plan decides, by the names that templates know it by.
#[derive(Debug, Default)]
pub(super) struct Facts {
    /// Values for `@name@`.
    pub(super) values: BTreeMap<&'static str, String>,
    /// Conditions that hold.
    pub(super) flags: BTreeSet<&'static str>,
    /// Whole lines that are taken as they are, for `#+ name`.
    pub(super) parts: BTreeMap<&'static str, String>,
}

impl Facts {
    /// Fills in `template`. Values are not looked at again: they may hold marks.
    pub(super) fn fill(&self, template: &str) -> String {
        let mut text = Vec::new();
        let mut skipping = false;
        for line in template.lines() {
            let (code, condition) = match line.split_once("#? ") {
                Some((code, condition)) => (code, Some(condition.trim())),
                None => (line, None),
            };
            match condition {
                Some("end") => skipping = false,
                Some(condition) if code.trim().is_empty() => skipping = !self.holds(condition),
                _ if skipping => {}
                Some(condition) if !self.holds(condition) => {}
                _ => match line.trim_start().strip_prefix("#+ ") {
                    Some(name) => text.extend(self.parts.get(name.trim()).cloned()),
                    None => text.push(self.substitute(code.trim_end())),
                },
            }
        }
        text.join("\n")
    }

    /// Whether each word of `condition` holds; nothing is asked of an empty one.
    pub(super) fn holds(&self, condition: &str) -> bool {
        condition.split_whitespace().all(|word| match word.strip_prefix('!') {
            Some(word) => !self.flags.contains(word),
            None => self.flags.contains(word),
        })
    }

    fn substitute(&self, line: &str) -> String {
        let mut pieces = line.split('@');
        let mut text = pieces.next().unwrap_or_default().to_owned();
        while let Some(name) = pieces.next() {
            match self.values.get(name) {
                Some(value) => {
                    text += value;
                    text += pieces.next().unwrap_or_default();
                }
                // A decorator, or a product of matrices.
                None => text = text + "@" + name,
            }
        }
        text
    }
}

/// `text` as a Python string: only printable ASCII, whatever is in it.
pub(super) fn string(text: &str) -> String {
    let mut literal = String::from("\"");
    for character in text.chars() {
        match character {
            '"' | '\\' => literal.extend(['\\', character]),
            ' '..='~' => literal.push(character),
            other => literal += &format!("\\U{:08x}", u32::from(other)),
        }
    }
    literal + "\""
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts() -> Facts {
        Facts {
            values: [("n", "8".to_owned()), ("name", "@n@ #? fp16".to_owned())].into(),
            flags: ["fp16", "clip"].into(),
            parts: [("part", "one\ntwo @n@".to_owned())].into(),
        }
    }

    #[test]
    fn values_are_filled_in_once() {
        assert_eq!(
            facts().fill("a(@n@, @n@)\n@name@\n@property"),
            "a(8, 8)\n@n@ #? fp16\n@property"
        );
    }

    #[test]
    fn lines_and_blocks_stay_where_all_conditions_hold() {
        let template = "a  #? fp16\nb  #? !fp16\nc  #? fp16 !clip\n#? clip\nd\ne\n#? end\n\
                        #? bf16\nf\ng  #? fp16\n#? end\nh";
        assert_eq!(facts().fill(template), "a\nd\ne\nh");
    }

    #[test]
    fn parts_are_taken_as_they_are() {
        assert_eq!(facts().fill("x\n#+ part\ny\n#+ none"), "x\none\ntwo @n@\ny");
    }

    #[test]
    fn no_text_gets_out_of_a_string() {
        assert_eq!(string("a\"b\\c\nd\u{202e}é"), r#""a\"b\\c\U0000000ad\U0000202e\U000000e9""#);
    }
}
