//! Kernels of PyTorch's TensorIterator: each output element from the input elements at the same place.
//!
//! Contiguous tensors take `vectorized_elementwise_kernel(int n, functor, array of pointers)` or
//! `unrolled_elementwise_kernel`, which may convert; others `elementwise_kernel(int n, lambda)`, where the
//! lambda holds a table of sizes and strides (ATen, native/cuda/CUDALoops.cuh). The functor's type tells
//! the elements' sizes.

use vramfit_vgpu_cost::StreamingClass;

use super::element;
use super::signature::{Signature, number, split, template_of, within};
use super::tensors::Strided;
use super::{Rule, streaming};

pub(super) fn rule(signature: &Signature) -> Option<Rule> {
    match signature.name.as_str() {
        "vectorized_elementwise_kernel" => {
            contiguous(signature.template(1), operands(signature.template(2))?)
        }
        "unrolled_elementwise_kernel" => unrolled(signature),
        "unrolled_elementwise_kernel_for_multi_outputs" => {
            let operands = operands(signature.template(2))?;
            let outputs = number(signature.template(0))? as usize;
            let inputs = inputs(signature.template(1)).unwrap_or_default();
            let each = inputs.first().copied().unwrap_or(4);
            let inputs = inputs.iter().sum::<u64>();
            let inputs = if inputs > 0 { inputs } else { each * (operands - outputs) as u64 };
            per_element(inputs + each * outputs as u64)
        }
        "elementwise_kernel" => {
            strided(signature.template(1 + usize::from(signature.template.len() > 2)))
        }
        "index_elementwise_kernel" => indexed(signature.template(2)),
        "_scatter_gather_elementwise_kernel" => {
            let functor = signature.template(2);
            let internal = template_of(functor, "_cuda_scatter_gather_internal_kernel")
                .or_else(|| template_of(functor, "_cuda_scatter_fill_internal_kernel"))?;
            let element = internal.iter().find_map(|it| element::bytes(it))?;
            // The index, the value and the place that it comes from or goes to, which sums read too.
            let passes = if functor.contains("ReduceAdd") { 3 } else { 2 };
            let bytes = INDEX_BYTES + passes * element;
            Some(Box::new(move |call| {
                streaming(StreamingClass::Gather, call.number(0, 0, 4)? * bytes, call)
            }))
        }
        "elementwise_kernel_with_index" => {
            let index = element::bytes(signature.parameter(0))?;
            // `(n, functor, result*)`: the type of the result is often only that of the functor's, which
            // the name does not tell; ranges are mostly of indices.
            let bytes = element::bytes(signature.parameter(2)).unwrap_or(INDEX_BYTES);
            Some(Box::new(move |call| {
                streaming(StreamingClass::Elementwise, call.number(0, 0, index)? * bytes, call)
            }))
        }
        "distribution_elementwise_grid_stride_kernel" => {
            let transform = signature.template(3);
            let types = template_of(transform, "distribution_nullary_kernel")?;
            let bytes = element::bytes(types.first()?)?;
            Some(Box::new(move |call| {
                let elements = call.number(0, 0, 8)?;
                streaming(StreamingClass::Elementwise, elements * bytes, call)
            }))
        }
        _ => None,
    }
}

/// Bytes of PyTorch's indices.
const INDEX_BYTES: u64 = 8;

/// Operands of the array of pointers of type `array`: `std::array<char*, 3ul>`, once
/// `at::detail::Array<char*, 3>`.
fn operands(array: &str) -> Option<usize> {
    let template = template_of(array, "array").or_else(|| template_of(array, "Array"))?;
    number(template.get(1)?).map(|count| count as usize)
}

fn per_element(bytes: u64) -> Option<Rule> {
    Some(Box::new(move |call| {
        streaming(StreamingClass::Elementwise, call.number(0, 0, 4)? * bytes, call)
    }))
}

fn contiguous(functor: &str, operands: usize) -> Option<Rule> {
    per_element(sizes(functor, operands)?.iter().sum())
}

