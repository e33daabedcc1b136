/**
 * Targets that name something else. `GET http://[ HTTP/1.1` makes `proxy.web()` of http-proxy-3 throw and ends the
 * process: one line from any client stops the pod. The absolute form contains a host in addition to `Host`, so that
 * check and backend may each use a different one; and some parsers cut off a `#` that others keep.
 */
import { describe, expect, it } from "vitest";
import { expectRefusal } from "../support/envelope.ts";
import { startNaiveProxy } from "../support/naive.ts";
import { useNaiveProxy, useSallyport } from "../support/pair.ts";
import { startRawBackend } from "../support/raw-backend.ts";
import { exchange, request } from "../support/raw-client.ts";

const get = (target: string, token: string, host = "app.example"): string =>
  request([`GET ${target} HTTP/1.1`, `Host: ${host}`, `Authorization: Bearer ${token}`]);

const REFUSED: readonly { target: string; naive?: number }[] = [
  { target: "http://[" },
  { target: "http://" },
  { target: "http://other.example/x", naive: 200 },
  { target: "http://app.example@other.example/x", naive: 200 },
  { target: "http://app.example:99999/x" },
  { target: "ftp://app.example/x", naive: 200 },
  { target: "/a#b", naive: 200 },
  { target: "/a?b#c", naive: 200 },
  { target: "*" },
  { target: "x" },
  { target: "?x" },
  { target: "/a b" },
  { target: "/caf\xe9" },
  { target: "/a\x7f" },
];

describe("Sallyport", () => {
  const standing = useSallyport();

  it.each(REFUSED)("refuses $target", async ({ target }) => {
    const { gate, backend } = standing();
    const answer = await exchange(gate, get(target, gate.token), { responses: Infinity });
    expectRefusal(answer, 400);
    expect(backend.seen()).toEqual([]);
  });

  it("serves the absolute form that names the same host", async () => {
    const { gate, backend } = standing();
    const answer = await exchange(gate, get("https://app.example/x?y", gate.token));
    expect([200, 400]).toContain(answer.last.status);
    expect(backend.seen()).toEqual(answer.last.status === 200 ? ["GET /x?y"] : []);
  });

  it("continues to serve", async () => {
    const { gate } = standing();
    expect((await exchange(gate, get("/x", gate.token))).last.status).toBe(200);
    expect(gate.exited()).toBe(false);
  });
});

describe("plain http-proxy-3", () => {
  const standing = useNaiveProxy();

  it.each(REFUSED.filter((row) => row.naive !== undefined))(
    "forwards $target",
    async ({ target, naive }) => {
      const { gate } = standing();
      expect((await exchange(gate, get(target, gate.token))).last.status).toBe(naive);
    },
  );

  it("is ended by one request", async () => {
    await using backend = await startRawBackend();
    await using gate = await startNaiveProxy(backend.url);
    await exchange(gate, get("http://[", gate.token));
    expect(await gate.exit).toBe(1);
    expect(gate.stderr()).toContain("ERR_INVALID_URL");
  });
});
