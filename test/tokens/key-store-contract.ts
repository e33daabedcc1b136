import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { newApiKey } from "../../src/tokens/api-keys/api-key-file.ts";
import { ask } from "../support/ask.ts";
import { type EchoBackend, startEchoBackend } from "../support/echo-backend.ts";
import { echoedBy } from "../support/echoed.ts";
import { type Sallyport, startSallyport } from "../support/sallyport.ts";
import { scrape } from "../support/scrape.ts";
import { until } from "../support/until.ts";
import {
  openWebSocket,
  startWebSocketBackend,
  type WebSocketBackend,
} from "../support/websocket.ts";

/** An entry of a key, as the file has it. A column of the same name is the same. */
interface KeyEntry {
  readonly hash: string;
  readonly subject?: string;
  readonly groups?: readonly string[];
  readonly scopes?: readonly string[];
  readonly expires?: string;
  readonly disabled?: boolean;
  readonly created?: string;
}

type Keys = Readonly<Record<string, KeyEntry>>;

/** The source of a store, for all tests. */
export interface KeySource extends AsyncDisposable {
  /** Its entry in `apiKeys`. */
  readonly entry: object;
  /** Replaces the keys by these. */
  hold(keys: Keys): Promise<void>;
  /** Makes the source unusable until the next `hold`. */
  fail(): Promise<void>;
}

interface ContractKind {
  readonly workers: number;
  source(): Promise<KeySource>;
  /** How a source that cannot be used shows itself: a message of the log, and a metric that is 0. */
  readonly complaint: { readonly msg: string; readonly metric: string };
}

const ci = newApiKey("ci");
const robot = newApiKey("robot");
const CI: KeyEntry = { hash: ci.hash, groups: ["deploy"], scopes: ["orders:read"] };
const ROBOT: KeyEntry = { hash: robot.hash, subject: "r2", created: "2026-05-01T10:00:00Z" };
const PAST = "2020-01-01T00:00:00Z";
/** Changes are in force within a second; the rest is for a machine with other work. */
const SOON_MS = 2_000;

