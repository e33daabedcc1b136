/** The sample with the component, as deploy/kubernetes/README.md applies it, where Pod Security enforces `restricted`. */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { whyNoCluster } from "./cluster.ts";
import { adminPage, containerOf, evaluate, expectNoViolation, onePod } from "./pods.ts";
import { applySample } from "./samples.ts";
import { Space } from "./space.ts";

const TOKEN = "/var/run/secrets/kubernetes.io/serviceaccount/token";
const APP = "app=orders";

describe.skipIf(whyNoCluster() !== undefined)("the sample with the component", () => {
  let space: Space;
  beforeAll(async () => {
    space = await Space.open("apply");
  });
  afterAll(() => space?.close());

  test("is accepted without a warning, and gets ready", async () => {
    expect(await applySample(space, "sample-with-sidecar")).toBe("");
    await space.kubectl(["rollout", "status", "deployment/orders", "--timeout=120s"]);
    await expectNoViolation(space);
  });

  test("answers through its Service, with a token only; and the application only through Sallyport", async () => {
    expect(await space.statuses("orders", 443)).toEqual([401, 200]);
    const { status } = await onePod(space, APP);
    const peer = await space.peer(status.podIP, 8080);
    await expect(space.order({ kind: "ask", peer, path: "/" })).rejects.toThrow("ECONNREFUSED");
  });

  test("has the ServiceAccount's token in the application's container alone", async () => {
    const { metadata } = await onePod(space, APP);
    const script = `import { existsSync } from "node:fs"; console.log(existsSync("${TOKEN}"))`;
    expect(await evaluate(space, metadata.name, "sallyport", script)).toBe("false");
    expect(await evaluate(space, metadata.name, "orders", script)).toBe("true");
  });

  test("counts its own answers from the start, those that have not happened too", async () => {
    const { metadata } = await onePod(space, APP);
    const metrics = await adminPage(space, metadata.name, "/metrics");
    for (const code of [500, 502, 503, 504]) {
      expect(metrics).toMatch(
        new RegExp(`^sallyport_http_requests_total\\{.*code="${code}".*\\} 0$`, "m"),
      );
    }
  });

  test("logs nothing but information", async () => {
    const { stdout } = await space.kubectl(["logs", "deployment/orders", "--container=sallyport"]);
    const levels = stdout
      .trim()
      .split("\n")
      .map((line) => (JSON.parse(line) as { level: string }).level);
    expect(new Set(levels)).toEqual(new Set(["info"]));
  });

  test("has the sidecar run before the application begins", async () => {
    const pod = await onePod(space, APP);
    const [sidecar, application] = ["sallyport", "orders"].map((name) =>
      Date.parse(containerOf(pod, name).state.running?.startedAt ?? ""),
    );
    expect(sidecar).toBeLessThan(application ?? 0);
  });
});
