//! Cost of each statement, from before the load to its end.

use std::sync::atomic::AtomicBool;

use super::collector::{CONTROL_DATABASE, Collected, Collector, Context, Started};
use crate::error::CollectError;
use crate::postgres::Statements;

const NAME: &str = "statements";

pub(super) fn start(context: &Context<'_>) -> Started {
    if !context.subject.collect.statements {
        return Ok(None);
    }
    let mut session = context.session(CONTROL_DATABASE, NAME)?;
    let before = Statements::before(&mut session, context.tested_database())?;
    Ok(before.map(|before| Box::new(before) as Box<dyn Collector>))
}

impl Collector for Statements {
    fn finish(self: Box<Self>, context: &Context<'_>, _: &AtomicBool) -> Result<Collected, CollectError> {
        let statements = self.since(&mut context.session(CONTROL_DATABASE, NAME)?)?;
        Ok(Collected { statements, ..Collected::default() })
    }
}
