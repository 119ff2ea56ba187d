//! Quantities and how they are written: the only place that formats one.

use std::fmt;
use std::iter::Sum;
use std::ops::{Add, Sub};
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A number of bytes. Serialised as a plain integer, shown in binary units.
#[derive(
    Clone,
    Copy,
    Debug,
    Default,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Serialize,
    Deserialize,
    JsonSchema,
)]
#[serde(transparent)]
pub struct Bytes(pub u64);

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;
const TIB: u64 = 1 << 40;

impl Bytes {
    /// No bytes.
    pub const ZERO: Self = Self(0);

    /// `n` MiB.
    pub const fn mib(n: u64) -> Self {
        Self(n * MIB)
    }

    /// `n` GiB.
    pub const fn gib(n: u64) -> Self {
        Self(n * GIB)
    }

    /// The number of bytes.
    pub const fn get(self) -> u64 {
        self.0
    }

    /// The difference, or zero where it would be negative.
    pub const fn saturating_sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }

    /// `percent` hundredths of this, rounded down.
    pub fn percent(self, percent: f64) -> Self {
        Self((self.0 as f64 * percent / 100.0) as u64)
    }

    /// In whole MiB where that is exact, else in KiB: as drivers print sizes, and for comparing them.
    pub fn exact(self) -> String {
        match self.0 {
            bytes if bytes.is_multiple_of(MIB) => format!("{} MiB", bytes / MIB),
            bytes if bytes.is_multiple_of(KIB) => format!("{} KiB", bytes / KIB),
            bytes => format!("{bytes} B"),
        }
    }

    /// In MiB.
    pub fn as_mib(self) -> f64 {
        self.0 as f64 / MIB as f64
    }
}

impl Add for Bytes {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self(self.0 + other.0)
    }
}

impl Sub for Bytes {
    type Output = Self;

    fn sub(self, other: Self) -> Self {
        Self(self.0 - other.0)
    }
}

impl Sum for Bytes {
    fn sum<I: Iterator<Item = Self>>(items: I) -> Self {
        items.fold(Self::ZERO, Add::add)
    }
}

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = match self.0 {
            0..KIB => format!("{} B", self.0),
            KIB..MIB => format!("{:.1} KiB", self.0 as f64 / KIB as f64),
            MIB..GIB => format!("{:.0} MiB", self.as_mib()),
            _ => format!("{:.2} GiB", self.0 as f64 / GIB as f64),
        };
        f.pad(&text)
    }
}

/// Why a text is not a number of bytes.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a size")]
pub struct ParseBytesError(pub String);

impl FromStr for Bytes {
    type Err = ParseBytesError;

    /// Reads `4GiB`, `4 GiB`, `600MiB`, `4G`, `1.5g`, `4096M` or plain bytes. As everywhere on GPUs,
    /// `GB` and `G` mean GiB: a "4 GB" card has 4 GiB.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let error = || ParseBytesError(text.to_owned());
        let trimmed = text.trim();
        let split = trimmed
            .find(|c: char| !(c.is_ascii_digit() || c == '.' || c == '_'))
            .unwrap_or(trimmed.len());
        let (number, unit) = trimmed.split_at(split);
        let number: f64 = number.replace('_', "").parse().map_err(|_| error())?;
        let unit = match unit.trim().to_ascii_lowercase().as_str() {
            "" | "b" => 1,
            "k" | "kb" | "kib" => KIB,
            "m" | "mb" | "mib" => MIB,
            "g" | "gb" | "gib" => GIB,
            "t" | "tb" | "tib" => TIB,
            _ => return Err(error()),
        };
        let bytes = number * unit as f64;
        if !bytes.is_finite() || bytes < 0.0 || bytes >= (1u64 << 53) as f64 {
            return Err(error());
        }
        Ok(Self(bytes as u64))
    }
}

/// A part of some memory: a percentage of it, or so many bytes whatever its size.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Share {
    /// Hundredths, from 0 to 100.
    Percent(f64),
    /// So many bytes.
    Bytes(Bytes),
}

impl Share {
    /// This part of `whole`; never more than all of it.
    pub fn of(self, whole: Bytes) -> Bytes {
        match self {
            Self::Percent(percent) => whole.percent(percent),
            Self::Bytes(bytes) => bytes.min(whole),
        }
    }
}

impl fmt::Display for Share {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Percent(percent) => f.pad(&format!("{percent} %")),
            Self::Bytes(bytes) => bytes.fmt(f),
        }
    }
}

impl FromStr for Share {
    type Err = ParseBytesError;

    /// Reads `5%`, or a size as [`Bytes`] does.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let Some(number) = text.trim().strip_suffix('%') else {
            return text.parse().map(Self::Bytes);
        };
        match number.trim().parse() {
            Ok(percent) if (0.0..=100.0).contains(&percent) => Ok(Self::Percent(percent)),
            _ => Err(ParseBytesError(text.to_owned())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_as_people_write_them() {
        for text in ["4GiB", "4 GiB", "4G", "4gb", "4096M", "4096 MiB", "4294967296"] {
            assert_eq!(text.parse(), Ok(Bytes::gib(4)), "{text}");
        }
        assert_eq!("1.5g".parse(), Ok(Bytes::mib(1536)));
    }

    #[test]
    fn what_is_no_size_is_refused() {
        for text in ["", "GiB", "four", "4 XiB", "-4GiB", "4..5G", "1e400", "99999999T"] {
            assert_eq!(text.parse::<Bytes>(), Err(ParseBytesError(text.to_owned())), "{text}");
        }
    }

    #[test]
    fn exact_sizes_lose_nothing() {
        assert_eq!(Bytes::mib(8188).exact(), "8188 MiB");
        assert_eq!(Bytes(1536 << 10).exact(), "1536 KiB");
        assert_eq!(Bytes(1000).exact(), "1000 B");
    }

    #[test]
    fn shares_are_percentages_or_sizes() {
        assert_eq!("5%".parse(), Ok(Share::Percent(5.0)));
        assert_eq!("2.5 %".parse(), Ok(Share::Percent(2.5)));
        assert_eq!("200MiB".parse(), Ok(Share::Bytes(Bytes::mib(200))));
        assert_eq!(Share::Percent(5.0).of(Bytes::mib(4000)), Bytes::mib(200));
        assert_eq!(Share::Bytes(Bytes::gib(5)).of(Bytes::gib(4)), Bytes::gib(4));
        for text in ["101%", "-1%", "%", "NaN%", "five %"] {
            assert_eq!(text.parse::<Share>(), Err(ParseBytesError(text.to_owned())), "{text}");
        }
    }

    #[test]
    fn sizes_are_shown_in_binary_units() {
        assert_eq!(Bytes(999).to_string(), "999 B");
        assert_eq!(Bytes::mib(600).to_string(), "600 MiB");
        assert_eq!(Bytes::mib(3800).to_string(), "3.71 GiB");
    }
}
