/** The keys of two replicas, as docs/how-to/rotate-keys.md rotates them and as it replaces a stolen one. */
import { mkdir, readdir, rename, rm } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { keysCommand } from "../cli/command.ts";
import { ALICE } from "../support/sallyport.ts";
import { until } from "../support/until.ts";
import type { Answer, Peer } from "./client/send.ts";
import type { TokensReport } from "./client/tokens.ts";
import { whyNoCluster } from "./cluster.ts";
import { adminPage, podsOf } from "./pods.ts";
import { APP, protect } from "./protected.ts";
import { Space } from "./space.ts";

/** Seconds: longer than a kubelet that is asked takes to bring a Secret. */
const PUBLISH = 60;
/** Seconds for which both replicas sign with the new key while tokens are used. */
const AFTER = 20;
/** Milliseconds. */
const IN_FORCE = 120_000;

describe.skipIf(whyNoCluster() !== undefined)("keys of two replicas", () => {
  let space: Space;
  let peers: readonly Peer[];
  beforeAll(async () => {
    space = await Space.open("rotation");
    await protect(space);
    const pods = await podsOf(space, APP);
    peers = await Promise.all(pods.map(({ status }) => space.peer(status.podIP, 8443)));
  });
  afterAll(() => space?.close());

  test(
    "rotate without a token refused, new or old, at any replica",
    { timeout: 400_000 },
    async () => {
      const using = await space.start<TokensReport>({ kind: "tokens", peers, credentials: ALICE });
      const keys = join(space.files.path, "keys");
      const dates = ["--publish-for", `${PUBLISH}s`, "--lifetime", "5h"];
      await keysCommand("rotate", "--directory", keys, ...dates);
      const signs = performance.now() + PUBLISH * 1000;
      await space.replaceSecret("keys");
      await space.bringSecrets(APP);
      await until(async () => (await published()).every((count) => count === 2), PUBLISH * 1000);
      await delay(signs + AFTER * 1000 - performance.now());
      const { logins, uses, failures, kids } = await using.stop();
      console.log(
        `rotation: ${logins} logins and ${uses} uses at two replicas, ${failures.length} failed`,
      );
      expect(failures).toEqual([]);
      expect(kids.map((each) => each.length)).toEqual([2, 2]);
      expect(kids[0]).toEqual(kids[1]);
    },
  );

  test("end all tokens when they are replaced", { timeout: 300_000 }, async () => {
    const [peer] = peers;
    if (peer === undefined) throw new Error("there is no replica");
    const old = await space.order<string>({ kind: "login", peer, credentials: ALICE });
    expect(await accepted(old)).toEqual([200, 200]);
    const keys = join(space.files.path, "keys");
    const fresh = join(space.files.path, "new-keys");
    await mkdir(fresh, { mode: 0o700 });
    await keysCommand("generate", "--directory", fresh);
    await rm(keys, { recursive: true });
    await rename(fresh, keys);
    await space.replaceSecret("keys");
    const began = performance.now();
    await space.bringSecrets(APP);
    await until(async () => (await accepted(old)).every((status) => status === 401), IN_FORCE);
    console.log(
      `an old token gets 401 at both replicas after ${Math.round(performance.now() - began)} ms`,
    );
    const { stdout } = await space.kubectl(["get", "secret", "sallyport-keys", "--output=json"]);
    const { data } = JSON.parse(stdout) as { data: object };
    expect(Object.keys(data)).toEqual(await readdir(keys));
    const token = await space.order<string>({ kind: "login", peer, credentials: ALICE });
    expect(await accepted(token)).toEqual([200, 200]);
  });

  /** How many keys each replica publishes. */
  async function published(): Promise<number[]> {
    const pods = await podsOf(space, APP);
    return Promise.all(
      pods.map(async ({ metadata }) => {
        const page = await adminPage(space, metadata.name, "/.well-known/jwks.json");
        return (JSON.parse(page) as { keys: unknown[] }).keys.length;
      }),
    );
  }

  async function accepted(token: string): Promise<number[]> {
    const order = { kind: "ask", path: "/used", token } as const;
    const answers = peers.map((peer) => space.order<Answer>({ ...order, peer }));
    return (await Promise.all(answers)).map(({ status }) => status);
  }
});
