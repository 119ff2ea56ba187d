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

/// A number above zero with so many significant digits, its thousands apart: `0.31`, `56 000`.
pub fn significant(value: f64, digits: i32) -> String {
    if !(value.is_finite() && value > 0.0) {
        return value.to_string();
    }
    let digits_before = |value: f64| value.log10().floor() as i32 + 1;
    let scale = 10f64.powi(digits - digits_before(value));
    let rounded = (value * scale).round() / scale;
    // Rounding may add a digit: 9.96 is 10.
    let decimals = usize::try_from(digits - digits_before(rounded)).unwrap_or(0);
    let text = format!("{rounded:.decimals$}");
    let (whole, fraction) = text.split_at(text.find('.').unwrap_or(text.len()));
    thousands(whole) + fraction
}

/// A whole number, its thousands apart: `1 281 167`.
pub fn count(number: u64) -> String {
    thousands(&number.to_string())
}

fn thousands(digits: &str) -> String {
    if digits.len() < 5 {
        return digits.to_owned();
    }
    let (first, rest) = digits.split_at(digits.len() % 3);
    let groups = (0..rest.len()).step_by(3).map(|at| &rest[at..at + 3]);
    let groups = std::iter::once(first).chain(groups).filter(|group| !group.is_empty());
    groups.collect::<Vec<_>>().join(" ")
}

/// A time as people say it, to about so many significant digits: `35 µs`, `280 ms`, `2.8 s`,
/// `45 min`, `1 h 30 min`, `3.2 days`.
pub fn duration(seconds: f64, digits: i32) -> String {
    const MINUTE: f64 = 60.0;
    const HOUR: f64 = 60.0 * MINUTE;
    const DAY: f64 = 24.0 * HOUR;
    let of = |unit: f64| significant(seconds / unit, digits);
    match seconds {
        ..0.000_999_5 => format!("{} µs", of(1e-6)),
        ..0.9995 => format!("{} ms", of(1e-3)),
        ..99.5 => format!("{} s", of(1.0)),
        ..HOUR => format!("{} min", of(MINUTE)),
        ..173_000.0 => {
            // To a few minutes where that is what is known of hours.
            let nearest = match seconds {
                _ if digits > 2 => MINUTE,
                ..36_000.0 => 10.0 * MINUTE,
                _ => HOUR,
            };
            let minutes = ((seconds / nearest).round() * nearest / MINUTE) as u64;
            match (minutes / 60, minutes % 60) {
                (hours, 0) => format!("{hours} h"),
                (hours, rest) => format!("{hours} h {rest} min"),
            }
        }
        _ => format!("{} days", of(DAY)),
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

    #[test]
    fn figures_keep_their_significant_digits() {
        let shown = |value| significant(value, 2);
        assert_eq!(shown(0.3149), "0.31");
        assert_eq!(shown(9.96), "10");
        assert_eq!(shown(1.0), "1.0");
        assert_eq!(shown(234.5), "230");
        assert_eq!(shown(56_432.0), "56 000");
        assert_eq!(significant(1_234_567.0, 4), "1 235 000");
        assert_eq!(significant(0.0, 2), "0");
        assert_eq!([9999, 10_000, 1_281_167].map(count), ["9999", "10 000", "1 281 167"]);
    }

    #[test]
    fn times_are_said_as_people_say_them() {
        let shown = |seconds| duration(seconds, 2);
        assert_eq!(shown(0.000_034_6), "35 µs");
        assert_eq!(shown(0.0123), "12 ms");
        assert_eq!(shown(0.9999), "1.0 s");
        assert_eq!(shown(62.0), "62 s");
        assert_eq!(shown(280.0), "4.7 min");
        assert_eq!(shown(3000.0), "50 min");
        assert_eq!(shown(5500.0), "1 h 30 min");
        assert_eq!(shown(7200.0), "2 h");
        assert_eq!(shown(50_000.0), "14 h");
        assert_eq!(shown(300_000.0), "3.5 days");
        assert_eq!(duration(50_000.0, 3), "13 h 53 min");
        assert_eq!(duration(0.0123, 3), "12.3 ms");
    }
}
