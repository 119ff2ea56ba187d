//! Charts with two axes. One drawing serves every width: places are hundredths of it, letters and marks
//! keep their size, and colours are those of the page.

use maud::{Markup, PreEscaped, html};

use super::scale::Tick;

/// A mark further right than this, in hundredths, would stand beyond the edge with its half.
const LAST: f64 = 94.0;

/// What a chart shows, for those who do not see it.
pub(super) struct Described<'a> {
    /// Of the page's, unlike all others.
    pub(super) id: &'a str,
    /// What it is.
    pub(super) title: &'a str,
    /// What is to be seen in it, in numbers.
    pub(super) description: String,
}

/// An axis.
pub(super) struct Axis<'a> {
    /// What its values are.
    pub(super) name: &'a str,
    /// Its marks.
    pub(super) ticks: Vec<Tick>,
}

/// A drawing as a whole: one thing to a screen reader, which its text describes.
pub(super) fn drawing(described: &Described<'_>, class: &str, content: &Markup) -> Markup {
    let Described { id, title, description } = described;
    html! {
        svg class=(class) role="img" aria-labelledby={ (id) "-title " (id) "-text" } {
            title id={ (id) "-title" } { (title) }
            desc id={ (id) "-text" } { (description) }
            (content)
        }
    }
}

/// A chart: grid, axes and what is drawn on it.
pub(super) fn plot(
    described: &Described<'_>,
    x: &Axis<'_>,
    y: &Axis<'_>,
    content: &Markup,
) -> Markup {
    html! {
        div .plot {
            p .axis-name { (y.name) }
            (drawing(described, "chart", &html! {
                g .grid {
                    @for tick in &y.ticks {
                        line x1="0" x2="100%" y1=(up(tick.at)) y2=(up(tick.at)) {}
                    }
                }
                g .marks-y {
                    @for tick in &y.ticks {
                        text x="-8" y=(up(tick.at)) dy="0.35em" text-anchor="end" { (tick.label) }
                    }
                }
                g .marks-x {
                    @for tick in &x.ticks {
                        @let anchor = if tick.at > LAST { "end" } else { "middle" };
                        text x=(percent(tick.at)) y="100%" dy="20" text-anchor=(anchor) {
                            (tick.label)
                        }
                    }
                }
                line .base x1="0" x2="100%" y1="100%" y2="100%" {}
                (content)
            }))
            p .axis-name.of-x { (x.name) }
        }
    }
}

/// A line through places of the chart, each in hundredths from the left and from below.
pub(super) fn line(class: &str, places: &[(f64, f64)]) -> Markup {
    shape(class, &path(places))
}

/// A line that stays as high as it is until its next place.
pub(super) fn steps(class: &str, places: &[(f64, f64)]) -> Markup {
    shape(class, &path(&stepped(places)))
}

/// What lies below such a line, down to the base.
pub(super) fn area(class: &str, places: &[(f64, f64)]) -> Markup {
    let (Some(first), Some(last)) = (places.first(), places.last()) else { return html! {} };
    let mut outline = vec![(first.0, 0.0)];
    outline.extend(stepped(places));
    outline.push((last.0, 0.0));
    shape(class, &format!("{}Z", path(&outline)))
}

fn stepped(places: &[(f64, f64)]) -> Vec<(f64, f64)> {
    let mut stepped = Vec::with_capacity(places.len() * 2);
    for (x, y) in places {
        if let Some((_, before)) = stepped.last().copied() {
            stepped.push((*x, before));
        }
        stepped.push((*x, *y));
    }
    stepped
}

fn path(places: &[(f64, f64)]) -> String {
    let mut text = String::new();
    for (x, y) in places {
        let command = if text.is_empty() { 'M' } else { 'L' };
        text += &format!("{command}{} {}", short(*x), short(100.0 - y));
    }
    text
}

/// Stretched to the chart; how thick a line is stays.
fn shape(class: &str, path: &str) -> Markup {
    html! {
        svg .stretched viewBox="0 0 100 100" preserveAspectRatio="none" width="100%" height="100%" {
            path class=(class) d=(path) vector-effect="non-scaling-stroke" {}
        }
    }
}

/// How a mark is shaped, since not everyone tells colours apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mark {
    Circle,
    Square,
    Diamond,
    Triangle,
    Cross,
}

impl Mark {
    /// Around the origin, in pixels.
    fn outline(self) -> &'static str {
        match self {
            Self::Circle => "M-4 0a4 4 0 1 0 8 0a4 4 0 1 0-8 0Z",
            Self::Square => "M-3.6-3.6H3.6V3.6H-3.6Z",
            Self::Diamond => "M0-5L5 0L0 5L-5 0Z",
            Self::Triangle => "M0-5L4.8 3.6H-4.8Z",
            Self::Cross => "M-4-4L4 4M4-4L-4 4",
        }
    }

    /// At a place of the chart, with what a pointer is told there.
    pub(super) fn at(self, class: &str, (x, y): (f64, f64), hint: &str) -> Markup {
        html! {
            svg .mark x=(percent(x)) y=(up(y)) {
                // A target that is easier to hit than the mark.
                circle .target r="12" {}
                path class=(class) d=(self.outline()) {}
                title { (hint) }
            }
        }
    }

    /// Beside words, on a piece of its line if there is one.
    pub(super) fn key(self, class: &str, line: Option<&str>) -> Markup {
        html! {
            svg .key viewBox="0 0 30 12" width="30" height="12" aria-hidden="true" {
                @if let Some(line) = line { path class=(line) d="M0 6H30" {} }
                g transform="translate(15 6)" { path class=(class) d=(self.outline()) {} }
            }
        }
    }
}

/// In hundredths, from below.
pub(super) fn up(place: f64) -> String {
    percent(100.0 - place)
}

/// In hundredths.
pub(super) fn percent(share: f64) -> String {
    format!("{}%", short(share))
}

/// With as many digits as can be seen.
fn short(number: f64) -> String {
    let rounded = (number * 100.0).round() / 100.0;
    // Of minus nothing too.
    format!("{}", rounded + 0.0)
}

/// What is escaped already, such as our own style sheet.
pub(super) fn verbatim(text: &str) -> PreEscaped<&str> {
    PreEscaped(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_stay_as_high_as_they_are() {
        assert_eq!(
            stepped(&[(0.0, 1.0), (5.0, 2.0), (9.0, 0.0)]),
            [(0.0, 1.0), (5.0, 1.0), (5.0, 2.0), (9.0, 2.0), (9.0, 0.0)]
        );
    }

    #[test]
    fn words_of_a_drawing_are_escaped() {
        let described =
            Described { id: "a", title: "<script>", description: "\"x\" & <b>".to_owned() };
        let text = drawing(&described, "chart", &html! {}).into_string();
        assert!(text.contains("&lt;script&gt;") && text.contains("&amp; &lt;b&gt;"), "{text}");
        assert!(!text.contains("<script>"), "{text}");
    }

    #[test]
    fn numbers_are_as_short_as_they_can_be() {
        assert_eq!([0.0, -0.0, 33.333_33, 50.0].map(short), ["0", "0", "33.33", "50"]);
        assert_eq!(path(&[(0.0, 0.0), (100.0, 25.0)]), "M0 100L100 75");
    }
}
