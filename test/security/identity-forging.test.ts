/**
 * An identity from the client. A backend behind the sidecar trusts `X-Auth-Subject`, so a client that gets one
 * through can be anyone. The attempts: any case, `_` instead of `-` (CGI, WSGI and many frameworks fold them into one
 * variable), the name repeated, listed in `Connection`, on public routes where nothing sets the real one, on
 * upgrades, and every other name that a preset could set.
 */
import { describe, expect, it } from "vitest";
import { useNaiveProxy, useSallyport } from "../support/pair.ts";
import type { RawBackend } from "../support/raw-backend.ts";
import { exchange, request } from "../support/raw-client.ts";

const FORGED = [
  "X-Auth-Subject: root",
  "x-auth-subject: root",
  "X-AUTH-SUBJECT: root",
  "X_Auth_Subject: root",
  "X-Auth_Subject: root",
  "x_auth_subject: root",
  "X-Auth-Groups: root",
  "X_Auth_Groups: root",
  "X-Auth-Issuer: root",
  "X_Auth-Issuer: root",
];
const UPGRADE = [
  "Connection: Upgrade",
  "Upgrade: websocket",
  "Sec-WebSocket-Version: 13",
  "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
];

interface Try {
  readonly name: string;
  readonly path: string;
  readonly headers: readonly string[];
  readonly subject: readonly string[];
}

const TRIES: readonly Try[] = [
  { name: "with a token", path: "/orders", headers: FORGED, subject: ["alice"] },
  { name: "on a public route", path: "/public/x", headers: FORGED, subject: [] },
  {
    name: "named in Connection",
    path: "/orders",
    headers: ["Connection: x-auth-subject, X_Auth_Subject", ...FORGED],
    subject: ["alice"],
  },
  { name: "on an upgrade", path: "/orders", headers: [...UPGRADE, ...FORGED], subject: ["alice"] },
  {
    name: "on a public upgrade",
    path: "/public/x",
    headers: [...UPGRADE, ...FORGED],
    subject: [],
  },
];

const bytesOf = ({ path, headers }: Try, token: string): string => {
  const authorization = path.startsWith("/public") ? [] : [`Authorization: Bearer ${token}`];
  return request([`GET ${path} HTTP/1.1`, "Host: localhost", ...authorization, ...headers]);
};

/** Returns what a backend that folds `-` and `_` reads, in addition to the values "root". */
function identitySeen(backend: RawBackend): { subjects: string[]; forged: string[] } {
  const headers = backend.requests()[0]?.headers ?? [];
  const folded = headers.map(
    ([name, value]) => [name.toLowerCase().replaceAll("_", "-"), value] as const,
  );
  return {
    subjects: folded.filter(([name]) => name === "x-auth-subject").map(([, value]) => value),
    forged: folded
      .filter(([name, value]) => name.startsWith("x-") && value === "root")
      .map(([name]) => name),
  };
}

describe("Sallyport", () => {
  const standing = useSallyport();

  it.each(TRIES)("removes it $name", async (row) => {
    const { gate, backend } = standing();
    await exchange(gate, bytesOf(row, gate.token));
    expect(backend.requests()).toHaveLength(1);
    expect(identitySeen(backend)).toEqual({ subjects: row.subject, forged: [] });
  });

  it("does not pass the token to the backend", async () => {
    const { gate, backend } = standing();
    for (const row of TRIES) {
      await exchange(gate, bytesOf(row, gate.token));
    }
    const received = backend.connections.map((connection) => connection.received().toString());
    expect(received.filter((text) => text.includes(gate.token))).toEqual([]);
  });
});

describe("Sallyport with the preset oauth2-proxy", () => {
  const standing = useSallyport(undefined, { config: { identity: { headers: "oauth2-proxy" } } });
  const forged = ["X-Forwarded-User: root", "X_Forwarded_User: root", "X-Forwarded-Groups: root"];

  it.each([
    ["/orders", ["alice"]],
    ["/public/x", []],
  ])("removes its names on %s", async (path, expected) => {
    const { gate, backend } = standing();
    await exchange(gate, bytesOf({ name: "", path, headers: forged, subject: [] }, gate.token));
    const headers = backend.requests()[0]?.headers ?? [];
    const users = headers.filter(([name]) => /^x[-_]forwarded[-_]user$/i.test(name));
    expect(users.map(([, value]) => value)).toEqual(expected);
    expect(identitySeen(backend).forged).toEqual([]);
  });
});

describe("plain http-proxy-3", () => {
  const standing = useNaiveProxy();

  it("forwards the spelling with underscores", async () => {
    const { gate, backend } = standing();
    await exchange(
      gate,
      bytesOf({ name: "", path: "/orders", headers: FORGED, subject: [] }, gate.token),
    );
    expect(identitySeen(backend).subjects).toContain("root");
  });

  it("forwards all of it on an upgrade", async () => {
    const { gate, backend } = standing();
    const headers = [...UPGRADE, ...FORGED];
    await exchange(gate, bytesOf({ name: "", path: "/orders", headers, subject: [] }, gate.token));
    expect(identitySeen(backend).subjects).not.toContain("alice");
  });
});
