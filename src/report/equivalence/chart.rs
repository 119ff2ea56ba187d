//! Curves of training losses, all on one scale.

use super::training::name;
use crate::equivalence::Training;

const LEVELS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
const WIDTH: usize = 60;

/// One curve a setting: height is the loss, from the model's best possible to the highest of all.
pub(super) fn losses(training: &Training) -> String {
    let all = || training.runs.iter().flat_map(|run| &run.losses);
    let highest = all().copied().fold(f64::NEG_INFINITY, f64::max);
    let lowest = all().copied().fold(f64::INFINITY, f64::min);
    let widest = training.runs.iter().map(|run| name(&run.setting).chars().count()).max();
    let curves = training.runs.iter().map(|run| {
        let curve = curve(&run.losses, lowest, highest);
        let end = run.losses.last().copied().unwrap_or(f64::NAN);
        format!("  {:<width$}  {curve} {end:.3}", name(&run.setting), width = widest.unwrap_or(0))
    });
    let title = format!(
        "Training loss, step 1 to {}: full height {highest:.2}, lowest {lowest:.2}",
        training.steps
    );
    format!("{title}\n{}", curves.collect::<Vec<_>>().join("\n"))
}

/// Values as columns, each the mean of its share.
fn curve(values: &[f64], lowest: f64, highest: f64) -> String {
    let width = WIDTH.min(values.len());
    let level = |column: usize| {
        let share = &values[column * values.len() / width..(column + 1) * values.len() / width];
        let mean = share.iter().sum::<f64>() / share.len() as f64;
        let height = (mean - lowest) / (highest - lowest).max(f64::MIN_POSITIVE);
        LEVELS[((height * LEVELS.len() as f64) as usize).min(LEVELS.len() - 1)]
    };
    (0..width).map(level).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_curve_falls_as_its_losses_do_whatever_their_number() {
        assert_eq!(curve(&[8.0, 4.0, 0.0], 0.0, 8.0), "█▅▁");
        let many: Vec<_> = (0..600).map(|step| f64::from(600 - step)).collect();
        let drawn = curve(&many, 0.0, 600.0);
        assert_eq!(drawn.chars().count(), WIDTH);
        assert!(drawn.starts_with('█') && drawn.ends_with('▁'), "{drawn}");
    }

    #[test]
    fn losses_that_do_not_change_lie_low() {
        assert_eq!(curve(&[1.0, 1.0], 1.0, 1.0), "▁▁");
    }
}
