import { rename } from "node:fs/promises";
import { expect, it, onTestFinished } from "vitest";
import { startApp } from "../../src/app/app.ts";
import { explainAlone } from "../../src/app/explanation/dry-run.ts";
import { explainerFrom } from "../../src/app/explanation/dry-run-gate.ts";
import { inspect } from "../../src/app/inspection.ts";
import type { Snapshot } from "../../src/config/snapshot.ts";
import { createDryRunRequest } from "../../src/server/admin/explain-page.ts";
import { keptLines } from "../observe/kept-lines.ts";
import { temporaryDirectory } from "../support/temporary-directory.ts";
import { first } from "../tokens/trust.ts";

const CONFIG = {
  server: { listen: "127.0.0.1:0", tls: "off", workers: 1, drain: { delay: "0s" } },
  admin: "off",
  tokens: {
    trusted: [
      {
        issuer: "https://a.example",
        audience: "a",
        algorithms: ["RS256"],
        jwks: { file: "keys.json" },
      },
    ],
  },
  upstreams: { app: { targets: ["http://127.0.0.1:1"] } },
  routes: [{ name: "open", path: "/", auth: "none", upstream: "app" }],
};

/** Reads the configuration and its key file, then breaks the file. */
async function snapshotOfWhatBreaks(): Promise<Snapshot> {
  const place = await temporaryDirectory();
  onTestFinished(() => place[Symbol.asyncDispose]());
  await place.write("keys.json", first);
  const file = await place.write("config.yaml", JSON.stringify(CONFIG));
  const snapshot = await inspect({ file, env: {}, overrides: {} });
  await rename(await place.write("keys.new", "{"), `${place.path}/keys.json`);
  return snapshot;
}

it("a start uses the trusted keys that were checked, even if their file breaks in between", async () => {
  const snapshot = await snapshotOfWhatBreaks();
  const { sink, lines } = keptLines();
  const app = await startApp({ snapshot, version: "0.0.0", sink, read: async () => snapshot });
  onTestFinished(async () => void (await app.stop()));
  const loaded = lines.filter((line) => line.includes("the keys of a trusted issuer were loaded"));
  expect(loaded.map((line): unknown => JSON.parse(line))).toMatchObject([{ keys: 1 }]);
});

it("explain uses the keys that were checked, too", async () => {
  const explainer = await explainerFrom(await snapshotOfWhatBreaks());
  const dryRun = createDryRunRequest({
    method: "GET",
    url: "http://a/",
    headers: [],
    peer: "127.0.0.1",
  });
  expect(await explainAlone(explainer, dryRun)).toMatchObject({
    verdict: { outcome: "forwarded", route: "open" },
  });
});
