//! Each implementation of each optimizer against its textbook recurrence, in f64 by hand.

use tch::{Device, Kind as Type, Tensor};

use super::*;
use crate::scaler::Scaler;

const IMPLEMENTATIONS: [Implementation; 3] =
    [Implementation::Foreach, Implementation::Fused, Implementation::ForLoop];

/// Two parameters of different shape.
fn parameters() -> Vec<Tensor> {
    [(vec![0.5f32, -1.0, 2.0, 0.25], vec![2, 2]), (vec![3.0, -0.125], vec![2])]
        .into_iter()
        .map(|(values, shape)| Tensor::from_slice(&values).reshape(shape).set_requires_grad(true))
        .collect()
}

/// Gives each parameter the gradient of Σ (p + t)², which is 2 (p + t).
fn backward(parameters: &[Tensor], t: f64, scale: f64) {
    let squares = parameters.iter().map(|p| ((p + t).square() * scale).sum(Type::Float));
    squares.reduce(|a, b| a + b).unwrap().backward();
}

fn values(parameters: &[Tensor]) -> Vec<f64> {
    parameters
        .iter()
        .flat_map(|p| Vec::<f64>::try_from(p.detach().reshape([-1]).to_kind(Type::Double)).unwrap())
        .collect()
}

/// The value of a parameter that starts at `p` after `steps` steps.
fn by_hand(kind: Kind, mut p: f64, steps: i32) -> f64 {
    let (mut momentum, mut average, mut square) = (0.0, 0.0, 0.0);
    for step in 1..=steps {
        let g = 2.0 * (p + f64::from(step));
        match kind {
            Kind::Sgd => p -= 1e-3 * g,
            Kind::SgdMomentum => {
                momentum = 0.9 * momentum + g;
                p -= 1e-3 * momentum;
            }
            Kind::Adam | Kind::Adamw => {
                if kind == Kind::Adamw {
                    p -= 1e-3 * 0.01 * p;
                }
                average = 0.9 * average + 0.1 * g;
                square = 0.999 * square + 0.001 * g * g;
                let average = average / (1.0 - 0.9f64.powi(step));
                let square = square / (1.0 - 0.999f64.powi(step));
                p -= 1e-3 * average / (square.sqrt() + 1e-8);
            }
        }
    }
    p
}

#[test]
fn every_implementation_steps_as_the_textbook_says() {
    for kind in Kind::ALL {
        let expected: Vec<f64> =
            values(&parameters()).into_iter().map(|p| by_hand(kind, p, 4)).collect();
        for implementation in IMPLEMENTATIONS {
            let parameters = parameters();
            let mut optimizer = Optimizer::new(kind, implementation, &parameters);
            for step in 1..=4 {
                optimizer.zero_grad().unwrap();
                backward(&parameters, f64::from(step), 1.0);
                optimizer.step(None).unwrap();
            }
            for (found, expected) in values(&parameters).iter().zip(&expected) {
                assert!(
                    (found - expected).abs() < 1e-6,
                    "{kind} {implementation:?}: {found}, by hand {expected}"
                );
            }
        }
    }
}

#[test]
fn scaled_gradients_lead_to_the_same_steps() {
    for kind in Kind::ALL {
        let expected: Vec<f64> =
            values(&parameters()).into_iter().map(|p| by_hand(kind, p, 3)).collect();
        for implementation in IMPLEMENTATIONS {
            for unscale_first in [false, true] {
                let parameters = parameters();
                let mut optimizer = Optimizer::new(kind, implementation, &parameters);
                let mut scaler = Scaler::new(Device::Cpu);
                for step in 1..=3 {
                    optimizer.zero_grad().unwrap();
                    let scale = scaler.value();
                    backward(&parameters, f64::from(step), scale);
                    if unscale_first {
                        scaler.unscale(&optimizer).unwrap();
                    }
                    scaler.step(&mut optimizer).unwrap();
                }
                for (found, expected) in values(&parameters).iter().zip(&expected) {
                    assert!(
                        (found - expected).abs() < 1e-6,
                        "{kind} {implementation:?} {unscale_first}: {found}, by hand {expected}"
                    );
                }
            }
        }
    }
}

#[test]
fn an_infinite_gradient_skips_the_step_and_halves_the_scale() {
    for kind in Kind::ALL {
        for implementation in IMPLEMENTATIONS {
            let parameters = parameters();
            let mut optimizer = Optimizer::new(kind, implementation, &parameters);
            let mut scaler = Scaler::new(Device::Cpu);
            let (before, scale) = (values(&parameters), scaler.value());
            backward(&parameters, 1.0, f64::INFINITY);
            scaler.step(&mut optimizer).unwrap();
            assert_eq!(values(&parameters), before, "{kind} {implementation:?}");
            assert_eq!(scaler.value(), scale / 2.0, "{kind} {implementation:?}");
        }
    }
}

#[test]
fn clipping_brings_the_common_norm_down_to_the_largest_and_leaves_smaller_ones_alone() {
    let gradients = || vec![Tensor::from_slice(&[3.0f32, 0.0]), Tensor::from_slice(&[4.0f32])];
    let clipped = gradients();
    crate::clip::clip_grad_norm_(&clipped, 1.0).unwrap();
    for (found, expected) in values(&clipped).iter().zip([0.6, 0.0, 0.8]) {
        assert!((found - expected).abs() < 1e-6, "{found} instead of {expected}");
    }
    let alone = gradients();
    crate::clip::clip_grad_norm_(&alone, 6.0).unwrap();
    assert_eq!(values(&alone), [3.0, 0.0, 4.0]);
}
