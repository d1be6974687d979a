//! A block: a part of a campaign that one machine of a fleet measures.

use std::collections::BTreeSet;

use model::cell::Cell;
use model::plan::{Order, Plan, PlannedTrial};
use model::record::Trial;
use serde::{Deserialize, Serialize};

/// A part of a campaign that one machine measures.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Block {
    /// Its name: the same part of a campaign always has the same.
    pub name: String,
    /// What is measured.
    pub content: BlockContent,
}

/// What a block measures.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BlockContent {
    /// These trials, and invalid ones again.
    Trials(Vec<BlockTrial>),
    /// The sessions of a comparison until it is decided: its place in [`Plan::comparisons`].
    Comparison(usize),
}

/// A block to run, and the trials of it that have been run.
#[derive(Clone, Debug, PartialEq)]
pub struct NextBlock {
    /// The block.
    pub block: Block,
    /// Its trials of earlier attempts.
    pub trials: Vec<Trial>,
}

/// Blocks of one campaign that run one after another on the same servers.
pub trait MoreBlocks: Sync {
    /// The next block, when the one before has been run; none if there is none.
    fn next(&self) -> Option<NextBlock>;
}

/// A trial of a block.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BlockTrial {
    /// Its place in the order of the campaign, from 1.
    pub position: u32,
    /// Index of its cell in [`Plan::cells`].
    pub cell: usize,
    /// Number of the repeat of the cell, from 1.
    pub repeat: u32,
    /// Reason for a trial in addition to the plan; none for a planned trial.
    pub reason: Option<String>,
}

impl BlockTrial {
    pub(crate) fn planned(&self) -> PlannedTrial {
        PlannedTrial { position: self.position, cell: self.cell, repeat: self.repeat }
    }
}

impl Block {
    /// Whether the plan has what the block measures.
    pub fn is_of(&self, plan: &Plan) -> bool {
        match &self.content {
            BlockContent::Trials(trials) => {
                !trials.is_empty() && trials.iter().all(|trial| trial.cell < plan.cells.len())
            }
            BlockContent::Comparison(of) => plan.run.order == Order::Paired && *of < plan.comparisons().len(),
        }
    }

    /// The cells that the block measures, in the order of the plan.
    pub fn cells<'p>(&self, plan: &'p Plan) -> Vec<&'p Cell> {
        self.cell_indices(plan).into_iter().filter_map(|cell| plan.cells.get(cell)).collect()
    }

    pub(crate) fn cell_indices(&self, plan: &Plan) -> BTreeSet<usize> {
        match &self.content {
            BlockContent::Trials(trials) => trials.iter().map(|trial| trial.cell).collect(),
            BlockContent::Comparison(of) => {
                plan.comparisons().get(*of).into_iter().flat_map(|(a, b)| [*a, *b]).collect()
            }
        }
    }
}
