//! A bar of parts beside each other, each in the colour of its name.

use maud::{Markup, html};

use super::page::{Table, cell, numbers, words};
use super::plot::{Described, drawing, percent};
use crate::units::Bytes;

/// A part of a memory: its name, by which it is coloured, and its size.
pub(super) type Part = (&'static str, Bytes);

/// A piece of a bar.
pub(super) struct Piece {
    /// What it is, by which it is coloured.
    pub(super) name: &'static str,
    /// How long, in hundredths of the bar.
    pub(super) share: f64,
    /// What it is in numbers.
    pub(super) size: String,
}

/// Narrower than this, in hundredths, a piece bears no name.
const NAMED: f64 = 16.0;

/// One bar; what the pieces leave of it is empty.
pub(super) fn bar(described: &Described<'_>, pieces: &[Piece]) -> Markup {
    let mut end = 0.0;
    let placed = pieces.iter().map(|piece| {
        let at = end;
        end += piece.share;
        (at, piece)
    });
    drawing(
        described,
        "bar",
        &html! {
            rect .empty width="100%" height="100%" {}
            @for (at, Piece { name, share, size }) in placed.filter(|(_, piece)| piece.share > 0.0) {
                svg .(class(name)) x=(percent(at)) width=(percent(*share)) height="100%" {
                    rect .part width="100%" height="100%" {}
                    title { (name) ": " (size) }
                    @if *share >= NAMED { text .on-part x="8" y="50%" dy="0.35em" { (name) } }
                }
            }
        },
    )
}

/// Parts of a memory of `whole` bytes, as pieces of a bar.
pub(super) fn pieces(parts: &[Part], whole: Bytes) -> Vec<Piece> {
    let piece =
        |(name, bytes): &Part| Piece { name, share: share(*bytes, whole), size: bytes.to_string() };
    parts.iter().map(piece).collect()
}

/// The parts in numbers, each beside its colour.
pub(super) fn table(caption: &str, parts: &[Part], whole: Bytes, of: &str) -> Markup {
    let row = |(name, bytes): &Part| {
        vec![swatch(name), cell(bytes.to_string()), cell(format!("{:.0} %", share(*bytes, whole)))]
    };
    let columns = vec![words("part"), numbers("size"), numbers(of)];
    Table { caption, columns, rows: parts.iter().map(row).collect(), marked: None }.render()
}

/// Each piece of a bar in words beside its colour.
pub(super) fn keys(pieces: &[Piece]) -> Markup {
    html! {
        ul .keys {
            @for Piece { name, size, .. } in pieces {
                li { (swatch(name)) span .size { (size) } }
            }
        }
    }
}

/// A name beside its colour.
pub(super) fn swatch(name: &str) -> Markup {
    html! { span .swatch .(class(name)) aria-hidden="true" {} (name) }
}

/// The class by which a part is coloured.
pub(super) fn class(name: &str) -> String {
    format!("of-{}", name.replace(' ', "-"))
}

fn share(bytes: Bytes, whole: Bytes) -> f64 {
    bytes.get() as f64 / whole.get().max(1) as f64 * 100.0
}
