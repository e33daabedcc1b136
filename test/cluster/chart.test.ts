/** The chart in standalone mode, by Helm: installed, tested, upgraded under load, and refused when its configuration is faulty. */
import { execFile, spawnSync } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { DEPLOY } from "../deploy/documents.ts";
import { ALICE } from "../support/sallyport.ts";
import type { LoadReport } from "./client/load.ts";
import { IMAGES, whyNoCluster } from "./cluster.ts";
import { expectNothingLost, STREAMS } from "./load.ts";
import { applySample } from "./samples.ts";
import { Space } from "./space.ts";

const HELM = "helm";
const CHART = join(DEPLOY, "helm/sallyport");
const run = promisify(execFile);

const missing =
  whyNoCluster() ??
  (spawnSync(HELM, ["version"]).error === undefined ? undefined : "there is no helm");

describe.skipIf(missing !== undefined)("the chart", () => {
  let space: Space;
  beforeAll(async () => {
    space = await Space.open("chart");
    await applySample(space, "sample");
    await space.kubectl(["rollout", "status", "deployment/orders", "--timeout=120s"]);
  });
  afterAll(() => space?.close());

  test("is installed, passes its own test, and is upgraded without a lost request", async () => {
    await helm("install", "front", CHART, ...values(), "--wait", "--timeout=120s");
    expect(await space.statuses("front-sallyport", 443)).toEqual([401, 200]);
    await helm("test", "front", "--timeout=60s");
    const peer = await space.peer("front-sallyport", 443);
    const order = { kind: "load", peer, credentials: ALICE, streams: STREAMS } as const;
    const load = await space.start<LoadReport>(order);
    const changed = ["--set", "config.log.level=warn", "--wait", "--timeout=180s"];
    await helm("upgrade", "front", CHART, ...values(), ...changed);
    await helm("rollback", "front", "1", "--wait", "--timeout=180s");
    expectNothingLost("helm upgrade and rollback", await load.stop(), 500);
  });

  test.each([
    ["config.server.drain.delay=10", "at '/config/server/drain/delay': got number, want string"],
    [
      "config.server.timeout=1s",
      "at '/config/server': additional properties 'timeout' not allowed",
    ],
    ["config.log.level=loud", "at '/config/log/level': 'loud' does not match pattern"],
    [
      "config.upstreams.app.targets=x",
      "at '/config/upstreams/app/targets': got string, want array",
    ],
  ])("refuses %s before it installs anything", async (set, message) => {
    const install = helm("install", "faulty", CHART, ...values(), "--set", set);
    await expect(install).rejects.toThrow(message);
    expect((await helm("list", "--short")).trim()).toBe("front");
  });

  async function helm(...args: readonly string[]): Promise<string> {
    return (await run(HELM, ["--namespace", space.name, ...args])).stdout;
  }
});

/** In front of the sample, which has no Sallyport of its own. */
function values(): string[] {
  const [{ newName = "sallyport", newTag = "" } = {}] = IMAGES;
  const config = { upstreams: { app: { targets: ["http://orders:80"] } } };
  return [
    "--set-json",
    `config=${JSON.stringify(config)}`,
    "--set",
    `image.repository=${newName},image.tag=${newTag}`,
  ];
}
