/**
 * One identity header under many names. Code that removes a forged `X-Auth-Subject` must also remove everything that
 * a backend reads as the same: any case; `_` and `.` instead of `-`, which CGI, WSGI and PHP fold (oauth2-proxy
 * CVE-2025-64484, Caddy CVE-2026-52845, Traefik GHSA-5m6w-wvh7-57vm); any other character of a token, which lighttpd
 * and others that convert names to variables also turn into `_`; the name repeated; listed in `Connection`; as a
 * trailer; with `Expect`; on upgrades; on public routes; and every name that a preset could set, or that a backend of
 * that preset trusts although it is not set (Caddy CVE-2026-30851: headers that the gate did not set passed through).
 * These tests combine every alias with every way, for every preset.
 */
import { describe, expect, it } from "vitest";
import type { HttpMessage } from "../support/http-reader.ts";
import { allOf, attackMarked } from "../support/marked-attack.ts";
import { useNaiveProxy, useSallyport } from "../support/pair.ts";
import { chunked, request } from "../support/raw-client.ts";

const SETTINGS: Readonly<Record<string, unknown>> = {
  sallyport: "sallyport",
  "oauth2-proxy": "oauth2-proxy",
  "kube-rbac-proxy": "kube-rbac-proxy",
  "names of one's own": { subject: "Remote-User", groups: "Remote_Groups", issuer: "X-Iss" },
};
const PRESET_NAMES = [
  ...["X-Auth-Subject", "X-Auth-Groups", "X-Auth-Issuer", "X-Forwarded-User", "X-Forwarded-Groups"],
  ...["X-Remote-User", "X-Remote-Groups"],
];
const OWN_NAMES = ["Remote-User", "Remote_Groups", "X-Iss"];

/** Other headers that backends of a preset trust: those of oauth2-proxy and kube-rbac-proxy. */
const FAMILY = [
  ...["X-Forwarded-Email", "X-Forwarded-Preferred-Username", "X-Forwarded-Access-Token"],
  ...["X-Auth-Request-User", "X-Auth-Request-Groups", "X-Auth-Request-Email"],
  ...["X-Remote-Group", "X-Remote-Uid", "X-Remote-Extra-Scopes"],
  ...["Remote-User", "Remote-Groups", "Remote-Email", "Remote-Name"],
];

const SPELLINGS: readonly ((name: string) => string)[] = [
  (name) => name,
  (name) => name.toLowerCase(),
  (name) => name.toUpperCase(),
  (name) => name.replaceAll(/[-_]/g, "_"),
  (name) => name.replaceAll(/[-_]/g, "-"),
  (name) => name.replaceAll(/[-_]/g, "."),
  (name) => name.replace(/[-_]/, "_").toLowerCase(),
  (name) => name.replace(/[-_](?=[^-_]*$)/, "_"),
  (name) => name.replace(/[-_](?=[^-_]*$)/, "."),
];
/** The other characters of a token (RFC 9110 §5.6.2), each of which becomes `_` in a CGI variable of lighttpd. */
const SEPARATORS = "!#$%&'*+^`|~".split("");

const UPGRADE = [
  ...["Connection: Upgrade", "Upgrade: websocket", "Sec-WebSocket-Version: 13"],
  "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
];

/** The ways to send forged fields. */
const WAYS: Readonly<
  Record<string, (fields: readonly string[]) => { head: string[]; body: string }>
> = {
  plainly: (fields) => ({ head: [...fields], body: "" }),
  doubled: (fields) => ({ head: [...fields, ...fields], body: "" }),
  "named in Connection": (fields) => ({
    head: [`Connection: ${fields.map(nameIn).join(", ")}`, ...fields],
    body: "",
  }),
  "named in Connection behind them": (fields) => ({
    head: [...fields, ...fields.map((field) => `Connection: keep-alive, ${nameIn(field)}`)],
    body: "",
  }),
  "as trailers": (fields) => ({
    head: [`Trailer: ${fields.map(nameIn).join(", ")}`, "Transfer-Encoding: chunked"],
    body: chunked("x", fields),
  }),
  "with Expect": (fields) => ({
    head: ["Expect: 100-continue", "Content-Length: 1", ...fields],
    body: "x",
  }),
  "on an upgrade": (fields) => ({ head: [...UPGRADE, ...fields], body: "" }),
};

const nameIn = (field: string): string => field.split(":")[0] ?? "";
const folded = (name: string): string => name.toLowerCase().replaceAll(/[^a-z0-9]/g, "-");

const EMPTY = { head: [], body: "" };

interface Try {
  readonly way: string;
  readonly mark: string;
  readonly path: string;
  readonly bytes: (token: string) => string;
}