fn unrolled(signature: &Signature) -> Option<Rule> {
    let count = operands(signature.template(1))?;
    let sizes = sizes(signature.template(0), count);
    let at = |name: &str| signature.parameters.iter().position(|it| it.contains(name));
    match (at("LoadWithCast"), at("StoreWithCast")) {
        // Each begins with a type a byte for its operands, then tells their sizes.
        (Some(load), Some(store)) => {
            let inputs = count - 1;
            let first = inputs.max(1).next_multiple_of(4);
            Some(Box::new(move |call| {
                let written = call.number(store, 4, 4)?;
                let read = (0..inputs).map(|input| call.number(load, first + 4 * input, 4));
                let bytes = read.sum::<Option<u64>>()? + written;
                streaming(StreamingClass::Elementwise, call.number(0, 0, 4)? * bytes, call)
            }))
        }
        _ => {
            let sizes = sizes?;
            // Operands that are read out of order have their strides in the calculator of offsets.
            match signature.parameters.iter().position(|it| it.starts_with("OffsetCalculator")) {
                Some(at) => {
                    let written = sizes[0];
                    Some(Box::new(move |call| {
                        let elements = call.number(0, 0, 4)?;
                        let strided = Strided::read(call, at, 0, sizes.len() - 1, elements);
                        let read = (1..sizes.len()).map(|operand| {
                            let whole = strided.as_ref().map(|it| it.distinct(operand - 1));
                            whole.unwrap_or(elements) * sizes[operand]
                        });
                        let bytes = read.sum::<u64>() + elements * written;
                        streaming(StreamingClass::Elementwise, bytes, call)
                    }))
                }
                None => per_element(sizes.iter().sum()),
            }
        }
    }
}

fn strided(lambda: &str) -> Option<Rule> {
    let converts = template_of(lambda, "gpu_kernel_impl");
    let plain = template_of(lambda, "gpu_kernel_impl_nocast");
    let functor = plain.as_ref().or(converts.as_ref())?.first()?;
    let count = arity(functor)? + 1;
    let own = sizes(functor, count)?;
    let converts = plain.is_none();
    Some(Box::new(move |call| {
        let elements = call.number(0, 0, 4)?;
        let bytes = match Strided::read(call, 1, 0, count, elements) {
            // Where types are converted the functor's are not those of the operands; of an operand that
            // leaves no gaps, the shortest stride is the element's size.
            Some(it) => (0..count)
                .map(|operand| {
                    let stride = it.shortest(operand).filter(|_| converts);
                    let size = stride.filter(|it| matches!(it, 1 | 2 | 4 | 8 | 16));
                    it.distinct(operand) * size.unwrap_or(own[operand])
                })
                .sum(),
            None => elements * own.iter().sum::<u64>(),
        };
        streaming(StreamingClass::Elementwise, bytes, call)
    }))
}

/// `index_elementwise_kernel(n, lambda)`: the lambda begins with a table of strides for output, input and
/// first index; where the index leads, input (or, of `index_put`, output) has no stride.
fn indexed(lambda: &str) -> Option<Rule> {
    let element = [
        "index_kernel_impl",
        "index_put_kernel_impl",
        "index_fill_kernel_impl",
        "index_copy_kernel_impl",
    ]
    .iter()
    .find_map(|name| element::bytes(template_of(lambda, name)?.first()?))
    .or_else(|| {
        element::bytes(
            template_of(lambda, "OpaqueType").map(|it| format!("OpaqueType<{}>", it[0]))?.as_str(),
        )
    })?;
    let class = StreamingClass::Gather;
    Some(Box::new(move |call| {
        let elements = call.number(0, 0, 4)?;
        let indices = Strided::read(call, 1, 0, 3, elements).map_or(elements, |it| it.distinct(2));
        streaming(class, elements * 2 * element + indices * INDEX_BYTES, call)
    }))
}

/// Inputs of `functor`.
fn arity(functor: &str) -> Option<usize> {
    if let Some(inputs) = lambda(functor) {
        return Some(inputs.len());
    }
    let name = short(functor);
    Some(match name {
        "FillFunctor" => 0,
        "AUnaryFunctor" | "BUnaryFunctor" => 1,
        _ if name.contains("OnSelf") => 1,
        "BinaryFunctor" | "CompareFunctor" | "CompareEqFunctor" => 2,
        _ if name.starts_with("CUDAFunctor") => 2,
        _ => 1,
    })
}

/// A type's name without namespaces and template arguments.
fn short(name: &str) -> &str {
    let name = name.split('<').next().unwrap_or(name);
    name.rsplit("::").next().unwrap_or(name)
}

