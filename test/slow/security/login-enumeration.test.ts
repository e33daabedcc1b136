/**
 * Enumerating users. A login that says "no such user", or that answers sooner because there was no hash to compute,
 * reveals the list of users, name by name. Here an unknown name, a disabled user and a wrong password get identical
 * responses except for the id, and the medians of their times are within 10 % of each other. Throttled attempts compute
 * no hash, whether the name exists or not.
 */
import { Agent as PlainAgent } from "node:http";
import { Agent } from "node:https";
import { describe, expect, it, onTestFinished } from "vitest";
import { ask } from "../../support/ask.ts";
import { startEchoBackend } from "../../support/echo-backend.ts";
import { startNaiveLogin } from "../../support/naive-login.ts";
import { use } from "../../support/pair.ts";
import { exchange, type Peer, request } from "../../support/raw-client.ts";
import { ALICE, cheapHash, startSallyport } from "../../support/sallyport.ts";

const users = {
  alice: { password: cheapHash(ALICE.password), groups: ["sales"] },
  bob: { password: cheapHash("bob's own"), disabled: true },
  carol: { password: cheapHash("carol's own") },
};
const files = { "users.yaml": JSON.stringify({ users }) };
const FAR = { attempts: 1_000_000 };

type Login = Readonly<Record<"username" | "password", string>>;
let names = 0;
const KINDS: readonly (() => Login)[] = [
  () => ({ username: `nobody${(names += 1)}`, password: ALICE.password }),
  () => ({ username: "nobody", password: ALICE.password }),
  () => ({ username: "bob", password: "bob's own" }),
  () => ({ username: "bob", password: "wrong" }),
  () => ({ username: "alice", password: "wrong" }),
  () => ({ username: "alice", password: "x".repeat(2000) }),
];
/** The kinds that are timed. */
const TIMED = [0, 2, 4, 5].flatMap((kind) => KINDS[kind] ?? []);
const SPREAD = 1.1;
const FEWEST_ROUNDS = 15;
/** The time that a busy machine may need; an idle one is done in a second. */
const PATIENCE_MS = 45_000;

/** Returns the milliseconds of one login on an open connection. */
async function timeOf(peer: Peer, agent: Agent | PlainAgent, login: Login): Promise<number> {
  const started = performance.now();
  const headers = { "content-type": "application/json" };
  const body = JSON.stringify(login);
  await ask(peer, "/api/authenticate", { method: "POST", headers, body, agent });
  return performance.now() - started;
}

/**
 * Returns the ratio of the slowest median to the fastest. The kinds take turns, so that other load affects all of them;
 * more rounds follow while the medians differ, so that a random difference disappears and a real one stays.
 */
async function spread(peer: Peer, patienceMs: number): Promise<number> {
  const agent = new (peer.ca === undefined ? PlainAgent : Agent)({
    keepAlive: true,
    maxSockets: 1,
  });
  onTestFinished(() => agent.destroy());
  const times: number[][] = TIMED.map(() => []);
  const deadline = performance.now() + patienceMs;
  for (let round = 1; ; round++) {
    // No kind may always follow the same other kind.
    const offset = Math.floor(Math.random() * TIMED.length);
    for (const [kind, login] of turned([...TIMED.entries()], offset, round)) {
      times[kind]?.push(await timeOf(peer, agent, login()));
    }
    const medians = times.map(median);
    const ratio = Math.max(...medians) / Math.min(...medians);
    if (round >= FEWEST_ROUNDS && (ratio < SPREAD || performance.now() > deadline)) return ratio;
  }
}

function turned<Item>(items: readonly Item[], offset: number, round: number): Item[] {
  const order = [...items.slice(offset), ...items.slice(0, offset)];
  return round % 2 === 0 ? order : order.toReversed();
}

function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.floor(sorted.length / 2)] ?? Number.NaN;
}

async function bytesFor(peer: Peer, login: Login): Promise<string> {
  const body = JSON.stringify(login);
  const lines = ["POST /api/authenticate HTTP/1.1", "Host: a", "Content-Type: application/json"];
  const more = ["X-Request-Id: same", `Content-Length: ${body.length}`];
  const { raw } = await exchange(peer, request([...lines, ...more], body));
  return raw.replace(/"id":\d+/, '"id":0').replace(/\r\nDate: [^\r]+/, "");
}

describe("Sallyport", () => {
  const standing = use(
    () => startEchoBackend(),
    (target) => {
      const throttle = { ...FAR, account: FAR, global: FAR };
      return startSallyport({ target, files, config: { login: { throttle } } });
    },
  );

  it("gives identical responses to all of them", async () => {
    const answers = await Promise.all(KINDS.map((login) => bytesFor(standing().gate, login())));
    expect(answers[0]).toMatch(/^HTTP\/1\.1 401 /);
    expect(answers[0]).toMatch(
      /\{"id":0,"message":"Invalid username or password","success":false\}$/,
    );
    expect(new Set(answers).size).toBe(1);
  });

  it(
    "takes the same time for all of them, however many failures a name has",
    { timeout: 60_000 },
    async () => {
      expect(await spread(standing().gate, PATIENCE_MS)).toBeLessThan(SPREAD);
    },
  );
});

describe("Sallyport, when it refuses further attempts", () => {
  const standing = use(
    () => startEchoBackend(),
    (target) => startSallyport({ target, files }),
  );

  it("gives identical responses for known and unknown names, and computes no hash", async () => {
    const { gate } = standing();
    const agent = new Agent({ keepAlive: true, maxSockets: 1 });
    onTestFinished(() => agent.destroy());
    const logins = ["alice", "bob", "nobody"].map((username) => ({ username, password: "wrong" }));
    const failed: number[] = [];
    for (const login of [...logins, ...logins, ...logins, ...logins, ...logins]) {
      failed.push(await timeOf(gate, agent, login));
    }
    const answers: string[] = [];
    for (const login of logins) answers.push(await bytesFor(gate, login));
    const waitless = answers.map((answer) => answer.replace(/(Retry-After: )\d+/i, "$1n"));
    expect(waitless[0]).toMatch(/^HTTP\/1\.1 429 /);
    expect(new Set(waitless).size).toBe(1);
    const refused: number[] = [];
    for (let round = 0; round < 15; round++) {
      refused.push(await timeOf(gate, agent, { username: "alice", password: ALICE.password }));
    }
    expect(median(refused)).toBeLessThan(median(failed) / 2);
  });
});

describe("a naive login", () => {
  const naive = {
    alice: { password: ALICE.password },
    bob: { password: "bob's own", disabled: true },
  };

  it("reveals who is a user, by message and timing", async () => {
    await using login = await startNaiveLogin({ users: naive, lock: "nothing" });
    const answers = await Promise.all(KINDS.map((kind) => bytesFor(login, kind())));
    expect(new Set(answers).size).toBe(3);
    expect(await spread(login, 0)).toBeGreaterThan(2);
  });
});
