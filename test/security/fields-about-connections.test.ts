/**
 * Fields that HTTP/2 forbids (RFC 9113 §8.2.2). Node throws if it is made to send one, in the middle of work for
 * several clients: `HTTP2-Settings` in one answer lost the requests of others. Sallyport drops all of them before Node sees
 * them, in answers, hints, trailers and requests. The first test compares its table with Node's own, so that it fails if
 * Node forbids more.
 */
import { once } from "node:events";
import { connect, constants, createServer, type ServerHttp2Stream } from "node:http2";
import { describe, expect, it, test } from "vitest";
import { CONNECTION_FIELDS } from "../../src/lib/http/header-values.ts";
import { ask } from "../support/ask.ts";
import { valuesOf } from "../support/http-reader.ts";
import { startHttp2Backend } from "../support/http2-backend.ts";
import { connectHttp2 } from "../support/http2-client.ts";
import { listeningPort } from "../support/listening-port.ts";
import { startRawBackend } from "../support/raw-backend.ts";
import { chunked, exchange, request } from "../support/raw-client.ts";
import { useSharedSallyport } from "../support/shared-sallyport.ts";

/** The fields that Node knows by name, without pseudo-header fields, and some that it might come to know. */
const KNOWN = [
  ...Object.entries(constants).flatMap(([name, value]) =>
    name.startsWith("HTTP2_HEADER_") && typeof value === "string" ? [value] : [],
  ),
  ...["alt-used", "connection-options", "content-transfer-encoding", "expect", "proxy-status"],
  ...["http3-settings", "proxy-authentication-info", "x-anything"],
].filter((name) => !name.startsWith(":"));

/** As in Sallyport: what a backend or a client repeats passes. */
const LOOSE = { maxHeaderListPairs: 128, strictSingleValueFields: false };

