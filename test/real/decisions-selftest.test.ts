/** The self-test attacks through real proxies that ask, as deploy/proxies configures them. */
import { describe, expect, it } from "vitest";
import { command } from "../cli/command.ts";
import { ASKERS, missingAsker, startAsker } from "../support/askers.ts";
import { startEchoBackend } from "../support/echo-backend.ts";
import { startSallyport } from "../support/sallyport.ts";

const ROUTES = [
  { name: "public", path: "/public/", auth: "none", upstream: "app" },
  { name: "styles", regex: "/files/.+\\.css", auth: "none", upstream: "app" },
  { name: "everything", path: "/", upstream: "app" },
];
const CONFIG = {
  server: { tls: "off", http2: true, trustedProxies: ["127.0.0.1/32"] },
  decisions: { from: ["127.0.0.1/32"], grpc: true },
  routes: ROUTES,
};

interface Result {
  readonly name: string;
  readonly verdict: "PASS" | "FAIL" | "SKIP";
  readonly seen: string;
}

/** What a careless proxy leaves out. */
const CARELESS: Readonly<Record<string, (text: string) => string>> = {
  nginx: (text) => text.replace(/^ *auth_request \/_decide;$/m, ""),
  Caddy: (text) => text.replaceAll(/^ *header_up X-Auth-.*$/gm, ""),
};

async function attack(name: string, edit?: (text: string) => string): Promise<Result[]> {
  await using backend = await startEchoBackend();
  await using gate = await startSallyport({ target: backend.url, config: CONFIG });
  await using proxy = await startAsker(name, backend.url, gate.port, edit);
  const url = `http://127.0.0.1:${proxy.port}`;
  const { out } = await command([
    ...["selftest", "--through", url, "--token", gate.token, "--echo", "/files"],
    ...["--public", "/public/", "--public-suffix", ".css", "--format", "json"],
  ]);
  return JSON.parse(out) as Result[];
}

const NAMED = Object.keys(ASKERS).map((name) => [name, missingAsker(name) ?? ""] as const);

describe.each(NAMED)("%s %s", (name, reason) => {
  it.skipIf(reason !== "")("lets nothing pass without permission", async () => {
    const results = await attack(name);
    expect(results.filter(({ verdict }) => verdict === "FAIL")).toEqual([]);
    expect(results.filter(({ verdict }) => verdict === "PASS").length).toBeGreaterThan(60);
  });

  const careless = CARELESS[name];
  it.skipIf(reason !== "" || careless === undefined)("is found out if it is careless", async () => {
    const results = await attack(name, careless);
    expect(results.filter(({ verdict }) => verdict === "FAIL")).not.toEqual([]);
  });
});
