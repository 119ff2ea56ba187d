//! What a kernel's mangled name tells: its name, template arguments and parameters.

use crate::demangle::demangle;

/// A kernel's name, taken apart. Types are written as the demangler writes them.
pub(super) struct Signature {
    /// Without namespaces, e.g. `vectorized_elementwise_kernel`.
    pub(super) name: String,
    /// Of the kernel itself.
    pub(super) template: Vec<String>,
    pub(super) parameters: Vec<String>,
}

impl Signature {
    /// Takes mangled `name` apart. A name that is not mangled is that of a kernel of unknown parameters.
    pub(super) fn of(name: &str) -> Self {
        match demangle(name) {
            Some(text) => Self::read(&text),
            None => Self { name: name.to_owned(), template: Vec::new(), parameters: Vec::new() },
        }
    }

    /// Reads `void a::b<C, D>(E, F)`.
    fn read(text: &str) -> Self {
        let text = text.replace("(anonymous namespace)", ANONYMOUS);
        // Only the name of an instance of a template has its result type before it.
        let text = text.strip_prefix("void ").unwrap_or(&text);
        let (mut depth, mut template, mut end) = (0_usize, None, text.len());
        for (at, letter) in text.char_indices() {
            match letter {
                '(' if depth == 0 => {
                    end = at;
                    break;
                }
                '<' if depth == 0 => {
                    template = Some(at);
                    depth += 1;
                }
                '<' | '(' | '{' => depth += 1,
                '>' | ')' | '}' => depth = depth.saturating_sub(1),
                _ => {}
            }
        }
        let inner = |from: usize, to: usize| text.get(from + 1..to).map(split).unwrap_or_default();
        let close = text.rfind(')').unwrap_or(end);
        // Template arguments of a class before the kernel's own name are not the kernel's.
        let template = template.filter(|_| text[..end].trim_end().ends_with('>'));
        let path = &text[..template.unwrap_or(end)];
        Self {
            name: path.rsplit("::").next().unwrap_or(path).to_owned(),
            template: template
                .map_or(Vec::new(), |at| inner(at, text[..end].rfind('>').unwrap_or(end))),
            parameters: inner(end, close),
        }
    }

    /// Template argument `index`; empty where there is none.
    pub(super) fn template(&self, index: usize) -> &str {
        self.template.get(index).map_or("", String::as_str)
    }

    /// Type of parameter `index`; empty where there is none.
    pub(super) fn parameter(&self, index: usize) -> &str {
        self.parameters.get(index).map_or("", String::as_str)
    }
}

/// Stands for what the demangler writes with parentheses.
const ANONYMOUS: &str = "anonymous";

/// The parts of a list between commas that lie in no brackets.
pub(super) fn split(list: &str) -> Vec<String> {
    let (mut parts, mut depth, mut begin) = (Vec::new(), 0_usize, 0);
    for (at, letter) in list.char_indices() {
        match letter {
            '<' | '(' | '{' => depth += 1,
            '>' | ')' | '}' => depth = depth.saturating_sub(1),
            ',' if depth == 0 => {
                parts.push(list[begin..at].trim().to_owned());
                begin = at + 1;
            }
            _ => {}
        }
    }
    let last = list[begin..].trim();
    if !last.is_empty() {
        parts.push(last.to_owned());
    }
    parts
}

/// The template arguments of the first `name<…>` in `text`.
pub(super) fn template_of(text: &str, name: &str) -> Option<Vec<String>> {
    let mut from = 0;
    loop {
        let at = from + text[from..].find(name)?;
        let rest = &text[at + name.len()..];
        let begins =
            text[..at].chars().next_back().is_none_or(|it| !it.is_alphanumeric() && it != '_');
        if begins && rest.starts_with('<') {
            return Some(split(within(rest)?));
        }
        from = at + name.len();
    }
}

/// What lies between the bracket that `text` begins with and the one that closes it.
pub(super) fn within(text: &str) -> Option<&str> {
    let mut depth = 0_usize;
    for (at, letter) in text.char_indices() {
        match letter {
            '<' | '(' | '{' => depth += 1,
            '>' | ')' | '}' => {
                depth = depth.checked_sub(1)?;
                if depth == 0 {
                    return text.get(1..at);
                }
            }
            _ => {}
        }
    }
    None
}

/// A number as the demangler writes it, e.g. `4`, `4u`, `(unsigned long)4`.
pub(super) fn number(text: &str) -> Option<u64> {
    let text = text.rsplit(')').next()?.trim().trim_end_matches(['u', 'l']);
    text.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_taken_apart() {
        let found = Signature::of(
            "_ZN2at6native29vectorized_elementwise_kernelILi4ENS0_11FillFunctorIfEE\
             St5arrayIPcLm1EEEEviT0_T1_",
        );
        assert_eq!(found.name, "vectorized_elementwise_kernel");
        assert_eq!(found.template(1), "at::native::FillFunctor<float>");
        assert_eq!(found.parameters.len(), 3);
        assert_eq!(found.parameter(0), "int");
        let array = template_of(found.template(2), "array").unwrap();
        assert_eq!(number(&array[1]), Some(1));
    }

    #[test]
    fn anonymous_namespaces_and_plain_functions_are_read() {
        let found = Signature::read(
            "void at::native::(anonymous namespace)::max_pool<c10::Half, int>(c10::Half const*, int)",
        );
        assert_eq!(found.name, "max_pool");
        assert_eq!(found.template, ["c10::Half", "int"]);
        assert_eq!(found.parameters, ["c10::Half const*", "int"]);
        let found = Signature::read("at::native::amp_update(float*, int*, float const*, double)");
        assert_eq!((found.name.as_str(), found.parameters.len()), ("amp_update", 4));
        let found = Signature::of("triton_poi_fused_add_0");
        assert_eq!(found.name, "triton_poi_fused_add_0");
        assert!(found.template.is_empty() && found.parameters.is_empty());
    }

    #[test]
    fn a_template_is_found_by_its_whole_name() {
        let found = template_of("MyFunctor<int, Functor<a, b<c, d> > >", "Functor");
        assert_eq!(found.unwrap(), ["a", "b<c, d>"]);
        assert_eq!(template_of("Functors<a>", "Functor"), None);
    }
}
