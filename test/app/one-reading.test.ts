import { rename } from "node:fs/promises";
import { expect, it, onTestFinished } from "vitest";
import { startApp } from "../../src/app/app.ts";
import { inspect } from "../../src/app/inspection.ts";
import { keptLines } from "../observe/kept-lines.ts";
import { temporaryDirectory } from "../support/temporary-directory.ts";
import { first } from "../tokens/trust.ts";

it("a start uses the trusted keys that were checked, even if their file breaks in between", async () => {
  await using place = await temporaryDirectory();
  await place.write("keys.json", first);
  const trusted = {
    ...{ issuer: "https://a.example", audience: "a", algorithms: ["RS256"] },
    jwks: { file: "keys.json" },
  };
  const text = JSON.stringify({
    server: { listen: "127.0.0.1:0", tls: "off", workers: 1, drain: { delay: "0s" } },
    admin: "off",
    tokens: { trusted: [trusted] },
    upstreams: { app: { targets: ["http://127.0.0.1:1"] } },
    routes: [{ name: "open", path: "/", auth: "none", upstream: "app" }],
  });
  const file = await place.write("config.yaml", text);
  const snapshot = await inspect({ file, env: {}, overrides: {} });
  await rename(await place.write("keys.new", "{"), `${place.path}/keys.json`);
  const { sink, lines } = keptLines();
  const app = await startApp({ snapshot, version: "0.0.0", sink });
  onTestFinished(async () => void (await app.stop()));
  const loaded = lines.filter((line) => line.includes("the keys of a trusted issuer were loaded"));
  expect(loaded.map((line): unknown => JSON.parse(line))).toMatchObject([{ keys: 1 }]);
});
