/**
 * `Expect` as a way around header rewriting. http-proxy-3 does not emit `proxyReq` if the client sends `Expect`, so a
 * proxy that sets its identity headers and removes the token in that event forwards what the client sent: a forged
 * identity, and the token. Expectations other than 100-continue cannot be met and are answered with 417 (RFC 9110
 * §10.1.1).
 */
import { describe, expect, it } from "vitest";
import { expectRefusal } from "../support/envelope.ts";
import { valuesOf } from "../support/http-reader.ts";
import { useNaiveProxy, useSallyport } from "../support/pair.ts";
import { exchange, request } from "../support/raw-client.ts";

const attack = (token: string, expectation: string): string =>
  request(
    [
      "POST /orders HTTP/1.1",
      "Host: localhost",
      `Authorization: Bearer ${token}`,
      "X-Auth-Subject: root",
      `Expect: ${expectation}`,
      "Content-Length: 4",
    ],
    "body",
  );

describe("Sallyport", () => {
  const standing = useSallyport();

  it.each(["100-continue", "100-Continue"])("rewrites the headers with %s", async (expectation) => {
    const { gate, backend } = standing();
    const answer = await exchange(gate, attack(gate.token, expectation));
    expect(answer.last.status).toBe(200);
    const [seen] = backend.requests();
    expect(valuesOf(seen?.headers ?? [], "x-auth-subject")).toEqual(["alice"]);
    expect(valuesOf(seen?.headers ?? [], "authorization")).toEqual([]);
    expect(seen?.body.toString()).toBe("body");
  });

  it("requests the body from a client that waits for 100", async () => {
    const { gate, backend } = standing();
    const waiting = attack(gate.token, "100-continue").slice(0, -"body".length);
    let sent = false;
    const answer = await exchange(gate, waiting, {
      onBytes(raw, write) {
        if (!sent && raw.startsWith("HTTP/1.1 100 ")) {
          sent = true;
          write("body");
        }
      },
    });
    expect(answer.responses.map(({ status }) => status)).toEqual([100, 200]);
    expect(backend.requests()[0]?.body.toString()).toBe("body");
  });

  it("refuses an upload without a token before its body", async () => {
    const { gate, backend } = standing();
    const waiting = attack("wrong", "100-continue").slice(0, -"body".length);
    const answer = await exchange(gate, waiting);
    expect(answer.last.status).toBe(401);
    expect(backend.seen()).toEqual([]);
  });

  it("answers every other expectation itself", async () => {
    const { gate, backend } = standing();
    const answer = await exchange(gate, attack(gate.token, "200-maybe"), { responses: Infinity });
    expectRefusal(answer, 417);
    expect(backend.seen()).toEqual([]);
  });
});

describe("plain http-proxy-3", () => {
  const standing = useNaiveProxy();

  it("forwards the forged identity and the token", async () => {
    const { gate, backend } = standing();
    await exchange(gate, attack(gate.token, "100-continue"));
    const headers = backend.requests()[0]?.headers ?? [];
    expect(valuesOf(headers, "x-auth-subject")).toEqual(["root"]);
    expect(valuesOf(headers, "authorization")).toEqual(["Bearer good"]);
  });

  it("answers another expectation without a body", async () => {
    const { gate } = standing();
    const { last } = await exchange(gate, attack(gate.token, "200-maybe"));
    expect([last.status, last.body]).toEqual([417, ""]);
  });
});
