/**
 * Tunnels through refused upgrades. A proxy that sees `Upgrade: websocket` and opens the tunnel before the backend
 * has agreed passes on everything after the handshake unchecked: the client asks for a version that no backend
 * supports, is refused with 426, and continues to speak plain HTTP to the backend (WebSocket smuggling, 2019; the
 * same with h2c, 2020, and with an upgrade in HTTP/1.0, which RFC 9110 §7.8 requires to be ignored). Bytes after a
 * handshake reach the backend after its 101, and only then.
 */
import { describe, expect, it } from "vitest";
import { valuesOf } from "../support/http-reader.ts";
import { useNaiveProxy, useSallyport } from "../support/pair.ts";
import type { RawScript } from "../support/raw-backend.ts";
import { chunked, exchange, request } from "../support/raw-client.ts";

const SMUGGLED = request(["GET /admin HTTP/1.1", "Host: backend"]);
const AFTER = request(["GET /public/after HTTP/1.1", "Host: localhost"]);
const OK = request(["HTTP/1.1 200 OK", "Content-Length: 2"], "ok");

/** The backend's answer to a handshake, by the last segment of its path. */
const REFUSALS: Readonly<Record<string, string>> = {
  "426": request([
    "HTTP/1.1 426 Upgrade Required",
    "Sec-WebSocket-Version: 13",
    "Content-Length: 0",
  ]),
  "400": request(["HTTP/1.1 400 Bad Request", "Content-Length: 0"]),
  "200": OK,
  "200-upgrade": request(
    ["HTTP/1.1 200 OK", "Connection: Upgrade", "Upgrade: websocket", "Content-Length: 2"],
    "ok",
  ),
  "401": request(["HTTP/1.1 401 Unauthorized", "Content-Length: 0"]),
  chunked: request(["HTTP/1.1 403 Forbidden", "Transfer-Encoding: chunked"], chunked("no")),
  "until-close": request(["HTTP/1.1 403 Forbidden"], "no"),
};
const script: RawScript = ({ startLine }) => {
  const name = /\/public\/ws-([a-z0-9-]+)/.exec(startLine)?.[1] ?? "";
  if (name === "hang") return "hang";
  return { write: REFUSALS[name] ?? OK, ...(name === "until-close" ? { then: "close" } : {}) };
};

const HANDSHAKE = [
  "Connection: Upgrade",
  "Upgrade: websocket",
  "Sec-WebSocket-Version: 777",
  "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
];
const handshake = (name: string, more: readonly string[] = [], version = "1.1"): string =>
  request([`GET /public/ws-${name} HTTP/${version}`, "Host: localhost", ...HANDSHAKE, ...more]);

describe("Sallyport", () => {
  const standing = useSallyport(script, {
    withoutToken: true,
    config: { upstreams: { app: { websocket: { handshake: "500ms" } } } },
  });

  it.each(Object.keys(REFUSALS))(
    "passes on nothing after a handshake answered with %s",
    async (name) => {
      const { gate, backend } = standing();
      const answer = await exchange(gate, handshake(name) + SMUGGLED + SMUGGLED, {
        responses: Infinity,
      });
      expect(answer.ended).toBe("closed");
      expect(answer.responses.length).toBeLessThanOrEqual(1);
      await exchange(gate, AFTER);
      expect(backend.seen().toSorted()).toEqual(["GET /public/after", `GET /public/ws-${name}`]);
      const received = backend.connections.map((connection) => connection.received().toString());
      expect(received.filter((text) => text.includes("/admin"))).toEqual([]);
    },
  );

  it.each(Object.keys(REFUSALS))("passes on nothing after the answer %s", async (name) => {
    const { gate, backend } = standing();
    let sent = false;
    await exchange(gate, handshake(name), {
      responses: Infinity,
      onBytes(_raw, write) {
        if (!sent) write(SMUGGLED);
        sent = true;
      },
    });
    await exchange(gate, AFTER);
    expect(backend.seen().toSorted()).toEqual(["GET /public/after", `GET /public/ws-${name}`]);
  });

  it("passes on nothing while the backend is silent", async () => {
    const { gate, backend } = standing();
    const answer = await exchange(gate, handshake("hang") + SMUGGLED, { responses: Infinity });
    expect(answer.responses.map(({ status }) => status)).toEqual([504]);
    const received = backend.connections.map((connection) => connection.received().toString());
    expect(received.filter((text) => text.includes("/admin"))).toEqual([]);
  });

  it.each([
    ["named in Connection twice", ["Connection: Upgrade, HTTP2-Settings"]],
    ["with another protocol in addition", ["Upgrade: h2c"]],
    ["with the settings of h2c", ["HTTP2-Settings: AAMAAABkAAQAAP__"]],
  ])("offers the backend nothing but WebSocket: %s", async (_name, more) => {
    const { gate, backend } = standing();
    await exchange(gate, handshake("426", more), { responses: Infinity });
    for (const { headers } of backend.requests()) {
      expect(valuesOf(headers, "upgrade")).toEqual(["websocket"]);
      expect(valuesOf(headers, "connection")).toEqual(["Upgrade"]);
      expect(valuesOf(headers, "http2-settings")).toEqual([]);
    }
  });

  it("passes on no upgrade that Connection does not list", async () => {
    const { gate, backend } = standing();
    const fields = ["Upgrade: h2c", "Upgrade: websocket", "HTTP2-Settings: AAMAAABkAAQAAP__"];
    const bytes = request(["GET /public/x HTTP/1.1", "Host: localhost", ...fields]);
    expect((await exchange(gate, bytes)).last.status).toBe(200);
    const headers = backend.requests()[0]?.headers ?? [];
    expect(headers.filter(([name]) => /^(?:upgrade|http2-settings)$/i.test(name))).toEqual([]);
  });

  it("accepts no upgrade from HTTP/1.0 (RFC 9110 §7.8)", async () => {
    const { gate, backend } = standing();
    const answer = await exchange(gate, handshake("426", [], "1.0") + SMUGGLED, {
      responses: Infinity,
    });
    expect(answer.responses.map(({ status }) => status)).not.toContain(101);
    const upgrades = backend.requests().flatMap(({ headers }) => valuesOf(headers, "upgrade"));
    expect(upgrades).toEqual([]);
  });
});

describe("a naive proxy", () => {
  const standing = useNaiveProxy(script);

  it("accepts an upgrade from HTTP/1.0, and passes on other protocols", async () => {
    const { gate, backend } = standing();
    await exchange(gate, handshake("426", ["HTTP2-Settings: AA"], "1.0"), {
      responses: Infinity,
      timeoutMs: 500,
    });
    const headers = backend.requests()[0]?.headers ?? [];
    expect(valuesOf(headers, "upgrade")).toEqual(["websocket"]);
    expect(valuesOf(headers, "http2-settings")).toEqual(["AA"]);
  });
});
