import { execFile } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";
import { expect, it } from "vitest";

const MODULE = join(import.meta.dirname, "../../src/app/survive-errors.ts");

it("logs uncaught errors, and the process keeps running", async () => {
  const script = `
    const { surviveErrors } = await import(${JSON.stringify(MODULE)});
    surviveErrors({ error: (message, { error }) => console.log(message, error.message) });
    setImmediate(() => { throw new Error("thrown"); });
    setImmediate(() => void Promise.reject(new Error("rejected")));
    setTimeout(() => console.log("still here"), 20);
  `;
  const flags = ["--input-type=module", "--eval", script];
  const { stdout } = await promisify(execFile)(process.execPath, flags);
  expect(stdout).toBe("uncaught error thrown\nuncaught error rejected\nstill here\n");
});
