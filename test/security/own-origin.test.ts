/**
 * The origin of a request whose token is in a cookie, if only `Origin` tells it. The scheme counts: who is on the network
 * between browser and server serves pages of `http://host`, whatever certificate `https://host` has. If TLS ends in front
 * of Sallyport, a trusted proxy knows the scheme that the browser used. `ftp://host` is nobody's page.
 */
import { describe, expect, it } from "vitest";
import { connectHttp2 } from "../support/http2-client.ts";
import { useSallyport } from "../support/pair.ts";
import { exchange, request } from "../support/raw-client.ts";

const routes = [{ name: "all", path: "/", upstream: "app", tokenFrom: [{ cookie: "session" }] }];
const trustedProxies = ["127.0.0.1"];
const SCHEMES = ["http", "https", "ftp", "ws", "wss", "file", "HTTPS"];
const UPGRADE = [
  ...["Connection: Upgrade", "Upgrade: websocket", "Sec-WebSocket-Version: 13"],
  "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
];

/** By server: what a proxy in front says, and the schemes that then count as the own origin. */
const SERVERS: readonly {
  readonly what: string;
  readonly server: object;
  readonly proto: readonly string[];
  readonly own: readonly string[];
}[] = [
  { what: "TLS", server: {}, proto: [], own: ["https"] },
  { what: "TLS, and a client that lies", server: {}, proto: ["http"], own: ["https"] },
  { what: "TLS from a proxy", server: { trustedProxies }, proto: ["https"], own: ["https"] },
  {
    what: "TLS from a proxy of clear text",
    server: { trustedProxies },
    proto: ["http"],
    own: ["http"],
  },
  // TLS may end in front, unseen.
  { what: "clear text", server: { tls: "off" }, proto: [], own: ["http", "https"] },
  {
    what: "clear text, and a client that lies",
    server: { tls: "off" },
    proto: ["https"],
    own: ["http", "https"],
  },
  ...[
    { proto: [], own: ["http", "https"] },
    { proto: ["https"], own: ["https"] },
    { proto: ["HTTPS"], own: ["https"] },
    { proto: ["wss"], own: ["https"] },
    { proto: ["http"], own: ["http"] },
    { proto: ["ws"], own: ["http"] },
    { proto: ["http, https"], own: ["https"] },
    { proto: ["http", "https"], own: ["https"] },
    { proto: ["ftp"], own: ["https"] },
  ].map((row) => ({
    what: `clear text from a proxy that says ${row.proto.join(" and ")}`,
    ...row,
    server: { tls: "off", trustedProxies },
  })),
];

const kinds = [
  { name: "TLS", server: {} },
  { name: "TLS from a trusted proxy", server: { trustedProxies } },
  { name: "clear text", server: { tls: "off" } },
  { name: "clear text from a trusted proxy", server: { tls: "off", trustedProxies } },
];

describe.each(kinds)("over $name", ({ server }) => {
  const standing = useSallyport(undefined, {
    config: { server: { ...server, http2: true }, routes },
  });
  const rows = SERVERS.filter((row) => JSON.stringify(row.server) === JSON.stringify(server));

  it.each(rows)("$what: $own", async ({ proto, own }) => {
    const { gate } = standing();
    const cookie = `session=${gate.token}`;
    const fields = ["Host: x", `Cookie: ${cookie}`, ...proto.map((p) => `X-Forwarded-Proto: ${p}`)];
    await using client = await connectHttp2(gate);
    for (const scheme of SCHEMES) {
      const origin = `${scheme}://x`;
      const wanted = own.includes(scheme) ? 200 : 403;
      for (const head of [["POST / HTTP/1.1"], ["GET / HTTP/1.1", ...UPGRADE]]) {
        const { last } = await exchange(gate, request([...head, ...fields, `Origin: ${origin}`]));
        expect([head[0], origin, last.status]).toEqual([head[0], origin, wanted]);
      }
      const { status } = await client.ask({
        ":method": "POST",
        ":path": "/",
        ":authority": "x",
        cookie,
        origin,
        ...(proto.length === 0 ? {} : { "x-forwarded-proto": [...proto] }),
      });
      expect(["HTTP/2", origin, status]).toEqual(["HTTP/2", origin, wanted]);
    }
  });

  it("another host or port is none", async () => {
    const { gate } = standing();
    for (const origin of ["https://x:8443", "https://y", "https://x.y", "https://u@x", "null"]) {
      const head = ["POST / HTTP/1.1", "Host: x", `Cookie: session=${gate.token}`];
      const { last } = await exchange(gate, request([...head, `Origin: ${origin}`]));
      expect([origin, last.status]).toEqual([origin, 403]);
    }
  });
});
