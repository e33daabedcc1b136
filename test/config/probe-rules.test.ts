import { describe, expect, test } from "vitest";
import { faultsOf, load, problemsOf, SMALLEST } from "./configuration-file.ts";

const probe = (text: string): string => `${SMALLEST}admin: { probes: [{ ${text} }] }\n`;

describe("admin.probes", () => {
  test("use the same path as target by default", async () => {
    const { configuration } = await load(probe("path: /healthz, upstream: app"));
    if (configuration.admin === "off") throw new Error("there is an admin listener by default");
    expect(configuration.admin.probes).toEqual([{ path: "/healthz", upstream: "app" }]);
    expect(configuration.admin.ready).toEqual({ upstreams: "none", users: false });
  });

  test.each([
    ["one of Sallyport's pages", "path: /metrics, upstream: app", "path"],
    ["a page that changes something", "path: /-/drain, upstream: app", "path"],
    ["the key set", "path: /.well-known/jwks.json, upstream: app", "path"],
    ["a path with tricks", "path: /a/../b, upstream: app", "path"],
    ["an unknown upstream", "path: /a, upstream: ap", "upstream"],
    ["a target that is not a path", "path: /a, upstream: app, target: health", "target"],
    ["a target on another host", "path: /a, upstream: app, target: //evil/x", "target"],
    ["a target with a fragment", 'path: /a, upstream: app, target: "/x#y"', "target"],
    ["a target with a line end", 'path: /a, upstream: app, target: "/x\\r\\nHost: b"', "target"],
    ["a target with a space", 'path: /a, upstream: app, target: "/x y"', "target"],
  ])("refuse %s", async (_name, text, key) => {
    const faults = (await faultsOf(probe(text))).map((fault) => fault.split(" ")[1]);
    expect(faults).toEqual([`admin.probes[0].${key}`]);
  });

  test("suggest the upstream that was probably meant", async () => {
    const [problem] = await problemsOf(probe("path: /a, upstream: ap"));
    expect(problem?.hint).toBe("did you mean app?");
  });

  test("refuse a duplicate path", async () => {
    const twice = "{ path: /a, upstream: app }, { path: /a, upstream: app, target: /b }";
    const faults = await faultsOf(`${SMALLEST}admin: { probes: [${twice}] }\n`);
    expect(faults.map((fault) => fault.split(" ")[1])).toEqual(["admin.probes[1].path"]);
  });

  test("refuse an unknown word for readiness", async () => {
    const faults = await faultsOf(`${SMALLEST}admin: { ready: { upstreams: some } }\n`);
    expect(faults.map((fault) => fault.split(" ")[1])).toEqual(["admin.ready.upstreams"]);
  });
});