/** Sends all names in all spellings at once, in every way, with a token and on a public route. */
function triesOf(names: readonly string[], ways = Object.keys(WAYS)): Try[] {
  const all = ways.flatMap((way) => ["/orders", "/public/x"].map((path) => ({ way, path })));
  return all.map(({ way, path }, index) => {
    const mark = `i${String(index).padStart(3, "0")}`;
    const { head, body } = WAYS[way]?.(names.map((name) => `${name}: forged`)) ?? EMPTY;
    const method = /chunked|Content-Length/.test(head.join()) ? "POST" : "GET";
    return {
      way,
      mark,
      path,
      bytes: (token) => {
        const bearer = path === "/orders" ? [`Authorization: Bearer ${token}`] : [];
        const lines = [`${method} ${path}/${mark} HTTP/1.1`, "Host: localhost", ...bearer];
        return request([...lines, ...head], body);
      },
    };
  });
}

const spelt = (
  names: readonly string[],
  spellings: readonly ((name: string) => string)[],
): string[] => [...new Set(names.flatMap((name) => spellings.map((spell) => spell(name))))];

/** Returns the names of forged fields that arrived, in headers or trailers. */
function forgedIn(seen: readonly HttpMessage[]): string[] {
  return seen
    .flatMap(({ headers, trailers }) => [...headers, ...trailers])
    .filter(([, value]) => value.includes("forged"))
    .map(([name]) => name);
}

const ALIASES = triesOf(spelt([...PRESET_NAMES, ...OWN_NAMES], SPELLINGS));
const ODD_ALIASES = triesOf(
  spelt(
    PRESET_NAMES,
    SEPARATORS.map((separator) => (name: string) => name.replaceAll("-", separator)),
  ),
  ["plainly", "on an upgrade"],
);
const FAMILIES = triesOf(spelt(FAMILY, SPELLINGS.slice(0, 4)), ["plainly", "on an upgrade"]);

describe.each(Object.entries(SETTINGS))("Sallyport with %s", (setting, headers) => {
  const standing = useSallyport(undefined, {
    config: { identity: { headers }, server: { tls: "off", limits: { headers: 256 } } },
  });
  const own = setting === "names of one's own" ? "remote-user" : undefined;
  const subjects: Readonly<Record<string, string>> = {
    sallyport: "x-auth-subject",
    "oauth2-proxy": "x-forwarded-user",
    "kube-rbac-proxy": "x-remote-user",
  };
  const subject = own ?? subjects[setting];
  const set = own === undefined ? PRESET_NAMES : [...PRESET_NAMES, ...OWN_NAMES];
  const removed = new Set(set.map(folded));

  it("lets no alias through in any way", async () => {
    const { gate, backend } = standing();
    const wrong = await allOf(ALIASES, async ({ way, mark, path, bytes }) => {
      const { ran } = await attackMarked(gate, backend, mark, bytes(gate.token));
      const forged = forgedIn(ran()).filter((each) => removed.has(folded(each)));
      const told = ran()
        .flatMap((seen) => seen.headers)
        .filter(([each]) => folded(each) === subject)
        .map(([, value]) => value);
      const expected = path === "/orders" ? "alice" : "";
      const fine = ran().length === 1 && forged.length === 0 && told.join() === expected;
      return fine ? [] : [{ way, path, ran: ran().length, forged, told }];
    });
    expect(wrong.flat()).toEqual([]);
  });

  it("lets no alias through that contains another character of a token", async () => {
    const { gate, backend } = standing();
    const forged = await allOf(ODD_ALIASES, async ({ mark, bytes }) => {
      const { ran } = await attackMarked(gate, backend, mark, bytes(gate.token));
      expect(ran()).toHaveLength(1);
      return forgedIn(ran());
    });
    expect([...new Set(forged.flat())].join()).toBe("");
  });

  it("lets no related name of a preset through", async () => {
    const { gate, backend } = standing();
    const forged = await allOf(FAMILIES, async ({ mark, bytes }) => {
      const { ran } = await attackMarked(gate, backend, mark, bytes(gate.token));
      expect(ran()).toHaveLength(1);
      return forgedIn(ran());
    });
    expect([...new Set(forged.flat())].join()).toBe("");
  });
});

describe("a naive proxy", () => {
  const standing = useNaiveProxy();

  it("lets aliases through in every way", async () => {
    const { gate, backend } = standing();
    const passed = await allOf(ALIASES, async ({ way, mark, bytes }) => {
      const options = { timeoutMs: 1_000 };
      const { ran } = await attackMarked(gate, backend, mark, bytes(gate.token), options);
      return forgedIn(ran()).length > 0 ? [way] : [];
    });
    // It drops all trailers.
    const expected = Object.keys(WAYS).filter((way) => way !== "as trailers");
    expect([...new Set(passed.flat())].toSorted()).toEqual(expected.toSorted());
  });
});
