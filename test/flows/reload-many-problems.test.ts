import { expect, it } from "vitest";
import { ask, fieldsOf } from "../support/ask.ts";
import { startEchoBackend } from "../support/echo-backend.ts";
import { replaceFile } from "../support/edits.ts";
import { startSallyport } from "../support/sallyport.ts";

it("a file with thousands of problems gets the first of them reported, and the number of the rest", async () => {
  await using backend = await startEchoBackend();
  await using gate = await startSallyport({ withoutToken: true, target: backend.url });
  const before = gate.log().length;
  await replaceFile(gate, "config.yaml", `x: [${"{ a: 1, a: 2 }, ".repeat(3_000)}]\n`);
  const answer = await ask({ port: gate.adminPort }, "/-/reload", { method: "POST" });
  expect(answer.status).toBe(422);
  const { problems } = fieldsOf(answer);
  expect(problems).toHaveLength(21);
  expect(String(problems)).toMatch(/config\.yaml: and \d{4} more problems$/);
  // The file watcher may have reported them once more.
  expect(gate.log().length - before).toBeLessThan(60);
});
