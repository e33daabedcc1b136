/**
 * One path for the check, another for the backend. Envoy (CVE-2019-9901, CVE-2021-29492), Traefik (CVE-2025-32431,
 * CVE-2025-66490, GHSA-6jwx-7vp4-9847), oauth2-proxy (GHSA-7rh7-c77v-6434 with the query, CVE-2026-41059 with a
 * fragment) and node-http-proxy all matched one spelling and forwarded another, each time after the last spelling had
 * been fixed. So these tests try readings instead of spellings: whatever a backend may do with a path (decode it once
 * or twice more, cut off parameters or a fragment, fold slashes and backslashes, resolve dot segments, stop at NUL),
 * generated targets must arrive as exactly the string that was authorized, or not at all, and none of these readings
 * of a public route may lead to anything protected.
 */
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { canonicalPath } from "../../src/lib/http/path/canonical-path.ts";
import { createRouteTable } from "../../src/policy/route-table.ts";
import { allOf } from "../support/marked-attack.ts";
import { useNaiveProxy, useSallyport } from "../support/pair.ts";
import { leadsTo, readingsOf } from "../support/path-readings.ts";
import { PATH_TRICKS, pathTargets } from "../support/path-tricks.ts";
import { routeWith } from "../support/permit.ts";
import { exchange, request } from "../support/raw-client.ts";

const PUBLIC = { auth: "none" } as const;
const route = (name: string, prefix: string, more = {}) =>
  routeWith({ name, path: { prefix }, ...more });
const TABLES = [
  { name: "a public folder", routes: [route("p", "/public/", PUBLIC), route("all", "/")] },
  { name: "a protected folder", routes: [route("admin", "/admin"), route("all", "/", PUBLIC)] },
  {
    name: "a public folder within a protected one",
    routes: [
      route("in", "/admin/public", PUBLIC),
      route("admin", "/admin"),
      route("all", "/", PUBLIC),
    ],
  },
];

function pathOf(target: string): string {
  return target.split("?")[0] ?? "";
}

describe("the pure parts", () => {
  it.each(TABLES)("lead to nothing protected: $name", ({ routes }) => {
    const find = createRouteTable(routes);
    const routeOf = (matchPath: string) => find({ host: "a", method: "GET", matchPath });
    const check = (wanted: string): void => {
      const canonical = canonicalPath(pathOf(wanted));
      if (canonical === undefined) return;
      if (routeOf(canonical.matchPath)?.auth !== "none") return;
      for (const reading of readingsOf(canonical.path)) {
        // A reading that is not a path does not occur.
        if (!reading.startsWith("/")) continue;
        expect([canonical.path, reading, routeOf(reading)?.auth]).toEqual([
          canonical.path,
          reading,
          "none",
        ]);
      }
    };
    fc.assert(fc.property(pathTargets, check), { numRuns: 2_000 });
  });

  it("let through what is harmless", () => {
    const sample = fc.sample(pathTargets, { numRuns: 2_000, seed: 4 });
    const passing = sample.filter((wanted) => canonicalPath(pathOf(wanted)) !== undefined);
    expect(passing.length).toBeGreaterThan(100);
  });
});

const get = (wanted: string): string => request([`GET ${wanted} HTTP/1.1`, "Host: localhost"]);
const upgrade = (wanted: string): string =>
  request([
    ...[`GET ${wanted} HTTP/1.1`, "Host: localhost", "Connection: Upgrade", "Upgrade: websocket"],
    ...["Sec-WebSocket-Version: 13", "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ=="],
  ]);

describe("Sallyport", () => {
  const standing = useSallyport();
  // Draws may hold nothing that is harmless.
  const targets = ["/public/x", ...PATH_TRICKS, ...fc.sample(pathTargets, 80)];

  it.each([
    ["request", get],
    ["upgrade", upgrade],
  ])("leads no %s without a token to what is protected", async (_kind, bytesOf) => {
    const { gate, backend } = standing();
    const statuses = await allOf(targets, async (wanted) => {
      const { last } = await exchange(gate, bytesOf(wanted));
      return last.status;
    });
    expect(statuses.filter((status) => ![200, 400, 401].includes(status))).toEqual([]);
    const seen = backend.seen().map((line) => line.replace(/^GET /, ""));
    expect(seen.filter((path) => leadsTo("/admin", path))).toEqual([]);
    expect(seen.filter((path) => !path.startsWith("/public/"))).toEqual([]);
    expect(statuses).toContain(200);
  });

  it("forwards, with a token, exactly the string that it authorized", async () => {
    const { gate, backend } = standing();
    const expected = targets.map((wanted) => {
      const canonical = wanted.includes("#") ? undefined : canonicalPath(pathOf(wanted));
      const query = wanted.slice(pathOf(wanted).length);
      return canonical === undefined ? undefined : `GET ${canonical.path}${query}`;
    });
    const statuses = await allOf(targets, async (wanted) => {
      const lines = [`GET ${wanted} HTTP/1.1`, "Host: localhost"];
      const bytes = request([...lines, `Authorization: Bearer ${gate.token}`]);
      return (await exchange(gate, bytes)).last.status;
    });
    expect(statuses).toEqual(expected.map((line) => (line === undefined ? 400 : 200)));
    const arriving = expected.filter((line) => line !== undefined);
    expect(backend.seen().toSorted()).toEqual(arriving.toSorted());
  });

  it("forwards every byte of a target unchanged, or refuses it", async () => {
    const { gate, backend } = standing();
    const octets = [...Array(128).keys(), 0x80, 0x85, 0xa0, 0xc0, 0xff]
      .map((octet) => String.fromCharCode(octet))
      .filter((octet) => !/[a-z0-9]/i.test(octet));
    const asked = octets.flatMap((octet) => [`/public/a${octet}b`, `/public/a?b${octet}c`]);
    const statuses = await allOf(
      asked,
      async (wanted) => (await exchange(gate, get(wanted))).last.status,
    );
    const accepted = asked.filter((_, i) => statuses[i] === 200);
    expect(backend.seen().toSorted()).toEqual(accepted.map((wanted) => `GET ${wanted}`).toSorted());
    expect(statuses.filter((status) => status !== 200 && status !== 400)).toEqual([]);
    // No control character, space or byte beyond ASCII is passed on, in any part of a target.
    expect(accepted.filter((wanted) => !/^[!-~]+$/.test(wanted))).toEqual([]);
  });
});

describe("a naive proxy", () => {
  const standing = useNaiveProxy();

  it("leads to protected paths", async () => {
    const { gate, backend } = standing();
    await allOf(PATH_TRICKS, async (wanted) => exchange(gate, get(wanted)));
    const seen = backend.seen().map((line) => line.replace(/^GET /, ""));
    expect(seen.filter((path) => leadsTo("/admin", path))).toContain("/admin");
  });
});
