/**
 * A hostile backend. Status 099, a control character in the reason phrase, `Trailer` together with `Content-Length`,
 * two lengths, an endless head: the HTTP client of a proxy accepts it, and its HTTP server then throws in an event
 * handler, which ends the process. Each of these becomes one 502, never an exception, and never two answers.
 */
import { describe, expect, it } from "vitest";
import { expectEnvelope } from "../support/envelope.ts";
import { startNaiveProxy } from "../support/naive.ts";
import { useSallyport } from "../support/pair.ts";
import { startRawBackend, type RawScript } from "../support/raw-backend.ts";
import { exchange, request } from "../support/raw-client.ts";

const OK = "HTTP/1.1 200 OK\r\n";
const FINE = `${OK}Content-Length: 2\r\n\r\nok`;

/** Announces trailers that are impossible. Node throws if it is made to send both fields. */
const TRAILER_BESIDE_LENGTH = `${OK}Trailer: X-Sum\r\nContent-Length: 2\r\n\r\nok`;

const ANSWERS: Readonly<Record<string, { write: string; crashesNaive?: true; open?: true }>> = {
  "status-099": { write: "HTTP/1.1 099 What\r\nContent-Length: 0\r\n\r\n", crashesNaive: true },
  "status-000": { write: "HTTP/1.1 000 What\r\nContent-Length: 0\r\n\r\n", crashesNaive: true },
  "status-1000": { write: "HTTP/1.1 1000 What\r\nContent-Length: 0\r\n\r\n" },
  "control-in-reason": {
    write: "HTTP/1.1 200 O\x01K\r\nContent-Length: 2\r\n\r\nok",
    crashesNaive: true,
  },
  "two-lengths": { write: `${OK}Content-Length: 2\r\nContent-Length: 3\r\n\r\nok!` },
  "length-and-chunked": {
    write: `${OK}Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n`,
  },
  "negative-length": { write: `${OK}Content-Length: -1\r\n\r\n` },
  "huge-head": { write: `${OK}X-A: ${"a".repeat(200_000)}\r\nContent-Length: 0\r\n\r\n` },
  "endless-head": { write: OK + "X-A: a\r\n".repeat(50_000) },
  garbage: { write: "\0\x01\x02 no HTTP\r\n\r\n" },
  "another-protocol": { write: "SSH-2.0-OpenSSH_9.2\r\n" },
  "nul-in-header": { write: `${OK}X-A: a\0b\r\nContent-Length: 0\r\n\r\n` },
  "newline-in-header": { write: `${OK}X-A: a\rb\r\nContent-Length: 0\r\n\r\n` },
  "upgrade-nobody-asked-for": {
    write: "HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n",
  },
  "status-099-kept-open": { write: "HTTP/1.1 099 What\r\nContent-Length: 0\r\n\r\n", open: true },
  "closed-in-head": { write: "HTTP/1.1 200 OK\r\nX-A: " },
  nothing: { write: "" },
};

const script: RawScript = ({ startLine }) => {
  const name = /\/public\/([A-Za-z0-9_-]+)/.exec(startLine)?.[1] ?? "";
  if (name === "trailer-beside-length") return { write: TRAILER_BESIDE_LENGTH };
  if (name === "poison") return { write: `${FINE}${OK}Content-Length: 6\r\n\r\npoison` };
  if (name === "dribble") return { write: `${OK}X-A: ${"a".repeat(1000)}`, everyMs: 50 };
  if (/^[a-z]+Of$|^constructor$|^__proto__$/.test(name)) {
    return { write: `${OK}${name}: a\r\n${name}: b\r\nContent-Length: 2\r\n\r\nok` };
  }
  const { write = FINE, open = false } = ANSWERS[name] ?? {};
  return open ? { write } : { write, then: "close" };
};
const get = (name: string): string => request([`GET /public/${name} HTTP/1.1`, "Host: localhost"]);

describe("Sallyport", () => {
  const standing = useSallyport(script, {
    withoutToken: true,
    config: { upstreams: { app: { timeouts: { response: "1s" } } } },
  });

  it.each(Object.keys(ANSWERS))("answers %s with one 502", async (name) => {
    const { gate } = standing();
    const bytes = get(name).replace("\r\n\r\n", "\r\nConnection: close\r\n\r\n");
    const answer = await exchange(gate, bytes, { responses: Infinity });
    expect(answer.responses).toHaveLength(1);
    expectEnvelope(answer.last, 502);
    expect(answer.last.header("proxy-status")).toMatch(/^sallyport; error=[a-z_]+$/);
  });

  it("continues to serve", async () => {
    const { gate } = standing();
    expect((await exchange(gate, get("fine"))).last.body).toBe("ok");
    expect(gate.exited()).toBe(false);
  });

  it("does not take an unsolicited answer for that to the next request", async () => {
    const { gate } = standing();
    expect((await exchange(gate, get("poison"))).last.body).toBe("ok");
    expect((await exchange(gate, get("fine"))).last.body).toBe("ok");
  });

  it("answers a Trailer next to a length with 502", async () => {
    const { last } = await exchange(standing().gate, get("trailer-beside-length"));
    expectEnvelope(last, 502);
  });

  it.each(["constructor", "__proto__", "valueOf"])("takes a header named %s", async (name) => {
    const { last } = await exchange(standing().gate, get(name));
    expect([last.status, last.body]).toEqual([200, "ok"]);
  });

  it("does not wait for a head that arrives byte by byte", async () => {
    const { last } = await exchange(standing().gate, get("dribble"));
    expectEnvelope(last, 504);
  });
});

describe("plain http-proxy-3", () => {
  const crashing = Object.keys(ANSWERS).filter((name) => ANSWERS[name]?.crashesNaive);
  crashing.push("trailer-beside-length");

  it.each(crashing)("is ended by %s", async (name) => {
    await using backend = await startRawBackend(script);
    await using gate = await startNaiveProxy(backend.url);
    await exchange(gate, get(name));
    expect(await gate.exit).toBe(1);
  });
});
