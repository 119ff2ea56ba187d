//! Names of C++ as people write them.

use cpp_demangle::Symbol;

/// What the mangled `name` stands for; none if it is no mangled one.
pub(crate) fn demangle(name: &str) -> Option<String> {
    name.starts_with("_Z").then(|| Symbol::new(name).ok()?.demangle().ok()).flatten()
}

/// `name` if it is no mangled one, else what it stands for.
pub(crate) fn demangled(name: &str) -> String {
    demangle(name).unwrap_or_else(|| name.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernels_are_written_as_in_their_source_and_calls_as_they_are() {
        assert_eq!(demangled("_Z4fillIfEvPT_i"), "void fill<float>(float*, int)");
        assert_eq!(demangled("cublasGemmEx"), "cublasGemmEx");
        assert_eq!(demangled("_Znonsense"), "_Znonsense");
    }
}
