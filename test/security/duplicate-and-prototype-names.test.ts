/**
 * Duplicate fields, and names that have a meaning in JavaScript. Parsers disagree about which of two `Host`,
 * `Authorization`, `Content-Length` or `Cookie` fields counts, so the backend may read another one than the gate
 * checked. And a name such as `__proto__` or `constructor` that becomes a key of an object changes the object instead
 * (prototype pollution and crashes: http-proxy and Node's own joining of headers had both). A duplicate of a field
 * that may occur once is refused, or is not a token; fields that may be repeated arrive unchanged and in order; and
 * every name is only a name.
 */
import { describe, expect, it } from "vitest";
import { expectEnvelope } from "../support/envelope.ts";
import { valuesOf } from "../support/http-reader.ts";
import { allOf } from "../support/marked-attack.ts";
import { useNaiveProxy, useSallyport } from "../support/pair.ts";
import type { RawScript } from "../support/raw-backend.ts";
import { exchange, request } from "../support/raw-client.ts";

const UPGRADE = [
  ...["Connection: Upgrade", "Upgrade: websocket", "Sec-WebSocket-Version: 13"],
  "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
];
const KINDS = [
  { kind: "request", more: [] },
  { kind: "upgrade", more: UPGRADE },
] as const;

/** The same field in two spellings; parsers may use the first, the last, or both joined. */
const pairs = (first: string, second: string, a: string, b: string): string[][] => [
  [`${first}: ${a}`, `${second}: ${b}`],
  [`${first}: ${b}`, `${second}: ${a}`],
  [`${first}: ${a}`, `${second}: ${a}`],
  [`${first}: ${a}`, "X-Between: 1", `${second}: ${b}`],
  [`${first}: ${a}`, `${second}:`],
  [`${first}:`, `${second}: ${a}`],
];
const HOSTS = pairs("Host", "HOST", "localhost", "evil.example");
const LENGTHS = pairs("Content-Length", "content-length", "4", "40");
const CODINGS = pairs("Transfer-Encoding", "transfer-encoding", "chunked", "identity");

const PROTOTYPE_NAMES = [
  ...["__proto__", "constructor", "prototype", "toString", "valueOf", "hasOwnProperty"],
  ...["__defineGetter__", "isPrototypeOf", "then", "toJSON", "length", "name", "get", "set"],
];

const script: RawScript = () => ({
  write: request(["HTTP/1.1 200 OK", "Content-Length: 2"], "ok"),
});

describe.each(KINDS)("Sallyport with $kind", ({ kind, more }) => {
  const standing = useSallyport(script);
  const head = (path: string): string[] => [`GET ${path} HTTP/1.1`, ...more];

  it("refuses duplicates of fields that determine where the message goes or ends", async () => {
    const { gate, backend } = standing();
    const messages = [
      ...HOSTS.map((fields) => request([...head("/public/x"), ...fields])),
      ...[...LENGTHS, ...CODINGS].map((fields) =>
        request([...head("/public/x"), "Host: localhost", ...fields], "4\r\nbody\r\n0\r\n\r\n"),
      ),
    ];
    const statuses = await allOf(messages, async (bytes) => {
      const answer = await exchange(gate, bytes, { responses: Infinity });
      return `${answer.responses.map(({ status }) => status).join()} ${answer.ended}`;
    });
    expect(statuses).toEqual(messages.map(() => "400 closed"));
    expect(backend.seen()).toEqual([]);
  });

  it("does not accept two Authorization fields as a token", async () => {
    const { gate, backend } = standing();
    const good = `Bearer ${gate.token}`;
    const all = pairs("Authorization", "authorization", good, "Bearer x");
    const answers = await allOf(all, (fields) =>
      exchange(gate, request([...head("/orders"), "Host: localhost", ...fields])),
    );
    for (const { last } of answers) expectEnvelope(last, 401);
    expect(backend.seen()).toEqual([]);
  });

  it("passes on Cookie fields unchanged", async () => {
    const { gate, backend } = standing();
    const cookies = ["Cookie: a=1", "cookie: b=2; c=3", "COOKIE: a=4"];
    await exchange(gate, request([...head("/public/x"), "Host: localhost", ...cookies]));
    const arrived = valuesOf(backend.requests()[0]?.headers ?? [], "cookie");
    expect(arrived.join("; ")).toBe("a=1; b=2; c=3; a=4");
  });

  it("treats names of the prototype as plain names", async () => {
    const { gate, backend } = standing();
    const fields = PROTOTYPE_NAMES.flatMap((name) => [`${name}: 1`, `${name}: 2`]);
    const lines = [...head("/public/x"), "Host: localhost", ...fields];
    expect((await exchange(gate, request(lines))).last.status).toBe(200);
    const [seen] = backend.requests();
    const lost = PROTOTYPE_NAMES.filter(
      (name) => valuesOf(seen?.headers ?? [], name.toLowerCase()).join() !== "1,2",
    );
    expect(lost).toEqual([]);
    expect(valuesOf(seen?.headers ?? [], "x-forwarded-for")).toEqual(["127.0.0.1"]);
    expect(valuesOf(seen?.headers ?? [], "host")).toEqual(["localhost"]);
  });

  it("is not changed by them for later requests", async () => {
    const { gate, backend } = standing();
    const names = PROTOTYPE_NAMES.join(", ");
    const lines = [
      `Connection: ${kind === "upgrade" ? "Upgrade, " : ""}${names}`,
      "Trailer: __proto__",
    ];
    await exchange(gate, request([...head("/public/x"), "Host: localhost", ...lines]));
    backend.forget();
    const { last } = await exchange(gate, request(["GET /public/y HTTP/1.1", "Host: localhost"]));
    expect(last.status).toBe(200);
    const names2 = backend.requests()[0]?.headers.map(([name]) => name.toLowerCase());
    expect(names2?.toSorted()).toEqual([
      ...["cdn-loop", "connection", "forwarded", "host", "x-forwarded-for", "x-forwarded-host"],
      ...["x-forwarded-port", "x-forwarded-proto", "x-real-ip", "x-request-id"],
    ]);
    expect(gate.exited()).toBe(false);
  });
});

describe("a naive proxy", () => {
  const standing = useNaiveProxy(script);

  it("lets one of two hosts, and one of two tokens, win", async () => {
    const { gate, backend } = standing();
    const hosts = await exchange(gate, request(["GET /public/x HTTP/1.1", ...(HOSTS[0] ?? [])]));
    const tokens = ["Authorization: Bearer good", "authorization: Bearer x"];
    const lines = ["GET /orders HTTP/1.1", "Host: localhost", ...tokens];
    const both = await exchange(gate, request(lines));
    expect([hosts.last.status, both.last.status]).toEqual([200, 200]);
    expect(backend.seen()).toEqual(["GET /public/x", "GET /orders"]);
  });

  it("loses __proto__", async () => {
    const { gate, backend } = standing();
    const lines = ["GET /public/x HTTP/1.1", "Host: localhost", "__proto__: 1", "__proto__: 2"];
    await exchange(gate, request(lines));
    expect(valuesOf(backend.requests()[0]?.headers ?? [], "__proto__")).not.toEqual(["1", "2"]);
  });
});
