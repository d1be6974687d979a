import { appendFileSync } from 'node:fs';
import type { Reporter, TestCase } from 'vitest/node';

/** Adds tests that passed when they were run once more to the file of such tests, as `setup/built` does. */
export default class Retried implements Reporter {
  onTestCaseResult(test: TestCase): void {
    const file = process.env.PGDYNO_RETRIED_TESTS;
    if (file && test.diagnostic()?.flaky) appendFileSync(file, `${test.module.relativeModuleId}: ${test.fullName}\n`);
  }
}
