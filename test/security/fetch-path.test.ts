/**
 * A switch in the environment. With `FORCE_FETCH_PATH=true`, http-proxy-3 forwards through `fetch`: it follows
 * redirects (so the client gets the answer to a request that was never checked), loses all cookies but one, and
 * decompresses a gzip body without changing the head. Sallyport never uses that code, whatever the environment
 * contains.
 */
import { gzipSync } from "node:zlib";
import { describe, expect, it } from "vitest";
import { startNaiveProxy } from "../support/naive.ts";
import { useSallyport, use } from "../support/pair.ts";
import { startRawBackend, type RawScript } from "../support/raw-backend.ts";
import { exchange, request } from "../support/raw-client.ts";

const FORCED = { FORCE_FETCH_PATH: "true" };
const PACKED = gzipSync("packed");

const script: RawScript = ({ startLine }) => {
  if (startLine.includes("/redirect")) {
    return { write: "HTTP/1.1 302 Found\r\nLocation: /admin\r\nContent-Length: 0\r\n\r\n" };
  }
  if (startLine.includes("/cookies")) {
    const cookies = "Set-Cookie: a=1\r\nSet-Cookie: b=2\r\n";
    return { write: `HTTP/1.1 200 OK\r\n${cookies}Content-Length: 0\r\n\r\n` };
  }
  if (startLine.includes("/gzip")) {
    const head = `HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: ${PACKED.length}`;
    return { write: Buffer.concat([Buffer.from(`${head}\r\n\r\n`), PACKED]) };
  }
  return { write: "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nadmin" };
};
const get = (name: string): string =>
  request([`GET /public/${name} HTTP/1.1`, "Host: localhost", "Accept-Encoding: gzip"]);

describe("Sallyport", () => {
  const standing = useSallyport(script, { withoutToken: true, env: FORCED });

  it("does not follow redirects", async () => {
    const { gate, backend } = standing();
    const { last } = await exchange(gate, get("redirect"));
    expect([last.status, last.header("location")]).toEqual([302, "/admin"]);
    expect(backend.seen()).toEqual(["GET /public/redirect"]);
  });

  it("keeps every cookie", async () => {
    const { last } = await exchange(standing().gate, get("cookies"));
    expect(last.header("set-cookie")).toBe("a=1 | b=2");
  });

  it("leaves a compressed body unchanged", async () => {
    const { last } = await exchange(standing().gate, get("gzip"));
    expect(last.header("content-encoding")).toBe("gzip");
    expect(Buffer.from(last.body, "latin1").equals(PACKED)).toBe(true);
  });
});

describe("plain http-proxy-3", () => {
  const standing = use(
    () => startRawBackend(script),
    (target) => startNaiveProxy(target, {}, FORCED),
  );

  it("executes a request that no one checked", async () => {
    const { gate, backend } = standing();
    const { last } = await exchange(gate, get("redirect"));
    expect([last.status, last.body]).toEqual([200, "admin"]);
    expect(backend.seen()).toEqual(["GET /public/redirect", "GET /admin"]);
  });

  it("loses a cookie", async () => {
    const { last } = await exchange(standing().gate, get("cookies"));
    expect(last.header("set-cookie")).toBe("b=2");
  });

  it("decompresses a body without changing the head, which contains gzip and the compressed length", async () => {
    const { raw, ended } = await exchange(standing().gate, get("gzip"), { timeoutMs: 500 });
    expect(raw).toMatch(/content-encoding: gzip\r\n[^]*\r\n\r\npacked$/);
    expect(ended).toBe("timeout");
  });
});
