//! Shares of functions in a profile, by themselves and with everything that they call.

use std::collections::BTreeMap;

use model::profile::{KERNEL_SUFFIX, Stacks};

/// A function in some stacks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Function {
    /// Its name.
    pub name: String,
    /// Samples in which it is the innermost function.
    pub own: u64,
    /// Samples that contain it.
    pub inclusive: u64,
}

/// All functions, the one with the most own samples first.
pub fn functions(stacks: &Stacks) -> Vec<Function> {
    let mut found: BTreeMap<&str, [u64; 2]> = BTreeMap::new();
    let mut seen: Vec<&str> = Vec::new();
    for (stack, &samples) in &stacks.samples {
        seen.clear();
        let mut innermost = None;
        for frame in frames(stack) {
            innermost = Some(frame);
            // A recursive function counts once.
            if !seen.contains(&frame) {
                seen.push(frame);
                found.entry(frame).or_default()[1] += samples;
            }
        }
        if let Some(frame) = innermost {
            found.entry(frame).or_default()[0] += samples;
        }
    }
    let mut functions: Vec<Function> = found
        .into_iter()
        .map(|(name, [own, inclusive])| Function { name: name.to_owned(), own, inclusive })
        .collect();
    functions.sort_by(|a, b| (b.own, b.inclusive, &a.name).cmp(&(a.own, a.inclusive, &b.name)));
    functions
}

/// The functions of a folded stack, from the outermost to the innermost, without the process's name at the start.
pub fn frames(stack: &str) -> impl DoubleEndedIterator<Item = &str> {
    let functions = stack.split_once(';').map(|(_, functions)| functions);
    functions.into_iter().flat_map(|functions| functions.split(';'))
}

/// The same stacks with every function's name [`base_name`].
pub fn normalize_names(stacks: &Stacks) -> Stacks {
    let mut normalized = Stacks { role: stacks.role.clone(), ..Stacks::default() };
    for (stack, samples) in &stacks.samples {
        let (process, _) = stack.split_once(';').unwrap_or((stack, ""));
        let named = std::iter::once(process.to_owned()).chain(frames(stack).map(base_name));
        *normalized.samples.entry(named.collect::<Vec<_>>().join(";")).or_default() += samples;
    }
    normalized
}

/// A function's name without suffixes added by the compiler (`.isra.0`, `.constprop.0`, `.part.0`, `.cold`, …), so that
/// it is the same in another build.
pub fn base_name(frame: &str) -> String {
    let (name, suffix) = match frame.strip_suffix(KERNEL_SUFFIX) {
        Some(name) => (name, KERNEL_SUFFIX),
        None => (frame, ""),
    };
    let in_c = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.');
    match name.find('.') {
        Some(at @ 1..) if name.chars().all(in_c) => format!("{}{suffix}", &name[..at]),
        _ => frame.to_owned(),
    }
}

/// Whether a frame is the function of this name, with or without the kernel's suffix.
pub fn is_named(frame: &str, name: &str) -> bool {
    frame == name || frame.strip_suffix(KERNEL_SUFFIX) == Some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_recursive_function_is_counted_once() {
        let text =
            "postgres;main;walk;walk;eval 3\npostgres;main;walk 2\npostgres;main;read_[k] 1\npostgres 4\n";
        let functions = functions(&Stacks::from_folded("load", text).unwrap());
        let figures: Vec<(&str, u64, u64)> =
            functions.iter().map(|f| (f.name.as_str(), f.own, f.inclusive)).collect();
        assert_eq!(figures, [("eval", 3, 3), ("walk", 2, 5), ("read_[k]", 1, 1), ("main", 0, 6)]);
    }

    #[test]
    fn compiler_suffixes_are_removed() {
        for (frame, name) in [
            ("ServerLoop.isra.0", "ServerLoop"),
            ("ep_item_poll.isra.0_[k]", "ep_item_poll_[k]"),
            ("hashtext.cold", "hashtext"),
            ("[libc.so.6]", "[libc.so.6]"),
            ("std::f64::<impl f64>::abs", "std::f64::<impl f64>::abs"),
            ("__libc_start_main@@GLIBC_2.34", "__libc_start_main@@GLIBC_2.34"),
        ] {
            assert_eq!(base_name(frame), name);
        }
        let text = "p.x;f.isra.0;g_[k] 1\np.x;f;g_[k] 2\np.x 3\n";
        let merged = normalize_names(&Stacks::from_folded("load", text).unwrap());
        assert_eq!(merged.folded(), "p.x 3\np.x;f;g_[k] 3\n");
        assert!(is_named("sys_read_[k]", "sys_read") && is_named("f", "f") && !is_named("f", "g"));
    }
}
