use std::fmt;
use std::str::FromStr;

/// Lengths that may be asked for at once: more are no table that anybody reads.
const MOST: usize = 32;

/// Tokens in one sample, as they are asked for: one length or several.
///
/// | written | means |
/// | --- | --- |
/// | `512` | one |
/// | `256,512,1024` | each of them |
/// | `256..4096` | 256 and its doubles up to 4096 |
/// | `256..2048:256` | from 256 to 2048 in steps of 256 |
///
/// Items of a list may be ranges. At least one length, ascending, each once, none of 0.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lengths(Vec<u32>);

impl Lengths {
    /// Ascending.
    pub fn as_slice(&self) -> &[u32] {
        &self.0
    }

    /// The shortest, which is the one where there are not several.
    pub fn shortest(&self) -> u32 {
        self.0.first().copied().unwrap_or(1)
    }

    /// Whether it is more than one.
    pub fn are_several(&self) -> bool {
        self.0.len() > 1
    }
}

impl fmt::Display for Lengths {
    /// As a list.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lengths: Vec<_> = self.0.iter().map(u32::to_string).collect();
        f.write_str(&lengths.join(","))
    }
}

impl From<u32> for Lengths {
    fn from(tokens: u32) -> Self {
        Self(vec![tokens.max(1)])
    }
}

impl FromStr for Lengths {
    /// What is wrong, in words that follow the value.
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut lengths = Vec::new();
        for item in text.split(',') {
            lengths.extend(of_item(item.trim())?);
            lengths.sort_unstable();
            lengths.dedup();
            if lengths.len() > MOST {
                return Err(format!("more than {MOST} lengths"));
            }
        }
        Ok(Self(lengths))
    }
}

/// Of a number or a range; one more than [`MOST`] at most.
fn of_item(item: &str) -> Result<Vec<u32>, String> {
    let Some((first, rest)) = item.split_once("..") else { return Ok(vec![length(item)?]) };
    let (last, step) = match rest.split_once(':') {
        Some((last, step)) => (last, Some(step)),
        None => (rest, None),
    };
    let (first, last) = (length(first)?, length(last)?);
    if first > last {
        return Err(format!("`{item}` ends before it begins"));
    }
    let step = step.map(length).transpose()?;
    let next = |tokens: &u32| match step {
        Some(step) => tokens.checked_add(step),
        None => tokens.checked_mul(2),
    };
    let lengths = std::iter::successors(Some(first), next).take_while(|tokens| *tokens <= last);
    Ok(lengths.take(MOST + 1).collect())
}

fn length(text: &str) -> Result<u32, String> {
    match text.trim() {
        "" => Err("a number is missing".to_owned()),
        text => match text.parse() {
            Ok(0) => Err("must be at least 1".to_owned()),
            Ok(tokens) => Ok(tokens),
            Err(_) => Err(format!("`{text}` is not a whole number from 1 to 4294967295")),
        },
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn lengths(text: &str) -> Vec<u32> {
        text.parse::<Lengths>().unwrap().as_slice().to_vec()
    }

    fn refused(text: &str) -> String {
        text.parse::<Lengths>().unwrap_err()
    }

    #[test]
    fn lists_are_sorted_and_each_length_comes_once() {
        assert_eq!(lengths("512"), [512]);
        assert_eq!(lengths("1024, 256,512,256"), [256, 512, 1024]);
        assert_eq!(lengths("100,128..512,256"), [100, 128, 256, 512]);
    }

    #[test]
    fn a_range_doubles_or_goes_in_steps_up_to_its_end() {
        assert_eq!(lengths("256..4096"), [256, 512, 1024, 2048, 4096]);
        assert_eq!(lengths("300..1000"), [300, 600]);
        assert_eq!(lengths("256..1024:256"), [256, 512, 768, 1024]);
        assert_eq!(lengths("100..250:100"), [100, 200]);
        assert_eq!(lengths("512..512"), [512]);
        // Neither overflows.
        assert_eq!(lengths("3000000000..4294967295"), [3_000_000_000]);
        assert_eq!(lengths("4294967290..4294967295:4"), [4_294_967_290, 4_294_967_294]);
    }

    #[test]
    fn what_is_no_length_is_refused_with_the_reason() {
        for missing in ["", ",512", "256,,512", "256..", "..512", "256..512:"] {
            assert_eq!(refused(missing), "a number is missing", "{missing}");
        }
        for zero in ["0", "0..512", "256..512:0", "512,0"] {
            assert_eq!(refused(zero), "must be at least 1", "{zero}");
        }
        assert_eq!(refused("1024..256"), "`1024..256` ends before it begins");
        assert_eq!(refused("1k"), "`1k` is not a whole number from 1 to 4294967295");
        assert!(refused("256..=512").starts_with("`=512` is not"));
        assert!(refused("-1").starts_with("`-1` is not"));
    }

    #[test]
    fn more_lengths_than_a_table_holds_are_refused_at_once() {
        assert_eq!(lengths("1..32:1").len(), 32);
        assert_eq!(refused("1..33:1"), "more than 32 lengths");
        assert_eq!(refused("1..4294967295:1"), "more than 32 lengths");
    }

    proptest! {
        #[test]
        fn any_list_comes_out_ascending_without_loss(
            asked in prop::collection::vec(1_u32.., 1..20)
        ) {
            let text: Vec<_> = asked.iter().map(u32::to_string).collect();
            let lengths = lengths(&text.join(","));
            prop_assert!(lengths.is_sorted_by(|a, b| a < b));
            prop_assert!(asked.iter().all(|tokens| lengths.contains(tokens)));
            prop_assert!(lengths.iter().all(|tokens| asked.contains(tokens)));
        }

        #[test]
        fn a_range_holds_what_a_loop_would_count(
            first in 1_u32..5000, span in 0_u32..5000, step in 1_u32..5000
        ) {
            let last = first + span;
            let counted: Vec<u32> = (first..=last).step_by(step as usize).collect();
            let parsed = format!("{first}..{last}:{step}").parse::<Lengths>().ok();
            prop_assert_eq!(parsed, (counted.len() <= MOST).then_some(Lengths(counted)));
        }

        #[test]
        fn what_is_shown_means_the_same_again(first in 1_u32..100_000, last in 1_u32..100_000) {
            if let Ok(lengths) = format!("{first}..{last}").parse::<Lengths>() {
                prop_assert_eq!(lengths.to_string().parse::<Lengths>(), Ok(lengths));
            }
        }

        #[test]
        fn nothing_that_is_typed_makes_it_panic(text in "[0-9.,: a-]{0,20}") {
            let _ = text.parse::<Lengths>();
        }
    }
}
