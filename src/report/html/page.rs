//! What every page is made of: its frame, sections, tables and figures.

use maud::{DOCTYPE, Markup, html};

use super::plot::verbatim;

const STYLE: &str = include_str!("style.css");
/// Nothing is loaded and nothing is run, whatever words a page holds.
const POLICY: &str = include_str!("policy.txt");

/// Characters of a name that fit a line of the headline on a phone.
const LONGEST_WHOLE: usize = 22;

/// A whole page.
pub(super) struct Page<'a> {
    /// What it is of, before all else.
    pub(super) kind: &'a str,
    /// Its answer in one sentence.
    pub(super) headline: &'a str,
    /// Below the headline.
    pub(super) lead: Markup,
    /// Sections, in order.
    pub(super) sections: Vec<Markup>,
}

impl Page<'_> {
    /// As a file.
    pub(super) fn render(&self) -> String {
        let page = html! {
            (DOCTYPE)
            html lang="en" {
                head {
                    meta charset="utf-8";
                    meta name="viewport" content="width=device-width, initial-scale=1";
                    meta name="color-scheme" content="light dark";
                    meta http-equiv="Content-Security-Policy" content=(POLICY);
                    meta name="generator" content={ "vramfit " (env!("CARGO_PKG_VERSION")) };
                    title { (self.headline) " · vramfit" }
                    style { (verbatim(STYLE)) }
                }
                body {
                    a .skip href="#content" { "Skip to the content" }
                    header {
                        p .kind { "vramfit " (self.kind) }
                        h1 { (unbroken(self.headline)) }
                        (self.lead)
                    }
                    main #content {
                        @for section in &self.sections { (section) }
                    }
                }
            }
        };
        page.into_string()
    }
}

/// Words whose hyphens are no place to break.
fn unbroken(text: &str) -> Markup {
    let hyphened = |word: &str| word.contains('-') && word.chars().count() <= LONGEST_WHOLE;
    html! {
        @for (index, word) in text.split_whitespace().enumerate() {
            @if index > 0 { " " }
            @if hyphened(word) { span .whole-word { (word) } } @else { (word) }
        }
    }
}

/// A part of a page under a heading.
pub(super) fn section(title: &str, content: &Markup) -> Markup {
    html! { section { h2 { (title) } (content) } }
}

/// The numbers that are read first: what each is, the number, and what it is of.
pub(super) fn figures(figures: &[(&str, String, String)]) -> Markup {
    html! {
        dl .figures {
            @for (name, number, of) in figures {
                div { dt { (name) } dd { strong { (number) } @if !of.is_empty() { span { (of) } } } }
            }
        }
    }
}

/// A command to copy.
pub(super) fn command(line: &str) -> Markup {
    html! { pre .command tabindex="0" { code { (line) } } }
}

/// A chart with what it says in words, its key, and the numbers that it was drawn from.
pub(super) fn figure(chart: &Markup, key: &Markup, words: &Markup, numbers: &Markup) -> Markup {
    html! {
        figure {
            (chart)
            (key)
            figcaption { (words) }
            details { summary { "The numbers" } (numbers) }
        }
    }
}

/// A table.
pub(super) struct Table<'a> {
    /// What it holds, for those who come to it without its heading.
    pub(super) caption: &'a str,
    /// Names of its columns; those that hold numbers are told.
    pub(super) columns: Vec<Column>,
    /// A cell for each column; the first heads its row.
    pub(super) rows: Vec<Vec<Markup>>,
    /// The row that matters most.
    pub(super) marked: Option<usize>,
}

/// A column of a [`Table`].
pub(super) struct Column {
    name: String,
    number: bool,
}

/// A column of words.
pub(super) fn words(name: impl Into<String>) -> Column {
    Column { name: name.into(), number: false }
}

/// A column of numbers.
pub(super) fn numbers(name: impl Into<String>) -> Column {
    Column { name: name.into(), number: true }
}

/// A cell.
pub(super) fn cell(text: impl AsRef<str>) -> Markup {
    html! { (text.as_ref()) }
}

impl Table<'_> {
    pub(super) fn render(&self) -> Markup {
        html! {
            div .scroll role="region" aria-label=(self.caption) tabindex="0" {
                // A phone shows its rows as cards; what it is stays said.
                table .cards[self.columns.len() > 3] role="table" {
                    caption .unseen { (self.caption) }
                    thead role="rowgroup" {
                        tr role="row" {
                            @for column in &self.columns {
                                th scope="col" role="columnheader" .number[column.number] { (column.name) }
                            }
                        }
                    }
                    tbody role="rowgroup" {
                        @for (index, row) in self.rows.iter().enumerate() {
                            (self.row(row, self.marked == Some(index)))
                        }
                    }
                }
            }
        }
    }

    fn row(&self, row: &[Markup], marked: bool) -> Markup {
        html! {
            tr .marked[marked] role="row" {
                @for (index, (cell, column)) in row.iter().zip(&self.columns).enumerate() {
                    @if index == 0 {
                        th scope="row" role="rowheader" .number[column.number] data-name=(column.name) {
                            (cell)
                            @if marked { " " span .badge { "recommended" } }
                        }
                    } @else {
                        td role="cell" .number[column.number] data-name=(column.name) { (cell) }
                    }
                }
            }
        }
    }
}

/// Sentences, one below the other.
pub(super) fn list(items: impl IntoIterator<Item = String>) -> Markup {
    html! { ul .notes { @for item in items { li { (item) } } } }
}
