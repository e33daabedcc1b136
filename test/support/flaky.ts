import { appendFileSync } from "node:fs";
import { relative } from "node:path";
import type { Reporter, TestCase, TestModule } from "vitest/node";

/** Enough for the report of a failed soak. */
const MOST_LINES = 60;

/**
 * Reports at the end of a run which tests passed only on a retry. Each is a fault to find, in the test or in Sallyport.
 * They are also appended to the file in the environment variable FLAKY_TESTS, for checks that consist of several runs.
 */
export default class Flaky implements Reporter {
  onTestRunEnd(modules: readonly TestModule[]): void {
    const flaky = modules
      .flatMap((module) => [...module.children.allTests("passed")])
      .filter((test) => test.diagnostic()?.flaky === true)
      .map(lineOf);
    if (flaky.length === 0) return;
    const file = process.env["FLAKY_TESTS"];
    if (file !== undefined) appendFileSync(file, flaky.join(""));
    console.error(`\nFLAKY: failed, and passed when tried again\n${flaky.join("")}`);
  }
}

/** Formats a test with the message of its failure. */
function lineOf(test: TestCase): string {
  const file = relative(process.cwd(), test.module.moduleId);
  const [error] = test.result().errors ?? [];
  const why = (error?.message ?? "").split("\n").slice(0, MOST_LINES);
  return `  ${file} > ${test.fullName}\n${why.map((line) => `    ${line}\n`).join("")}`;
}
