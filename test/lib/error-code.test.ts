import { readFile } from "node:fs/promises";
import { expect, it } from "vitest";
import { closedPort } from "../support/dead-ends.ts";
import { codeOrMessage } from "../../src/lib/text/error-code.ts";

const thrownBy = (action: Promise<unknown>): Promise<unknown> =>
  action.then(String, (error: unknown) => error);

it("returns the system's code, wherever it is, else the message", async () => {
  const unreadable = await thrownBy(readFile("/nonexistent"));
  expect(codeOrMessage(unreadable)).toBe("ENOENT");
  const unreached = await thrownBy(fetch(`http://127.0.0.1:${await closedPort()}`));
  expect(codeOrMessage(unreached)).toBe("ECONNREFUSED");
  expect(codeOrMessage(new Error("a", { cause: new Error("b") }))).toBe("b");
  expect(codeOrMessage(new Error("a", { cause: "b" }))).toBe("a");
  // A DOMException's code is a meaningless number.
  expect(codeOrMessage(AbortSignal.abort().reason)).toBe("This operation was aborted");
  expect(codeOrMessage("a")).toBe("unknown");
});
