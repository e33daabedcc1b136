/**
 * An order placed twice. A backend may close an idle connection at the moment the next request is written to it. A
 * proxy that repeats every request then executes a payment twice; one that repeats none turns each such moment into
 * an error. A request is sent again only once, on another connection, and only if it is idempotent (RFC 9110 §9.2.2),
 * no byte of its body was sent, and no byte of an answer has arrived.
 */
import { describe, expect, it } from "vitest";
import { expectEnvelope } from "../support/envelope.ts";
import { useNaiveProxy, useSallyport } from "../support/pair.ts";
import type { Gate } from "../support/gate.ts";
import type { RawBackend, RawScript } from "../support/raw-backend.ts";
import { exchange, request } from "../support/raw-client.ts";
import { until } from "../support/until.ts";

interface Standing {
  readonly gate: Gate;
  readonly backend: RawBackend;
}

const OK = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

/** Each connection answers one request. The next request on it is lost, or gets the beginning of an answer. */
const script: RawScript = ({ startLine }, { served }) => {
  if (startLine.includes("/always")) return { write: "", then: "reset" };
  if (served === 1) return { write: OK };
  return { write: startLine.includes("/begun") ? "HTTP/1.1 200" : "", then: "close" };
};

const send = (method: string, path: string, body = ""): string =>
  request(
    [
      `${method} /public/${path} HTTP/1.1`,
      "Host: localhost",
      ...(body === "" ? [] : [`Content-Length: ${body.length}`]),
    ],
    body,
  );

const SMALL = "x".repeat(100);
/** Too large to be buffered until the answer: it is streamed. */
const LARGE = "x".repeat(20_000);

/** Idempotent methods that may have a body. */
const METHODS = ["GET", "OPTIONS", "PUT", "DELETE", "PROPFIND", "REPORT", "SEARCH"];

const WITH_BODIES = METHODS.flatMap((method) =>
  [SMALL, LARGE].map((body) => ({
    name: `${method} with a body of ${body.length} bytes`,
    bytes: send(method, "x", body),
    status: 502,
    times: 1,
  })),
);

const WITHOUT_BODIES = METHODS.map((method) => ({
  name: `${method} without a body`,
  bytes: send(method, "x"),
  status: 200,
  times: 2,
}));

const CASES = [
  ...WITH_BODIES,
  ...WITHOUT_BODIES,
  { name: "POST without a body", bytes: send("POST", "x"), status: 502, times: 1 },
  { name: "POST with a body", bytes: send("POST", "x", "pay"), status: 502, times: 1 },
  { name: "PATCH with a body", bytes: send("PATCH", "x", "pay"), status: 502, times: 1 },
  { name: "GET with an answer begun", bytes: send("GET", "begun"), status: 502, times: 1 },
  { name: "GET that is always lost", bytes: send("GET", "always"), status: 502, times: 2 },
];

/** Sends requests until one is answered: then its connection is idle, has served once, and is the only one. */
async function leaveOneIdle({ gate, backend }: Standing): Promise<void> {
  for (const { socket } of backend.connections) socket.destroy();
  // The proxy may not have noticed yet that its connections are gone.
  await until(async () => (await exchange(gate, send("GET", "first"))).last.status === 200);
  backend.forget();
}

describe("Sallyport", () => {
  const standing = useSallyport(script, { withoutToken: true, config: {} });

  it.each(CASES)("$name: $status, sent $times times", async ({ bytes, status, times }) => {
    const { gate, backend } = standing();
    await leaveOneIdle(standing());
    const { last } = await exchange(gate, bytes);
    expect(last.status).toBe(status);
    if (status === 502) expectEnvelope(last, 502);
    expect(backend.seen()).toHaveLength(times);
  });
});

describe("plain http-proxy-3", () => {
  const standing = useNaiveProxy(script);

  it("answers requests that could have been repeated with an error", async () => {
    const { gate, backend } = standing();
    await leaveOneIdle(standing());
    expect((await exchange(gate, send("GET", "x"))).last.status).toBe(502);
    expect(backend.seen()).toHaveLength(1);
  });
});

describe("http-proxy-3 with an error handler that retries", () => {
  const standing = useNaiveProxy(script, { sendsAgain: true });

  it("executes a payment twice", async () => {
    const { gate, backend } = standing();
    await leaveOneIdle(standing());
    expect((await exchange(gate, send("POST", "x"))).last.status).toBe(200);
    expect(backend.seen()).toEqual(["POST /public/x", "POST /public/x"]);
  });
});
