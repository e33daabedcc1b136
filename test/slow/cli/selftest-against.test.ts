/** The self-test against a proxy that it knows by nothing but its address and what is said about it. */
import { createServer, request as ask } from "node:http";
import { expect, it } from "vitest";
import { listening, type Listening } from "../../support/listening.ts";
import { startSallyport } from "../../support/sallyport.ts";
import { startYesSayer } from "../../cli/selftest-gates.ts";
import { selftestRun, socketPath } from "../../cli/selftest-run.ts";

const TOKEN = "opaque";

/**
 * A proxy as it is written in an afternoon: all that arrives is passed on, and `X-User` is added if the token is right.
 *
 * @param cleaned returns the path that counts, and that the backend gets.
 */
function startPlainProxy(backend: string, cleaned = (path: string) => path): Promise<Listening> {
  const server = createServer((request, response) => {
    const { method, headers } = request;
    const url = cleaned(request.url ?? "");
    const known = headers.authorization === `Bearer ${TOKEN}`;
    if (!known && !url.startsWith("/public/")) {
      response.writeHead(302, { location: "/login" }).end();
      return;
    }
    try {
      const named = known ? { ...headers, "x-user": "alice" } : headers;
      const options = { socketPath: backend, method, path: url, headers: named, agent: false };
      const asked = ask(options, (answer) => {
        response.writeHead(answer.statusCode ?? 502, answer.headers);
        answer.pipe(response);
      });
      asked.on("error", () => response.destroy());
      request.pipe(asked);
    } catch {
      response.writeHead(400, { connection: "close" }).end();
    }
  });
  return listening(server);
}

it("finds the faults of a plain proxy", async () => {
  const socket = await socketPath();
  await using proxy = await startPlainProxy(socket);
  const run = await selftestRun([
    ...["--against", proxy.url, "--token", TOKEN, "--backend", `unix:${socket}`],
    ...["--identity", "X-User", "--public", "/public/", "--timeout", "1s"],
  ]);
  expect(run.code).toBe(1);
  expect(run.names("FAIL")).toEqual(
    expect.arrayContaining([
      "framing/te-coding-before-chunked",
      "path/public-dots",
      "headers/identity",
      "headers/identity-on-public-path",
      "headers/forwarded",
      "headers/hop-by-hop",
      "headers/token-stays-here",
    ]),
  );
  // It sends whoever has no token to its login, which is as good as a refusal.
  expect(run.names("PASS")).toEqual(expect.arrayContaining(["tokens/valid", "tokens/missing"]));
  // No header that nobody named was forged: this one is Sallyport's.
  expect(run.told("FAIL").join("\n")).not.toMatch(/x-auth-subject/i);
});

it("takes a path that a proxy has cleaned for what it is then", async () => {
  const socket = await socketPath();
  const clean = (path: string): string =>
    URL.canParse(path, "http://proxy") ? new URL(path, "http://proxy").pathname : "/";
  await using proxy = await startPlainProxy(socket, clean);
  const run = await selftestRun([
    ...["--against", proxy.url, "--token", TOKEN, "--backend", `unix:${socket}`],
    ...["--identity", "X-User", "--public", "/public/", "--timeout", "1s"],
  ]);
  // These become the public `/public/…`, the next ones `/…`, which needs a token.
  const stay = ["path/public-parameter", "path/public-encoded-question-mark"];
  expect(run.names("PASS")).toEqual(expect.arrayContaining([...stay, "path/public-dots"]));
  // Here nothing was cleaned that a backend could read as a step up.
  expect(run.names("FAIL")).toEqual(expect.arrayContaining(["path/public-encoded-slash"]));
});

it("finds none in Sallyport", async () => {
  const socket = await socketPath();
  await using gate = await startSallyport({
    target: `unix:${socket}`,
    config: {
      server: { http2: true, tls: "off" },
      routes: [
        { name: "public", path: "/public/", auth: "none", upstream: "app" },
        { name: "everything", path: "/", upstream: "app" },
      ],
    },
  });
  const run = await selftestRun([
    ...["--against", `http://127.0.0.1:${gate.port}`, "--token", gate.token],
    ...["--backend", `unix:${socket}`, "--public", "/public/"],
  ]);
  expect(run.told("FAIL")).toEqual([]);
  expect(run.code).toBe(0);
  // The header was found by the subject of the token.
  expect(run.names("PASS")).toEqual(
    expect.arrayContaining(["headers/identity", "http2/headers-identity-as-trailer"]),
  );
});

it("skips the forging of headers that it does not know", async () => {
  await using gate = await startYesSayer();
  const run = await selftestRun(["--against", gate.url, "--token", TOKEN]);
  const skipped = run.told("SKIP").filter((line) => line.endsWith("--identity is not set"));
  expect(skipped).toHaveLength(5);
});
