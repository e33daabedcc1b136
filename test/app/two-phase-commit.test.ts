import { expect, test } from "vitest";
import { prepareAll } from "../../src/app/reload/reloader.ts";
import type { Change } from "../../src/core/change.ts";

function recorded() {
  const calls: string[] = [];
  const change = (name: string) => (): Change => {
    calls.push(`prepare ${name}`);
    return {
      commit: async () => void calls.push(`commit ${name}`),
      rollback: () => void calls.push(`rollback ${name}`),
    };
  };
  return { calls, change };
}

test("nothing is committed before everything is prepared", async () => {
  const { calls, change } = recorded();
  const all = await prepareAll([change("a"), async () => change("b")()]);
  expect(calls).toEqual(["prepare a", "prepare b"]);
  await all.commit();
  expect(calls.slice(2)).toEqual(["commit a", "commit b"]);
});

test("a failed preparation rolls back the earlier ones", async () => {
  const { calls, change } = recorded();
  const broken = (): never => {
    throw new Error("broken");
  };
  await expect(prepareAll([change("a"), broken, change("b")])).rejects.toThrow("broken");
  expect(calls).toEqual(["prepare a", "rollback a"]);
});