/** The contract of every kind of store of API keys, tested with a real source behind a running proxy. */
export function keyStoreContract(kind: ContractKind): void {
  const stack = new AsyncDisposableStack();
  let backend: EchoBackend;
  let sockets: WebSocketBackend;
  let source: KeySource;
  let gate: Sallyport;

  beforeAll(async () => {
    source = stack.use(await kind.source());
    await source.hold({ ci: CI });
    backend = stack.use(await startEchoBackend());
    sockets = stack.use(await startWebSocketBackend());
    const tokenFrom = [{ apiKey: "X-API-Key" }];
    const routes = [
      { name: "deploy", path: "/deploy/", require: { groups: { any: ["deploy"] } } },
      { name: "read", path: "/read/", require: { scopes: { all: ["orders:read"] } } },
      { name: "sockets", path: "/socket", upstream: "sockets" },
      { name: "keyed", path: "/" },
    ].map((route) => ({ upstream: "app", tokenFrom, ...route }));
    const other = JSON.stringify({ keys: { other: { hash: newApiKey("other").hash } } });
    gate = stack.use(
      await startSallyport({
        withoutToken: true,
        target: backend.url,
        config: {
          apiKeys: [source.entry, { kind: "file", path: "others.yaml" }],
          upstreams: { sockets: { targets: [sockets.url] } },
          server: { workers: kind.workers },
          routes,
        },
        files: { "others.yaml": other },
      }),
    );
  }, 60_000);
  afterAll(() => stack.disposeAsync());

  const get = (key: string, path = "/x") => ask(gate, path, { headers: { "x-api-key": key } });
  const status = async (key: string, path?: string) => (await get(key, path)).status;
  const connect = (key: string) => openWebSocket(gate, "/socket", { "x-api-key": key });
  const complaints = (): number =>
    gate.log().filter(({ msg }) => msg === kind.complaint.msg).length;
  const healthy = async () => (await scrape(gate)).value(kind.complaint.metric);

  beforeEach(async () => {
    await source.hold({ ci: CI, robot: ROBOT });
    await until(async () => (await status(robot.key)) === 200 && (await healthy()) === 1);
    await until(async () => (await status(ci.key, "/deploy/x")) === 200);
  });

  test("a key is a caller with its subject, groups and scopes", async () => {
    const { header } = echoedBy(await get(ci.key, "/read/x"));
    const names = ["x-auth-subject", "x-auth-groups", "x-auth-issuer"];
    expect(names.map(header)).toEqual(["ci", "deploy", "api-keys"]);
    expect(echoedBy(await get(robot.key)).header("x-auth-subject")).toBe("r2");
    expect(await status(robot.key, "/read/x")).toBe(403);
  });

  test("an unknown name and a wrong secret are refused alike", async () => {
    const wrong = `${ci.key.slice(0, -1)}${ci.key.endsWith("A") ? "B" : "A"}`;
    expect([await status(newApiKey("nobody").key), await status(wrong)]).toEqual([401, 401]);
    expect(await status(newApiKey("ci").key)).toBe(401);
  });

  test.each<[string, KeyEntry | undefined]>([
    ["removed", undefined],
    ["disabled", { ...CI, disabled: true }],
    ["expired", { ...CI, expires: PAST }],
    ["given another secret", { ...CI, hash: newApiKey("ci").hash }],
    ["given another subject", { ...CI, subject: "somebody" }],
  ])("a key that is %s ends what runs, and nothing of others", async (what, entry) => {
    const socket = await connect(ci.key);
    const neighbour = await connect(robot.key);
    const began = performance.now();
    await source.hold({ ...(entry && { ci: entry }), robot: ROBOT });
    await socket.closed;
    expect(performance.now() - began).toBeLessThan(SOON_MS);
    expect(await status(ci.key)).toBe(what.endsWith("subject") ? 200 : 401);
    expect(await Promise.race([neighbour.closed, Promise.resolve("open")])).toBe("open");
    neighbour.close();
  });

  test("other groups and scopes count from then on, and end what needs them", async () => {
    await source.hold({ ci: { ...CI, groups: ["staff"], scopes: ["orders:write"] }, robot: ROBOT });
    await until(async () => (await status(ci.key, "/deploy/x")) === 403);
    expect([await status(ci.key, "/read/x"), await status(ci.key)]).toEqual([403, 200]);
  });

  test("an end in the future comes by itself", async () => {
    const expires = new Date(Date.now() + 2_500).toISOString();
    await source.hold({ ci: { ...CI, expires, groups: [] }, robot: ROBOT });
    await until(async () => (await status(ci.key, "/deploy/x")) === 403);
    expect(await status(ci.key)).toBe(200);
    await until(async () => (await status(ci.key)) === 401);
  });

  test.each<[string, () => Promise<void>]>([
    ["a source that cannot be read", () => source.fail()],
    ["a key without a sound hash", () => source.hold({ ci: { hash: "sha256:0" } })],
    ["a key without a sound subject", () => source.hold({ ci: { ...CI, subject: "a\nb" } })],
    ["a name that another store has", () => source.hold({ other: CI })],
  ])("%s keeps the earlier keys, and says so once", async (_what, harm) => {
    const socket = await connect(ci.key);
    const before = complaints();
    await harm();
    await until(async () => (await healthy()) === 0);
    expect([await status(ci.key, "/deploy/x"), await status(robot.key)]).toEqual([200, 200]);
    expect(await Promise.race([socket.closed, Promise.resolve("open")])).toBe("open");
    // Begun within ten seconds of an earlier failure, it is the same one for the log.
    await until(() => complaints() > 0);
    expect(complaints() - before).toBeLessThanOrEqual(1);
    socket.close();
    await source.hold({ ci: CI });
    await until(async () => (await status(robot.key)) === 401 && (await healthy()) === 1);
  });
}
