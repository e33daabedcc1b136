import { cp, mkdir, rename, symlink } from "node:fs/promises";
import { Agent } from "node:https";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { keysCommand } from "../../cli/command.ts";
import { ask, askLogin, fieldsOf } from "../../support/ask.ts";
import { type EchoBackend, startEchoBackend } from "../../support/echo-backend.ts";
import { ALICE, type Sallyport, startSallyport } from "../../support/sallyport.ts";
import { temporaryDirectory } from "../../support/temporary-directory.ts";
import { until } from "../../support/until.ts";

const LATE_MS = 700;
/** Each client sends up to 30 requests per second. */
const ASKING = 8;

let backend: EchoBackend;
beforeAll(async () => {
  backend = await startEchoBackend();
});
afterAll(() => backend.close());

/** A Secret the way Kubernetes mounts it: files behind the link `..data`, which is swapped. */
async function secretVolume(directory: string) {
  let version = 0;
  return {
    path: join(directory, "keys"),
    async show(source: string): Promise<void> {
      version += 1;
      const next = join(directory, `..${version}`);
      await mkdir(next);
      await cp(source, join(next, "keys"), { recursive: true });
      await symlink(`..${version}`, join(directory, "..data_tmp"));
      await rename(join(directory, "..data_tmp"), join(directory, "..data"));
      if (version === 1) await symlink("..data/keys", join(directory, "keys"));
    },
  };
}

/** Starts two replicas with one Secret. The second sees each change later. */
async function startReplicas(stack: AsyncDisposableStack) {
  const source = join(stack.use(await temporaryDirectory()).path, "keys");
  await keysCommand("generate", "-d", source);
  const start = async () => {
    const volume = await secretVolume(stack.use(await temporaryDirectory()).path);
    await volume.show(source);
    const config = { tokens: { keys: volume.path, lifetime: "3s" } };
    return { volume, gate: stack.use(await startSallyport({ target: backend.url, config })) };
  };
  const [early, late] = await Promise.all([start(), start()]);
  return {
    source,
    gates: [early.gate, late.gate] as const,
    async show(): Promise<void> {
      await early.volume.show(source);
      await pause(LATE_MS);
      await late.volume.show(source);
    },
    /** Waits until both sign with the newest key. */
    async taken(kids: ReadonlySet<unknown>, count: number): Promise<void> {
      await until(() => kids.size === count);
      await pause(300);
    },
  };
}

/** Logs in at both replicas and sends them about 200 requests per second with all valid tokens while `work` runs. */
async function underLoad(
  gates: readonly Sallyport[],
  work: (kids: ReadonlySet<unknown>) => Promise<void>,
) {
  const agent = new Agent({ keepAlive: true, maxSockets: ASKING });
  const statuses = new Map<number, number>();
  const kids = new Set<unknown>();
  const count = (status: number): void =>
    void statuses.set(status, (statuses.get(status) ?? 0) + 1);
  let tokens: { token: string; until: number }[] = [];
  const load = { ended: false };
  let turn = 0;
  const gateInTurn = (): Sallyport => gates[(turn += 1) % gates.length] as Sallyport;

  async function logIns(): Promise<void> {
    while (!load.ended) {
      const answer = await askLogin(gateInTurn(), ALICE);
      count(answer.status);
      const token = String(fieldsOf(answer)["token"]);
      const { kid } = JSON.parse(Buffer.from(token.split(".")[0] ?? "", "base64url").toString());
      kids.add(kid);
      const { exp } = JSON.parse(Buffer.from(token.split(".")[1] ?? "", "base64url").toString());
      // A request in flight when its token expires may rightly be refused.
      tokens = [...tokens, { token, until: exp * 1000 - 250 }].filter(
        ({ until: end }) => Date.now() < end,
      );
      await pause(60);
    }
  }

  async function asks(): Promise<void> {
    while (!load.ended) {
      const living = tokens.filter(({ until: end }) => Date.now() < end);
      const one = living[Math.floor(Math.random() * living.length)];
      if (one !== undefined) {
        count((await ask(gateInTurn(), "/orders", { token: one.token, agent })).status);
      }
      await pause(25);
    }
  }

  const clients = Promise.all([logIns(), ...Array.from({ length: ASKING }, asks)]);
  await work(kids).finally(() => (load.ended = true));
  await clients;
  agent.destroy();
  return { statuses, kids };
}

describe("two replicas that see the keys at different times", () => {
  const stack = new AsyncDisposableStack();
  let both: Awaited<ReturnType<typeof startReplicas>>;
  beforeAll(async () => {
    both = await startReplicas(stack);
  });
  afterAll(() => stack.disposeAsync());

  it("rotate twice under load without refusing a valid token", async () => {
    const { statuses } = await underLoad(both.gates, async (kids) => {
      for (const count of [2, 3]) {
        await keysCommand("rotate", "-d", both.source, "--lifetime", "3s", "--publish-for", "2s");
        await both.show();
        await both.taken(kids, count);
      }
    });
    expect([...statuses.keys()]).toEqual([200]);
    expect(statuses.get(200)).toBeGreaterThan(200);
  });

  it("refuse valid tokens when a key signs before both have it, so the test can fail", async () => {
    const { statuses } = await underLoad(both.gates, async (kids) => {
      await until(() => kids.size === 1);
      await keysCommand("generate", "-d", both.source, "--force");
      await both.show();
      await both.taken(kids, 2);
    });
    expect(statuses.get(401)).toBeGreaterThan(0);
  });
});
