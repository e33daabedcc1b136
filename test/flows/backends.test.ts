import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { ask, fieldsOf, type Answer } from "../support/ask.ts";
import { testCertificates } from "../support/certificates.ts";
import { startEchoBackend } from "../support/echo-backend.ts";
import { echoedBy } from "../support/echoed.ts";
import { closedPort, startSilentServer } from "../support/dead-ends.ts";
import { useSallyport } from "../support/pair.ts";
import { startRawBackend, type RawBackend, type RawScript } from "../support/raw-backend.ts";
import { startSallyport } from "../support/sallyport.ts";
import { scrape } from "../support/scrape.ts";
import { useSharedSallyport } from "../support/shared-sallyport.ts";
import { temporaryDirectory } from "../support/temporary-directory.ts";
import { until } from "../support/until.ts";

const OK = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
const TIMEOUTS = { timeouts: { connect: "1s", response: "1s" } };

const part = useSharedSallyport({ withoutToken: true });
const route = { auth: "none" };

/** Adds an upstream, which everyone reaches without a token. */
const behind = (target: (stack: AsyncDisposableStack) => Promise<string>, upstream: object = {}) =>
  part(async (stack) => ({ upstream: { targets: [await target(stack)], ...upstream }, route }));

describe("the targets of an upstream", () => {
  const made = part(async (stack) => {
    const start = async () => stack.use(await startEchoBackend());
    const backends = [await start(), await start(), await start()];
    return { backends, upstream: { targets: backends.map(({ url }) => url) }, route };
  });
  it("are used in turn, over persistent connections", async () => {
    const { backends, gate, path } = made();
    for (let i = 0; i < 12; i += 1) {
      expect((await ask(gate, path(`/${i}`))).status).toBe(200);
    }
    const taken = backends.map(({ requests }) =>
      requests.map(({ url }) => Number(url.slice(path("/").length))),
    );
    for (const numbers of taken) {
      expect(numbers.length).toBe(4);
      expect(new Set(numbers.map((number) => number % 3)).size).toBe(1);
    }
    expect(backends.map((backend) => backend.connectionCount())).toEqual([1, 1, 1]);
  });
});

describe("a backend with TLS", () => {
  it("is reached when its certificate and ours are valid; otherwise the client gets 502", async () => {
    const { ca, client } = await testCertificates();
    await using backend = await startEchoBackend({ tls: { requestClientCertificate: true } });
    const targets = [backend.url];
    const ours = { caFile: "ca.crt", certFile: "client.crt", keyFile: "client.key" };
    const names = ["good", "named", "misnamed", "untrusted", "anonymous"];
    await using gate = await startSallyport({
      target: backend.url,
      files: { "ca.crt": ca, "client.crt": client.cert, "client.key": client.key },
      config: {
        routes: names.map((name) => ({ name, path: `/${name}`, auth: "none", upstream: name })),
        upstreams: {
          app: { tls: ours },
          good: { targets, tls: ours },
          named: { targets, tls: { ...ours, serverName: "localhost" } },
          misnamed: { targets, tls: { ...ours, serverName: "other.example.com" } },
          untrusted: { targets, tls: { certFile: "client.crt", keyFile: "client.key" } },
          anonymous: { targets, tls: { caFile: "ca.crt" } },
        },
      },
    });
    const good = await ask(gate, "/good?x", { headers: { host: "other.example.com" } });
    expect(good.status).toBe(200);
    expect(echoedBy(good).url).toBe("/good?x");
    expect((await ask(gate, "/named")).status).toBe(200);
    for (const path of ["/misnamed", "/untrusted", "/anonymous"]) {
      const answer = await ask(gate, path, { headers: { host: "localhost" } });
      expect(answer.status, path).toBe(502);
      // The backend rejects our certificate after the handshake (RFC 8446 §4.4.2.4): a TLS alert or a reset.
      const words =
        path === "/anonymous" ? /tls_protocol_error|connection_terminated/ : /tls_protocol_error/;
      expect(answer.headers["proxy-status"]).toMatch(words);
    }
    expect(backend.requests.length).toBe(2);
  });
});

