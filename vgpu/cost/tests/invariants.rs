//! What must hold of every price, whatever the work and the card.

use proptest::prelude::*;
use vramfit_vgpu_cost::{
    Arithmetic, Attention, Convolution, Direction, Product, Speed, Streaming, StreamingClass, Work,
    price,
};

fn arithmetic() -> impl Strategy<Value = Arithmetic> {
    prop::sample::select(vec![
        Arithmetic::Fp64,
        Arithmetic::Fp32,
        Arithmetic::Tf32,
        Arithmetic::Fp16,
        Arithmetic::Bf16,
        Arithmetic::Int8,
    ])
}

fn direction() -> impl Strategy<Value = Direction> {
    prop::sample::select(vec![Direction::Forward, Direction::Backward, Direction::Weight])
}

fn product() -> impl Strategy<Value = Product> {
    (1..20_000u64, 1..20_000u64, 1..20_000u64, 1..64u64, arithmetic()).prop_map(
        |(m, n, k, batch, arithmetic)| Product {
            m,
            n,
            k,
            batch,
            arithmetic,
            input_bytes: 2,
            output_bytes: 2,
        },
    )
}

fn convolution() -> impl Strategy<Value = Convolution> {
    let channels = (1..40u64, 1..40u64, prop::sample::select(vec![1, 2, 4, 8]));
    (direction(), 1..300u64, channels, 1..60u64, 1..4u64, arithmetic(), any::<bool>()).prop_map(
        |(direction, batch, (inputs, outputs, groups), side, filter, arithmetic, channels_last)| {
            Convolution {
                direction,
                batch,
                inputs: 8 * inputs,
                outputs: 8 * outputs,
                groups,
                input_positions: side * side,
                output_positions: side * side,
                filter_positions: filter * filter,
                arithmetic,
                element_bytes: 2,
                channels_last,
            }
        },
    )
}

fn attention() -> impl Strategy<Value = Attention> {
    let direction = prop::sample::select(vec![Direction::Forward, Direction::Backward]);
    (direction, 1..500u64, 1..5000u64, 1..5000u64, 1..17u64, any::<bool>()).prop_map(
        |(direction, heads, queries, keys, size, causal)| Attention {
            direction,
            heads,
            queries,
            keys,
            head_size: 16 * size,
            causal,
            arithmetic: Arithmetic::Fp16,
            element_bytes: 2,
        },
    )
}

fn seconds(work: Work) -> f64 {
    price(&work, &Speed::small()).seconds
}

/// Not less, but for the last digits of floating point.
fn at_least(seconds: f64, bound: f64) -> bool {
    seconds >= bound * (1.0 - 1e-9)
}

proptest! {
    #[test]
    fn no_product_is_faster_than_the_roofline(it in product()) {
        let speed = Speed::small();
        let operations = 2.0 * (it.m * it.n * it.k * it.batch) as f64;
        let bytes = 2.0 * ((it.m * it.k + it.k * it.n + it.m * it.n) * it.batch) as f64;
        let seconds = seconds(Work::Product(it));
        prop_assert!(at_least(seconds, operations / speed.peak(it.arithmetic)));
        prop_assert!(at_least(seconds, bytes / speed.memory_bandwidth));
    }

    #[test]
    fn no_convolution_is_faster_than_the_roofline(it in convolution()) {
        let speed = Speed::small();
        let outputs = it.batch * it.outputs * it.output_positions;
        let operations = 2.0 * (outputs * it.inputs / it.groups * it.filter_positions) as f64;
        let seconds = seconds(Work::Convolution(it));
        prop_assert!(at_least(seconds, operations / speed.peak(it.arithmetic)));
        let bytes = 2.0 * (outputs + it.batch * it.inputs * it.input_positions) as f64;
        prop_assert!(at_least(seconds, bytes / speed.memory_bandwidth));
    }

    #[test]
    fn no_attention_is_faster_than_the_roofline(it in attention()) {
        let speed = Speed::small();
        let products = if it.direction == Direction::Forward { 2.0 } else { 5.0 };
        let kept = if it.causal { 0.5 } else { 1.0 };
        let pairs = (it.heads * it.queries * it.keys) as f64;
        let operations = 2.0 * products * kept * pairs * it.head_size as f64;
        prop_assert!(at_least(seconds(Work::Attention(it)), operations / speed.peak(it.arithmetic)));
    }

    #[test]
    fn twice_the_rows_columns_depth_or_batch_never_takes_less(it in product()) {
        let once = seconds(Work::Product(it));
        for twice in [
            Product { m: 2 * it.m, ..it },
            Product { n: 2 * it.n, ..it },
            Product { k: 2 * it.k, ..it },
            Product { batch: 2 * it.batch, ..it },
        ] {
            prop_assert!(at_least(seconds(Work::Product(twice)), once), "{twice:?}");
        }
    }

    #[test]
    fn one_row_more_never_takes_less(it in product()) {
        let once = seconds(Work::Product(it));
        for more in [
            Product { m: 1 + it.m, ..it },
            Product { n: 1 + it.n, ..it },
            Product { k: 1 + it.k, ..it },
        ] {
            prop_assert!(at_least(seconds(Work::Product(more)), once), "{more:?}");
        }
    }

    #[test]
    fn twice_the_batch_of_a_convolution_never_takes_less(it in convolution()) {
        let twice = Convolution { batch: 2 * it.batch, ..it };
        prop_assert!(at_least(seconds(Work::Convolution(twice)), seconds(Work::Convolution(it))));
    }

    #[test]
    fn twice_the_heads_or_keys_of_an_attention_never_take_less(it in attention()) {
        let once = seconds(Work::Attention(it));
        for twice in [
            Attention { heads: 2 * it.heads, ..it },
            Attention { keys: 2 * it.keys, ..it },
            Attention { queries: 2 * it.queries, ..it },
        ] {
            prop_assert!(at_least(seconds(Work::Attention(twice)), once), "{twice:?}");
        }
    }

    #[test]
    fn twice_the_bytes_by_twice_the_threads_never_take_less(
        bytes in 1..1u64 << 40, threads in 1..1u64 << 30,
    ) {
        let it = Streaming { class: StreamingClass::Elementwise, bytes, threads };
        let twice = Streaming { bytes: 2 * bytes, threads: 2 * threads, ..it };
        prop_assert!(at_least(seconds(Work::Streaming(twice)), seconds(Work::Streaming(it))));
        prop_assert!(at_least(
            seconds(Work::Streaming(it)), bytes as f64 / Speed::small().memory_bandwidth
        ));
    }

    #[test]
    fn a_large_product_on_tensor_cores_never_takes_longer_in_16_bits(
        m in 512..8192u64, n in 512..8192u64, k in 512..8192u64,
    ) {
        let of = |arithmetic, bytes| seconds(Work::Product(Product {
            m, n, k, batch: 1, arithmetic, input_bytes: bytes, output_bytes: bytes,
        }));
        prop_assert!(at_least(of(Arithmetic::Fp32, 4), of(Arithmetic::Fp16, 2)));
        prop_assert!(at_least(of(Arithmetic::Fp32, 4), of(Arithmetic::Bf16, 2)));
    }
}
