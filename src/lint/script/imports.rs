use std::collections::HashMap;

use ruff_python_ast::AnyNodeRef;

use crate::lint::tree::Tree;

/// What the imported names stand for.
#[derive(Debug)]
pub(super) struct Imports(HashMap<String, String>);

impl Imports {
    pub(super) fn of(tree: &Tree<'_>) -> Self {
        let mut full = HashMap::new();
        for id in tree.ids() {
            match tree.node(id) {
                AnyNodeRef::StmtImport(import) => {
                    for alias in &import.names {
                        let name = alias.name.to_string();
                        let (known_as, stands_for) = match &alias.asname {
                            Some(as_name) => (as_name.to_string(), name),
                            None => {
                                let root = name.split('.').next().unwrap_or_default().to_owned();
                                (root.clone(), root)
                            }
                        };
                        full.insert(known_as, stands_for);
                    }
                }
                AnyNodeRef::StmtImportFrom(import) if import.level == 0 => {
                    let module =
                        import.module.as_ref().map(ToString::to_string).unwrap_or_default();
                    for alias in &import.names {
                        let known_as = alias.asname.as_ref().unwrap_or(&alias.name).to_string();
                        full.insert(known_as, format!("{module}.{}", alias.name));
                    }
                }
                _ => {}
            }
        }
        Self(full)
    }

    pub(super) fn has(&self, package: &str) -> bool {
        self.0.values().any(|full| full.split('.').next() == Some(package))
    }

    pub(super) fn full(&self, path: &str) -> String {
        let (first, rest) = match path.split_once('.') {
            Some((first, rest)) => (first, Some(rest)),
            None => (path, None),
        };
        match (self.0.get(first), rest) {
            (Some(full), Some(rest)) => format!("{full}.{rest}"),
            (Some(full), None) => full.clone(),
            (None, _) => path.to_owned(),
        }
    }
}