describe("a backend on a Unix socket", () => {
  const made = behind(async (stack) => {
    const directory = stack.use(await temporaryDirectory());
    const socketPath = join(directory.path, "app.sock");
    return stack.use(await startEchoBackend({ socketPath })).url;
  });
  it("gets requests like any other", async () => {
    const { gate, path } = made();
    const answer = await ask(gate, path("/x?y"), { method: "POST", body: "hello" });
    expect(answer.status).toBe(200);
    expect(echoedBy(answer)).toMatchObject({ method: "POST", url: path("/x?y"), bodyLength: 5 });
  });
});

describe("a backend that fails", () => {
  const script: RawScript = ({ startLine }) => {
    if (startLine.includes("/silent")) return "hang";
    if (startLine.includes("/garbage")) return { write: "SSH-2.0-OpenSSH\r\n", then: "close" };
    if (startLine.includes("/half-head")) return { write: OK.slice(0, 20), then: "close" };
    if (startLine.includes("/guarded")) {
      const head = 'HTTP/1.1 401 Unauthorized\r\nWWW-Authenticate: Basic realm="app"';
      return { write: `${head}\r\nContent-Length: 2\r\n\r\nno` };
    }
    return { write: "", then: startLine.includes("/reset") ? "reset" : "close" };
  };

  function expectFailure(answer: Answer, status: number, word: string): void {
    expect(answer.status).toBe(status);
    expect(answer.headers["proxy-status"]).toBe(`sallyport; error=${word}`);
    expect(answer.headers["content-type"]).toBe("application/json");
    expect(fieldsOf(answer)).toEqual({
      id: expect.toSatisfy(Number.isSafeInteger),
      message: expect.any(String),
      success: false,
    });
  }

  const standing = useSallyport(script, {
    withoutToken: true,
    config: { upstreams: { app: TIMEOUTS } },
  });

  it.each([
    ["silent", 504, "http_response_timeout", "response_timeout"],
    ["reset", 502, "connection_terminated", "reset"],
    ["close", 502, "connection_terminated", "reset"],
    ["half-head", 502, "connection_terminated", "reset"],
    ["garbage", 502, "http_protocol_error", "invalid_response"],
  ])("%s gets %i %s", async (path, status, word, reason) => {
    const { gate } = standing();
    const series = `sallyport_upstream_errors_total{upstream="app",reason="${reason}"}`;
    const before = (await scrape(gate)).value(series);
    expectFailure(await ask(gate, `/public/${path}`, { method: "POST" }), status, word);
    expect((await scrape(gate)).value(series)).toBe(Number(before) + 1);
  });

  const down = behind(async () => `http://127.0.0.1:${await closedPort()}`);
  it("because nothing listens gets 502 connection_refused", async () => {
    const { gate, path } = down();
    expectFailure(await ask(gate, path("/x")), 502, "connection_refused");
  });

  const missing = behind(async () => "unix:/nonexistent/app.sock");
  it("because its socket file is missing gets 502 connection_refused", async () => {
    const { gate, path } = missing();
    expectFailure(await ask(gate, path("/x")), 502, "connection_refused");
  });

  const silent = behind(async (stack) => {
    const { port } = stack.use(await startSilentServer());
    return `https://127.0.0.1:${port}`;
  }, TIMEOUTS);
  it("because it never finishes the TLS handshake gets 504 connection_timeout", async () => {
    const { gate, path } = silent();
    expectFailure(await ask(gate, path("/x")), 504, "connection_timeout");
  });

  it("because it wants another credential has its 401 passed to the client", async () => {
    const answer = await ask(standing().gate, "/public/guarded");
    expect(answer.status).toBe(401);
    expect(answer.body).toBe("no");
    expect(answer.headers["www-authenticate"]).toBe('Basic realm="app"');
    expect(answer.headers["proxy-status"]).toBeUndefined();
  });

  it("because all its connections are in use gets 503 with Retry-After", async () => {
    await using backend = await startRawBackend(() => "hang");
    await using gate = await startSallyport({
      target: backend.url,
      config: { upstreams: { app: { connections: 1 } } },
    });
    const gone = ask(gate, "/public/first").catch(() => undefined);
    await until(() => backend.requests().length === 1);
    const answer = await ask(gate, "/public/second");
    expectFailure(answer, 503, "connection_limit_reached");
    expect(answer.headers["retry-after"]).toMatch(/^[1-9]\d*$/);
    await gate.close();
    await gone;
  });
});

