//! Pages for a browser: one file each, whole without a network, without scripts, in light and in dark, on
//! a screen and on a phone.
//!
//! Charts are drawn here as SVG. A drawing library would give them fixed colours and letters that
//! shrink with the drawing; these take both from the page.

mod page;
mod plan;
mod plot;
mod run;
mod scale;
mod stack;
mod watch;

pub use plan::page as plan;
pub use run::{RecordedPeak, page as run};
pub use watch::page as watch;
