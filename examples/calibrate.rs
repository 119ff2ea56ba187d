//! Fits the constants of the cost model to measured times.
//!
//! ```text
//! cargo run --release --example calibrate -- ROWS.jsonl [--gpus a,b] [--start NAME] [--only product.fp16,…]
//! ```
//!
//! Each line of the file is one measurement: `{"id", "gpu": profile, "seconds", "split": "fit" or "test",
//! "dispatch": host seconds, "works": [{"work", "count"}]}`. Constants are moved one after another to where
//! the mean of |ln(modelled / measured)| over the rows to be fitted is smallest, until none moves; one that
//! no row depends on stays. Prints the constants, and the error of the rows fitted and of the others.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a tool for developers that prints")]

use std::collections::{BTreeMap, HashMap};
use std::error::Error;

use serde::Deserialize;
use vramfit::profile::Catalog;
use vramfit_vgpu_cost::{Efficiency, Speed, Work, price};

#[derive(Deserialize)]
struct Row {
    id: String,
    gpu: String,
    seconds: f64,
    split: String,
    #[serde(default)]
    dispatch: f64,
    works: Vec<Counted>,
}

#[derive(Deserialize)]
struct Counted {
    work: Work,
    count: f64,
}

/// A constant, by name, and where it lies.
type Constant = (&'static str, fn(&mut Efficiency) -> &mut f64);

const CONSTANTS: [Constant; 23] = [
    ("launch_seconds", |it| &mut it.launch_seconds),
    ("product.fp32", |it| &mut it.product.fp32),
    ("product.tf32", |it| &mut it.product.tf32),
    ("product.fp16", |it| &mut it.product.fp16),
    ("product.bf16", |it| &mut it.product.bf16),
    ("convolution.forward", |it| &mut it.convolution.forward),
    ("convolution.backward", |it| &mut it.convolution.backward),
    ("convolution.weight", |it| &mut it.convolution.weight),
    ("attention.forward", |it| &mut it.attention.forward),
    ("attention.backward", |it| &mut it.attention.backward),
    ("emulated_bf16", |it| &mut it.emulated_bf16),
    ("elementwise", |it| &mut it.elementwise),
    ("reduction", |it| &mut it.reduction),
    ("normalization", |it| &mut it.normalization),
    ("optimizer", |it| &mut it.optimizer),
    ("gather", |it| &mut it.gather),
    ("window", |it| &mut it.window),
    ("operands", |it| &mut it.operands),
    ("pinned", |it| &mut it.pinned),
    ("pageable", |it| &mut it.pageable),
    ("peer", |it| &mut it.peer),
    ("host_factor", |it| &mut it.host_factor),
    ("host_launch_seconds", |it| &mut it.host_launch_seconds),
];

struct Fit {
    rows: Vec<Row>,
    speeds: HashMap<String, Speed>,
}

impl Fit {
    fn modelled(&self, row: &Row, efficiency: &Efficiency) -> f64 {
        let speed = Speed { efficiency: *efficiency, ..self.speeds[&row.gpu].clone() };
        let of = |it: &Counted| it.count * price(&it.work, &speed).seconds;
        let device: f64 = row.works.iter().map(of).sum();
        let launches: f64 = row.works.iter().map(|it| it.count).sum();
        let host =
            row.dispatch * efficiency.host_factor + launches * efficiency.host_launch_seconds;
        if row.dispatch > 0.0 { device.max(host) } else { device }
    }

    /// |ln(modelled / measured)| of the rows of `split`.
    fn errors(&self, efficiency: &Efficiency, split: &str) -> Vec<f64> {
        let of = |row: &Row| (self.modelled(row, efficiency) / row.seconds).ln().abs();
        self.rows.iter().filter(|row| row.split == split).map(of).collect()
    }

    fn loss(&self, efficiency: &Efficiency) -> f64 {
        let errors = self.errors(efficiency, "fit");
        errors.iter().sum::<f64>() / errors.len().max(1) as f64
    }

    fn run(&self, start: Efficiency, only: &[String]) -> Efficiency {
        let mut best = start;
        let mut loss = self.loss(&best);
        let mut stride = 1.25_f64;
        while stride > 1.005 {
            let before = loss;
            for (name, of) in CONSTANTS {
                if !only.is_empty() && !only.iter().any(|it| it == name) {
                    continue;
                }
                for factor in [stride, 1.0 / stride] {
                    let mut moved = best;
                    *of(&mut moved) *= factor;
                    let found = self.loss(&moved);
                    if moved.contradiction().is_none() && found < loss - 1e-6 {
                        (best, loss) = (moved, found);
                    }
                }
            }
            if before - loss < 1e-5 {
                stride = stride.sqrt();
            }
        }
        best
    }
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}

fn list(arguments: &[String], flag: &str) -> Vec<String> {
    let value = arguments.iter().position(|it| it == flag).and_then(|at| arguments.get(at + 1));
    value.map(|it| it.split(',').map(str::to_owned).collect()).unwrap_or_default()
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let path = arguments.first().ok_or("which file of rows?")?;
    let (gpus, only) = (list(&arguments, "--gpus"), list(&arguments, "--only"));
    let catalog = Catalog::load()?;
    let rows: Vec<Row> = std::fs::read_to_string(path)?
        .lines()
        .map(serde_json::from_str)
        .collect::<Result<_, _>>()?;
    let rows: Vec<Row> =
        rows.into_iter().filter(|row| gpus.is_empty() || gpus.contains(&row.gpu)).collect();
    let mut speeds = HashMap::new();
    for row in &rows {
        speeds.insert(row.gpu.clone(), catalog.gpu(&row.gpu)?.speed());
    }
    let start = match list(&arguments, "--start").first() {
        Some(gpu) => catalog.gpu(gpu)?.speed().efficiency,
        None => Efficiency::default(),
    };
    let fit = Fit { rows, speeds };
    let found = if only.iter().any(|it| it == "none") { start } else { fit.run(start, &only) };
    println!("[efficiency]\n{}", toml::to_string(&found)?);
    for row in &fit.rows {
        let modelled = fit.modelled(row, &found);
        let ratio = modelled / row.seconds;
        println!(
            "# {:5} {:7.3} {:>10.3} ms {:>10.3} ms  {} {}",
            row.split,
            ratio,
            modelled * 1e3,
            row.seconds * 1e3,
            row.gpu,
            row.id
        );
    }
    let mut by: BTreeMap<(&str, &str), Vec<f64>> = BTreeMap::new();
    for row in &fit.rows {
        let error = fit.modelled(row, &found) / row.seconds - 1.0;
        by.entry((&row.gpu, &row.split)).or_default().push(error.abs());
    }
    for ((gpu, split), errors) in by {
        println!(
            "# {gpu} {split}: {} rows, median error {:.1} %",
            errors.len(),
            100.0 * median(errors)
        );
    }
    Ok(())
}