describe("an idle connection that the backend closes as it is used again", () => {
  /** Serves one request per connection; the next one finds the connection closed. */
  const standing = useSallyport((request, connection) => {
    if (connection.served === 1 && !request.startLine.includes("/never")) return { write: OK };
    const half = request.startLine.includes("/half");
    return { write: half ? "HTTP/1.1 200" : "", then: "close" };
  });

  it.each(["GET", "HEAD"])("is replaced with a new one for %s", async (method) => {
    const { gate, backend } = standing();
    await freshConnection();
    expect((await ask(gate, "/public/again", { method })).status).toBe(200);
    expect(backend.seen()).toEqual([`${method} /public/again`, `${method} /public/again`]);
  });

  it.each([
    ["with a body", { body: "order" }],
    // POST is not idempotent, with or without a body (RFC 9110 §9.2.2).
    ["without a body", {}],
  ])("fails a POST %s, which is never sent twice", async (_name, body) => {
    const { gate, backend } = standing();
    await freshConnection();
    const answer = await ask(gate, "/public/again", { method: "POST", ...body });
    expect(answer.status).toBe(502);
    expect(answer.headers["proxy-status"]).toBe("sallyport; error=connection_terminated");
    expect(backend.seen()).toEqual(["POST /public/again"]);
  });

  it("is not retried once a response has begun", async () => {
    const { gate, backend } = standing();
    await freshConnection();
    expect((await ask(gate, "/public/half")).status).toBe(502);
    expect(backend.seen()).toEqual(["GET /public/half"]);
  });

  it("is retried, but a new connection that is closed is not", async () => {
    const { gate, backend } = standing();
    await until(() => backend.connections.every(({ socket }) => socket.destroyed));
    expect((await ask(gate, "/public/never")).status).toBe(502);
    expect(backend.seen()).toEqual(["GET /public/never"]);
  });

  it("is retried once, not twice", async () => {
    const { gate, backend } = standing();
    await freshConnection();
    expect((await ask(gate, "/public/never")).status).toBe(502);
    expect(backend.seen()).toEqual(["GET /public/never", "GET /public/never"]);
  });

  /** Leaves exactly one idle connection, which has served one request. */
  async function freshConnection(): Promise<void> {
    const { gate, backend } = standing();
    for (const { socket } of backend.connections) socket.destroy();
    let status = 0;
    // The sidecar notices the closed connections a moment later.
    await until(async () => {
      status = (await ask(gate, "/public/first", { method: "POST", body: "x" })).status;
      return status === 200;
    });
    backend.forget();
  }
});

describe("a redirect of a backend below a prefix", () => {
  const redirecting = part(async (stack, name) => {
    const backend: RawBackend = stack.use(
      await startRawBackend(({ startLine }) => {
        const path = startLine.includes("own")
          ? `${backend.url}/next`
          : "https://elsewhere.test/next";
        return { write: `HTTP/1.1 302 Found\r\nLocation: ${path}\r\nContent-Length: 0\r\n\r\n` };
      }),
    );
    return {
      backend,
      upstream: { targets: [backend.url] },
      route: { auth: "none", rewrite: { stripPrefix: `/${name}` } },
    };
  });
  it("to its own address becomes one that the client can follow", async () => {
    const { gate, path } = redirecting();
    expect((await ask(gate, path("/own"))).headers.location).toBe(path("/next"));
    expect((await ask(gate, path("/other"))).headers.location).toBe("https://elsewhere.test/next");
  });
});
