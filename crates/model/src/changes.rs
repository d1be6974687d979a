//! Consequences of editing a campaign for a run that started with the earlier text.

use std::fmt::Debug;

use crate::cell::Cell;
use crate::plan::{Plan, RunSettings};
use crate::secret::MaskSecrets;

/// The differences between two plans of one campaign.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Changes {
    /// Cells that only the new plan has.
    pub added: Vec<Cell>,
    /// Cells that only the old plan has; their trials stay in the store.
    pub removed: Vec<Cell>,
    /// Number of cells in both plans.
    pub kept: usize,
    /// Other changes that a started run allows: repeats, order. Each as `name: old → new`.
    pub allowed: Vec<String>,
    /// Changes that make new trials differ from those already run, so that one run can't contain both. Each as above.
    pub conflicting: Vec<String>,
}

impl Changes {
    /// Compares two plans. Secrets do not count: those of a stored plan are masked.
    pub fn between(old: &Plan, new: &Plan) -> Self {
        let (mut old, mut new) = (old.clone(), new.clone());
        old.mask_secrets();
        new.mask_secrets();
        Self::between_masked(&old, &new)
    }

    fn between_masked(old: &Plan, new: &Plan) -> Self {
        let only_in = |plan: &Plan, other: &Plan| -> Vec<Cell> {
            plan.cells.iter().filter(|cell| !other.cells.contains(cell)).cloned().collect()
        };
        let mut changes = Self {
            added: only_in(new, old),
            removed: only_in(old, new),
            kept: new.cells.iter().filter(|cell| old.cells.contains(cell)).count(),
            ..Self::default()
        };
        let RunSettings {
            repeats,
            order,
            seed,
            compare,
            effect,
            max_time,
            cpu_decides,
            figure,
            confidence,
            link_order,
            build_while_measuring,
            retries,
            vacuum,
            checkpoint,
            settle,
            processors: _,
        } = new.run;
        note_change(&mut changes.allowed, "repeats", &old.run.repeats, &repeats);
        let of_order = if old.run.order.is_paired() == order.is_paired() {
            &mut changes.allowed
        } else {
            &mut changes.conflicting
        };
        note_change(of_order, "order", &old.run.order, &order);
        note_change(&mut changes.allowed, "compare", &old.run.compare, &compare);
        note_change(&mut changes.allowed, "effect", &old.run.effect, &effect);
        note_change(&mut changes.allowed, "max_time", &old.run.max_time, &max_time);
        // Which figures decide must not follow from what they show.
        note_change(&mut changes.conflicting, "cpu_decides", &old.run.cpu_decides, &cpu_decides);
        note_change(&mut changes.conflicting, "figure", &old.run.figure, &figure);
        note_change(&mut changes.allowed, "confidence", &old.run.confidence, &confidence);
        note_change(&mut changes.allowed, "link_order", &old.run.link_order, &link_order);
        let before = &old.run.build_while_measuring;
        note_change(&mut changes.allowed, "build_while_measuring", before, &build_while_measuring);
        note_change(&mut changes.allowed, "retries", &old.run.retries, &retries);
        note_change(&mut changes.conflicting, "seed", &old.run.seed, &seed);
        note_change(&mut changes.conflicting, "vacuum", &old.run.vacuum, &vacuum);
        note_change(&mut changes.conflicting, "checkpoint", &old.run.checkpoint, &checkpoint);
        note_change(&mut changes.conflicting, "settle", &old.run.settle, &settle);
        note_change(&mut changes.conflicting, "collect", &old.collect, &new.collect);
        note_change(&mut changes.conflicting, "profile", &old.profile, &new.profile);
        note_change(&mut changes.conflicting, "validity", &old.validity, &new.validity);
        note_change(&mut changes.conflicting, "hooks", &old.hooks, &new.hooks);
        note_change(&mut changes.conflicting, "load_hosts", &old.load_hosts, &new.load_hosts);
        for server in &new.servers {
            if let Some(before) = old.servers.iter().find(|before| before.name == server.name) {
                let what = format!("server {}", server.name);
                note_change(&mut changes.conflicting, &what, &before.source, &server.source);
                note_change(&mut changes.conflicting, &what, &before.initdb, &server.initdb);
            }
        }
        changes
    }

    /// Whether the plans are equivalent.
    pub fn is_empty(&self) -> bool {
        self.added.is_empty()
            && self.removed.is_empty()
            && self.allowed.is_empty()
            && self.conflicting.is_empty()
    }
}

fn note_change<T: PartialEq + Debug>(changes: &mut Vec<String>, name: &str, old: &T, new: &T) {
    if old != new {
        changes.push(format!("{name}: {old:?} → {new:?}"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::Campaign;

    const TEXT: &str = "name = 'n'\n[factors]\nserver = ['mine']\nworkload = ['select-only']\nclients = [1, 2]\n\
                        [run]\nrepeats = 3\nseed = 1\n[servers.mine]\nbin = '/a'\n";

    fn changes(edit: impl Fn(&str) -> String) -> Changes {
        let plan = |text: &str| Plan::new(&Campaign::parse(text).unwrap(), 1).unwrap();
        Changes::between(&plan(TEXT), &plan(&edit(TEXT)))
    }

    #[test]
    fn notes_and_comments_are_no_changes() {
        assert!(changes(|text| format!("notes = 'x'\n{text}# more")).is_empty());
    }

    #[test]
    fn added_and_removed_cells_are_found() {
        let found = changes(|text| text.replace("[1, 2]", "[2, 4, 8]").replace("repeats = 3", "repeats = 5"));
        assert_eq!((found.added.len(), found.removed.len(), found.kept), (2, 1, 1));
        assert_eq!(found.allowed.len(), 1);
        assert_eq!(found.conflicting, Vec::<String>::new());
    }

    #[test]
    fn another_password_is_no_change_and_another_command_is() {
        let with_secrets = format!(
            "{}[settings.default]\nprimary_conninfo = 'host=a password=one'\narchive_command = 'PGPASSWORD=one copy %p'\n\
             [hooks]\nbefore_trial = 'curl https://me:one@host/'\n",
            TEXT
        );
        let plan = |text: &str| Plan::new(&Campaign::parse(text).unwrap(), 1).unwrap();
        let changes = |text: &str| Changes::between(&plan(&with_secrets), &plan(text));
        assert!(changes(&with_secrets.replace("one", "two")).is_empty());
        assert!(changes(&crate::secret::mask_campaign(&with_secrets)).is_empty());
        assert_eq!(changes(&with_secrets.replace("copy", "move")).added.len(), 2);
        let found = changes(&with_secrets.replace("host/", "other/").replace("one", "two"));
        assert!(found.conflicting[0].contains("(masked)@other"), "{found:?}");
        assert!(!format!("{found:?}").contains("two"), "{found:?}");
    }

    #[test]
    fn changes_that_alter_trials_conflict() {
        let found =
            changes(|text| text.replace("'/a'", "'/b'").replace("seed = 1", "seed = 1\nvacuum = 'freeze'"));
        assert_eq!(found.conflicting.len(), 2, "{found:?}");
        // What decides must not be chosen by the results.
        let paired = |run: &str| {
            let text = TEXT.replace("['mine']", "['17', '18']").replace("repeats = 3", "order = 'paired'");
            Plan::new(&Campaign::parse(&text.replace("seed = 1", run)).unwrap(), 1).unwrap()
        };
        let found = Changes::between(&paired("seed = 1"), &paired("seed = 1\ncpu_decides = true"));
        assert_eq!(found.conflicting, ["cpu_decides: false → true"]);
    }
}