/** Returns the fields that Node refuses to send. `TE` has one value that it sends. */
async function refusedByNode(): Promise<{ requests: string[]; answers: string[] }> {
  const answers: string[] = [];
  const server = createServer(LOOSE);
  server.on("stream", (stream: ServerHttp2Stream, headers) => {
    stream.on("error", () => undefined);
    const name = String(headers["x-name"]);
    try {
      stream.respond([":status", "200", name, "x"]);
    } catch {
      answers.push(name);
      stream.respond({ ":status": 200 });
    }
    stream.end();
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const session = connect(`http://127.0.0.1:${listeningPort(server)}`, LOOSE);
  const requests: string[] = [];
  for (const name of KNOWN) {
    try {
      const probe = session.request([":method", "GET", ":path", "/", name, "x"]);
      probe.on("error", () => undefined).close();
    } catch {
      requests.push(name);
    }
    const stream = session.request({ ":path": "/", "x-name": name });
    stream.on("error", () => undefined).resume();
    await new Promise((resolve) => stream.once("close", resolve));
  }
  session.destroy();
  server.close();
  return { requests, answers };
}

test("the table holds exactly the fields that Node refuses to send", async () => {
  const { requests, answers } = await refusedByNode();
  const ours = [...CONNECTION_FIELDS].toSorted();
  expect([requests.toSorted(), answers.toSorted()]).toEqual([ours, ours]);
});

/** What a backend sends: the forbidden field, written as an attacker would. */
const field = (name: string): string => `${name}: ${name === "te" ? "gzip" : "x"}`;

describe("Sallyport", () => {
  const part = useSharedSallyport({
    withoutToken: true,
    config: { server: { tls: "off", http2: true, limits: { connectionsPerAddress: 1000 } } },
  });

  const answering = part(async (stack) => {
    const backend = stack.use(
      await startRawBackend(({ startLine }) => {
        const [, where = "", name = ""] =
          /\/(head|streamed|trailer|hint|twice)\/([\w-]+)/.exec(startLine) ?? [];
        const fine = ["HTTP/1.1 200 OK", "Content-Length: 2"];
        const streamed = ["HTTP/1.1 200 OK", "Transfer-Encoding: chunked"];
        if (where === "head") return { write: request([...fine, field(name)], "ok") };
        if (where === "streamed")
          return { write: request([...streamed, field(name)], chunked("ok")) };
        if (where === "trailer") return { write: request(streamed, chunked("ok", [field(name)])) };
        if (where === "hint") {
          const hint = request(["HTTP/1.1 103 Early Hints", "Link: </a>", field(name)]);
          return { write: `${hint}${request(fine, "ok")}` };
        }
        return { write: request([...fine, `${name}: a`, `${name}: b`], "ok") };
      }),
    );
    return { backend, upstream: { targets: [backend.url] }, route: { auth: "none" } };
  });

  const innocent = part(async (stack) => {
    const backend = stack.use(await startRawBackend());
    return { backend, upstream: { targets: [backend.url] }, route: { auth: "none" } };
  });

  const upstreamHttp2 = part(async (stack) => {
    const backend = stack.use(
      await startHttp2Backend(async (received) => {
        await received.body().catch(() => undefined);
        received.stream.respond({ ":status": 200 });
        received.stream.end("ok");
      }),
    );
    return {
      backend,
      upstream: { targets: [backend.url], protocol: "h2c" },
      route: { auth: "none" },
    };
  });

  const uncaught = (): unknown[] =>
    innocent()
      .gate.log()
      .filter(({ msg }) => msg === "uncaught error");

  it.each(["head", "streamed", "trailer", "hint"])(
    "drops them from the %s of an answer, and loses no request of others",
    async (where) => {
      const { gate, path } = answering();
      await using client = await connectHttp2(gate);
      for (const name of CONNECTION_FIELDS) {
        // Neighbours whose answers arrive in the same turns of the event loop.
        const neighbours = Array.from({ length: 8 }, () => ask(gate, innocent().path("/x")));
        const attacks = Array.from({ length: 4 }, () =>
          client.ask({ ":path": path(`/${where}/${name}`) }),
        );
        const answers = await Promise.all(attacks);
        for (const { status, headers, trailers } of answers) {
          // Node's parser refuses some answers with an unknown coding, or with a trailer about the connection.
          const expected = /^(?:transfer-encoding|upgrade)$/.test(name) ? [200, 502] : [200];
          expect(expected, name).toContain(status);
          expect([headers[name], trailers[name]]).toEqual([undefined, undefined]);
        }
        expect((await Promise.all(neighbours)).map(({ status }) => status)).toEqual(
          neighbours.map(() => 200),
        );
      }
      expect(uncaught()).toEqual([]);
    },
  );

  it("passes fields that Node wants once, however often they come", async () => {
    const { gate, path } = answering();
    await using client = await connectHttp2(gate);
    for (const name of KNOWN) {
      if (CONNECTION_FIELDS.has(name) || name === "content-length" || name === "trailer") continue;
      const { status } = await client.ask({ ":path": path(`/twice/${name}`) });
      expect([name, status]).toEqual([name, 200]);
    }
    expect(uncaught()).toEqual([]);
  });

  it("drops them from requests to HTTP/2 backends, in the head and the trailers", async () => {
    const { gate, path, backend } = upstreamHttp2();
    for (const name of CONNECTION_FIELDS) {
      if (name === "transfer-encoding") continue;
      const value = name === "connection" ? "x-other" : "gzip";
      const lines = [`POST ${path("/x")} HTTP/1.1`, "Host: localhost", `${name}: ${value}`];
      const body = chunked("body", [`${name}: x`, "X-Sum: 4"]);
      const sent = request([...lines, "Transfer-Encoding: chunked"], body);
      const { last } = await exchange(gate, sent);
      const received = backend.requests.at(-1);
      expect([name, last.status, received?.headers[name]]).toEqual([name, 200, undefined]);
      expect([name, received?.trailers()[name]]).toEqual([name, undefined]);
    }
    expect(uncaught()).toEqual([]);
  });

  it("drops them from answers to HTTP/1.1 clients, too", async () => {
    const { gate, path } = answering();
    for (const name of CONNECTION_FIELDS) {
      if (name === "transfer-encoding" || name === "connection") continue;
      const head = request([`GET ${path(`/head/${name}`)} HTTP/1.1`, "Host: localhost"]);
      const { last } = await exchange(gate, head);
      const own = name === "keep-alive" ? ["timeout"] : [];
      expect(valuesOf(last.headers, name).map((value) => value.split("=")[0])).toEqual(own);
    }
  });
});
