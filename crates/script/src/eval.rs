//! Evaluation of expressions.

use crate::apply;
use crate::expr::{Expr, Unary};
use crate::{EvalError, RandomState, Value, Variables};

impl Expr {
    /// Evaluates the expression with one client's variables and random numbers.
    ///
    /// Arguments are evaluated from left to right (`a > b` being `b < a`), and draw their random numbers in that order.
    /// `debug(x)` is `x`; see [`Expr::eval_with_debug`]. Allocates only for errors.
    pub fn eval(&self, variables: &Variables, random: &mut RandomState) -> Result<Value, EvalError> {
        self.eval_with_debug(variables, random, &mut |_| {})
    }

    /// Like [`Expr::eval`]; calls `debug` with the value of every `debug(x)`.
    pub fn eval_with_debug(
        &self,
        variables: &Variables,
        random: &mut RandomState,
        debug: &mut dyn FnMut(Value),
    ) -> Result<Value, EvalError> {
        Evaluation { variables, random, debug }.value(self)
    }
}

/// pgbench's `MAX_FARGS`.
const MAX_ARGUMENTS: usize = 16;

struct Evaluation<'a> {
    variables: &'a Variables,
    random: &'a mut RandomState,
    debug: &'a mut dyn FnMut(Value),
}

impl Evaluation<'_> {
    fn value(&mut self, expr: &Expr) -> Result<Value, EvalError> {
        match expr {
            Expr::Constant(value) => Ok(*value),
            Expr::Variable(slot) => self.variables.get(*slot),
            Expr::Unary(function, argument) => {
                let value = self.value(argument)?;
                if *function == Unary::Debug {
                    (self.debug)(value);
                }
                apply::unary(*function, value)
            }
            Expr::Binary(function, arguments) => {
                let [a, b] = arguments.as_ref();
                let (a, b) = (self.value(a)?, self.value(b)?);
                apply::binary(*function, a, b, self.random)
            }
            Expr::Ternary(function, arguments) => {
                let [a, b, c] = arguments.as_ref();
                let arguments = [self.value(a)?, self.value(b)?, self.value(c)?];
                apply::ternary(*function, arguments, self.random)
            }
            Expr::Extremum(function, arguments) => {
                let mut values = [Value::Null; MAX_ARGUMENTS];
                let Some(values) = values.get_mut(..arguments.len()) else {
                    return Err(EvalError::TooManyArguments { maximum: MAX_ARGUMENTS });
                };
                for (value, argument) in values.iter_mut().zip(arguments) {
                    *value = self.value(argument)?;
                }
                apply::extremum(*function, values)
            }
            Expr::And(sides) => self.logical(sides, false),
            Expr::Or(sides) => self.logical(sides, true),
            Expr::Case { arms, otherwise } => {
                for (condition, value) in arms {
                    if self.value(condition)?.is_truthy() {
                        return self.value(value);
                    }
                }
                self.value(otherwise)
            }
        }
    }

    /// Evaluates `and`, which `false` on the left decides, or `or`, which `true` does. Null on the left decides, too:
    /// unlike in SQL, `null and false` is null.
    fn logical(&mut self, sides: &[Expr; 2], decisive: bool) -> Result<Value, EvalError> {
        let left = self.value(&sides[0])?;
        if left.is_null() || left.to_bool()? == decisive {
            return Ok(left);
        }
        let right = self.value(&sides[1])?;
        if right.is_null() { Ok(Value::Null) } else { right.to_bool().map(Value::Bool) }
    }
}
