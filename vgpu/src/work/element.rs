//! Sizes of the elements that C++ types name.

/// Bytes of a value of type `name`; pointers, references and `const` are looked through.
pub(super) fn bytes(name: &str) -> Option<u64> {
    let name = name.trim().trim_end_matches(['*', '&', ' ']);
    let name = name.trim_end_matches("__restrict").trim_end_matches(['*', ' ']);
    let name = name.trim_start_matches("const ").trim_end_matches(" const").trim();
    let last = name.rsplit("::").next().unwrap_or(name);
    Some(match last {
        "bool" | "char" | "signed char" | "unsigned char" | "byte" => 1,
        "Float8_e4m3fn" | "Float8_e5m2" | "Float8_e4m3fnuz" | "Float8_e5m2fnuz"
        | "Float8_e8m0fnu" | "qint8" | "quint8" => 1,
        "short" | "unsigned short" => 2,
        "Half" | "BFloat16" | "__half" | "__nv_bfloat16" | "half_t" | "bfloat16_t" => 2,
        "int" | "unsigned int" | "unsigned" | "float" | "qint32" => 4,
        "long" | "unsigned long" | "long long" | "unsigned long long" | "double" => 8,
        _ => {
            // Looked for from the left: the argument may have a path of its own.
            let (path, argument) = name.split_once('<')?;
            let argument = argument.strip_suffix('>')?;
            match path.rsplit("::").next()? {
                "complex" => 2 * bytes(argument)?,
                "OpaqueType" => super::signature::number(argument)?,
                _ => return None,
            }
        }
    })
}

#[cfg(test)]
mod tests {
    use super::bytes;

    #[test]
    fn elements_are_told_by_their_types() {
        for (name, expected) in [
            ("float", Some(4)),
            ("c10::Half const*", Some(2)),
            ("float const* __restrict", Some(4)),
            ("c10::complex<double>", Some(16)),
            ("c10::complex<c10::Half>", Some(4)),
            ("at::native::anonymous::OpaqueType<8u>*", Some(8)),
            ("bool&", Some(1)),
            ("at::cuda::Array<char*, 2>", None),
        ] {
            assert_eq!(bytes(name), expected, "{name}");
        }
    }
}
