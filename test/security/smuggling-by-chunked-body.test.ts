/**
 * Smuggling past the token check. For `DELETE` and `OPTIONS` with a chunked body, the `deleteLength` pass of
 * http-proxy-3 sets `content-length: 0`, deletes `transfer-encoding`, and sends the body anyway. On a keep-alive
 * connection, the backend takes the body for the next request, which never passed the token check, and whose answer
 * the next client gets.
 */
import { describe, expect, it } from "vitest";
import { useNaiveProxy, useSallyport } from "../support/pair.ts";
import { chunked, exchange, request } from "../support/raw-client.ts";
import { until } from "../support/until.ts";

const SMUGGLED = request(["GET /admin HTTP/1.1", "Host: backend"]);
const HEAD = ["Host: localhost", "Transfer-Encoding: chunked"];

const CASES = [
  { method: "DELETE", smuggledByNaive: true },
  { method: "OPTIONS", smuggledByNaive: true },
  { method: "GET", smuggledByNaive: false },
  { method: "HEAD", smuggledByNaive: false },
  { method: "POST", smuggledByNaive: false },
  { method: "PROPFIND", smuggledByNaive: false },
];

const attack = (method: string): string =>
  request([`${method} /public/x HTTP/1.1`, ...HEAD], chunked(SMUGGLED));
const AFTER = request(["GET /public/after HTTP/1.1", "Host: localhost"]);

describe("Sallyport", () => {
  const standing = useSallyport(undefined, { withoutToken: true });

  it.each(CASES)("forwards the body of $method as a body", async ({ method }) => {
    const { gate, backend } = standing();
    const answer = await exchange(gate, attack(method), { head: method === "HEAD" });
    expect(answer.last.status).toBe(200);
    await exchange(gate, AFTER);
    expect(backend.seen()).toEqual([`${method} /public/x`, "GET /public/after"]);
    expect(backend.requests()[0]?.body.toString()).toBe(SMUGGLED);
  });

  it.each(CASES)("forwards the body of $method with a length as a body", async ({ method }) => {
    const { gate, backend } = standing();
    const head = [`${method} /public/x HTTP/1.1`, "Host: localhost"];
    const bytes = request([...head, `Content-Length: ${SMUGGLED.length}`], SMUGGLED);
    const answer = await exchange(gate, bytes, { head: method === "HEAD" });
    expect(answer.last.status).toBe(200);
    await exchange(gate, AFTER);
    expect(backend.seen()).toEqual([`${method} /public/x`, "GET /public/after"]);
    expect(backend.requests()[0]?.body.toString()).toBe(SMUGGLED);
  });

  it("does not let an upgrade contain a second request", async () => {
    const { gate, backend } = standing();
    const head = [
      "GET /public/x HTTP/1.1",
      "Host: localhost",
      "Connection: upgrade",
      "Upgrade: h2c",
    ];
    await exchange(gate, request(head, SMUGGLED), { responses: Infinity });
    await exchange(gate, AFTER);
    expect(backend.seen().filter((line) => line.includes("/admin"))).toEqual([]);
  });
});

describe("plain http-proxy-3", () => {
  const standing = useNaiveProxy();

  it.each(CASES.filter((row) => row.smuggledByNaive))(
    "lets the backend execute the body of $method",
    async ({ method }) => {
      const { gate, backend } = standing();
      await exchange(gate, attack(method));
      await until(() => backend.seen().includes("GET /admin"));
      expect(backend.seen()).toEqual([`${method} /public/x`, "GET /admin"]);
    },
  );
});