/// The parameters of the lambda that `functor` names, if it is one.
fn lambda(functor: &str) -> Option<Vec<String>> {
    if !functor.ends_with('}') {
        return None;
    }
    let at = functor.rfind("{lambda(")?;
    Some(split(within(&functor[at + "{lambda".len()..])?))
}

fn inputs(functor: &str) -> Option<Vec<u64>> {
    lambda(functor)?.iter().map(|it| element::bytes(it)).collect()
}

/// Functions whose result is a truth value, as they appear in the names of lambdas.
const PREDICATES: [&str; 8] =
    ["logical_", "isposinf", "isneginf", "signbit", "isin_", "compare_", "isnan", "isinf"];

/// Lambdas whose result has another size than their operands.
const RESULTS: [(&str, u64); 6] = [
    ("bfloat16tofloat32_copy", 4),
    ("float16tofloat32_copy", 4),
    ("bfloat16_copy_kernel", 2),
    ("float16_copy_kernel", 2),
    ("float8_copy_kernel", 1),
    ("float8_e4m3fn_copy", 1),
];

/// Bytes of an element of each of the operands of `functor`, the result first.
fn sizes(functor: &str, operands: usize) -> Option<Vec<u64>> {
    if let Some(parameters) = lambda(functor) {
        let inputs: Vec<u64> =
            parameters.iter().map(|it| element::bytes(it)).collect::<Option<_>>()?;
        let known =
            RESULTS.iter().find(|(name, _)| functor.contains(name)).map(|(_, bytes)| *bytes);
        let predicate = PREDICATES.iter().any(|name| functor.contains(name)).then_some(1);
        // Conditions and masks choose from the values beside them.
        let value = parameters.iter().position(|it| it != "bool").unwrap_or_default();
        let result = known.or(predicate).or_else(|| inputs.get(value).copied());
        let mut sizes = vec![result?];
        sizes.extend(&inputs);
        sizes.resize(operands, result?);
        return Some(sizes);
    }
    let template = template_of(functor, short(functor)).unwrap_or_default();
    let of = |index: usize| template.get(index).and_then(|it| element::bytes(it));
    let sizes = match short(functor) {
        "BinaryFunctor" => vec![of(2)?, of(0)?, of(1)?],
        "AUnaryFunctor" => vec![of(2)?, of(1)?],
        "BUnaryFunctor" => vec![of(2)?, of(0)?],
        name if name.starts_with("Compare") => {
            let mut sizes = vec![of(0)?; operands];
            sizes[0] = 1;
            sizes
        }
        _ => {
            let each = of(0).or_else(|| template.iter().find_map(|it| element::bytes(it)));
            vec![each?; operands]
        }
    };
    (sizes.len() == operands).then_some(sizes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functors_tell_the_sizes_of_their_operands() {
        for (functor, operands, expected) in [
            ("at::native::FillFunctor<float>", 1, vec![4]),
            ("at::native::CUDAFunctor_add<c10::Half>", 3, vec![2, 2, 2]),
            (
                "at::native::BinaryFunctor<long, long, bool, at::native::CompareEqFunctor<long> >",
                3,
                vec![1, 8, 8],
            ),
            ("at::native::AUnaryFunctor<float, double, bool, F<double> >", 2, vec![1, 8]),
            ("at::native::anonymous::CompareFunctor<long>", 3, vec![1, 8, 8]),
            (
                "at::native::float16_copy_kernel_cuda(at::TensorIteratorBase&)::{lambda(float)#1}",
                2,
                vec![2, 4],
            ),
            (
                "a::where_kernel_impl(T&)::{lambda()#1}::operator()() const::{lambda(bool, c10::BFloat16, c10::BFloat16)#1}",
                4,
                vec![2, 1, 2, 2],
            ),
            ("a::masked_fill_kernel(T&)::{lambda(float, bool)#1}", 3, vec![4, 4, 1]),
            (
                "a::logical_not_kernel_cuda(T&)::{lambda()#1}::operator()() const::{lambda(float)#1}",
                2,
                vec![1, 4],
            ),
        ] {
            assert_eq!(sizes(functor, operands), Some(expected), "{functor}");
        }
        assert_eq!(sizes("at::native::Unheard", 2), None);
    }

    #[test]
    fn the_array_of_pointers_is_known_by_both_its_names() {
        assert_eq!(operands("std::array<char*, (unsigned long)3>"), Some(3));
        assert_eq!(operands("at::detail::Array<char*, 2>"), Some(2));
    }
}
