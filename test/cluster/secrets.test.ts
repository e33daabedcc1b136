/** New users and a new certificate by the Secrets, then broken ones, under load: in force in both pods, and nothing is lost. */
import { X509Certificate } from "node:crypto";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { createDevelopmentCertificate } from "../../src/server/tls/development-certificate.ts";
import { testCertificates } from "../support/certificates.ts";
import { ALICE, cheapHash } from "../support/sallyport.ts";
import { until } from "../support/until.ts";
import type { LoadReport } from "./client/load.ts";
import type { Peer } from "./client/send.ts";
import { whyNoCluster } from "./cluster.ts";
import { expectNothingLost, STREAMS } from "./load.ts";
import { adminPage, podsOf } from "./pods.ts";
import { APP, protect } from "./protected.ts";
import { Space } from "./space.ts";

/** Milliseconds until a changed Secret is in force, at most; a kubelet that is asked takes a few seconds. */
const IN_FORCE = 120_000;
const BOB = { username: "bob", password: "another long password" };

describe.skipIf(whyNoCluster() !== undefined)("changed Secrets", () => {
  let space: Space;
  let peers: readonly Peer[];
  const second = createDevelopmentCertificate(["localhost"]);

  beforeAll(async () => {
    space = await Space.open("secrets");
    await protect(space);
    const ca = `${(await testCertificates()).ca}\n${(await second).cert}`;
    const pods = await podsOf(space, APP);
    peers = pods.map(({ status }) => ({ host: status.podIP, port: 8443, ca }));
  });
  afterAll(() => space?.close());

  const serves = async (peer: Peer): Promise<boolean> =>
    (await space.order<string>({ kind: "certificate", peer })) ===
    new X509Certificate((await second).cert).fingerprint256;
  const knowsBob = (peer: Peer): Promise<boolean> =>
    space.order({ kind: "login", peer, credentials: BOB }).then(
      () => true,
      () => false,
    );

  test("take effect in both pods without a restart; broken ones do not", async () => {
    const { ca } = peers[0] ?? {};
    const peer = { ...(await space.peer("orders", 443)), ...(ca === undefined ? {} : { ca }) };
    const load = await space.start<LoadReport>({
      kind: "load",
      peer,
      credentials: ALICE,
      streams: STREAMS,
    });
    const users = [ALICE, BOB].map(({ username, password }) => [
      username,
      { password: cheapHash(password), groups: ["sales"] },
    ]);
    await space.files.write("users.yaml", JSON.stringify({ users: Object.fromEntries(users) }));
    const { cert, key } = await second;
    await space.files.write("tls.crt", cert);
    await space.files.write("tls.key", key);
    await replaceBoth();
    const began = performance.now();
    for (const at of peers) {
      await until(() => serves(at), IN_FORCE);
      await until(() => knowsBob(at), IN_FORCE);
    }
    console.log(`changed Secrets were in force after ${Math.round(performance.now() - began)} ms`);

    await space.files.write("users.yaml", "users: [broken");
    await replaceBoth();
    for (const { metadata } of await podsOf(space, APP)) {
      const isRefused = async (): Promise<boolean> =>
        /^sallyport_config_last_reload_successful 0$/m.test(
          await adminPage(space, metadata.name, "/metrics"),
        );
      await until(isRefused, IN_FORCE);
    }
    for (const at of peers) expect([await serves(at), await knowsBob(at)]).toEqual([true, true]);
    const pods = await podsOf(space, APP);
    const restarts = pods.flatMap(({ status }) =>
      (status.initContainerStatuses ?? []).map(({ restartCount }) => restartCount),
    );
    expect(restarts).toEqual([0, 0]);
    expectNothingLost("changed Secrets", await load.stop(), 500);
  });

  async function replaceBoth(): Promise<void> {
    await space.replaceSecret("users");
    await space.replaceSecret("tls");
    await space.bringSecrets(APP);
  }
});
