/**
 * Refusals by the parser, found in the log. A faulty client of our own, or an attacker, would leave lines without
 * method, path or reason, and no one could tell which client to fix. The log contains the fault and the requested
 * path: never a query, never a header field, and nothing that could forge a line.
 */
import { describe, expect, it } from "vitest";
import { logLine } from "../support/log-line.ts";
import { useSallyport } from "../support/pair.ts";
import { exchange, openSocket, request } from "../support/raw-client.ts";
import { scrape } from "../support/scrape.ts";
import { unreadBy } from "../support/unread.ts";
import { until } from "../support/until.ts";

const SECRET = "c2VjcmV0LXF1ZXJ5";
const H = "Host: localhost";
const post = (headers: readonly string[], body = ""): string =>
  request([`POST /public/x?token=${SECRET} HTTP/1.1`, H, ...headers], body);

const CASES: readonly { name: string; bytes: string; reason: string; method?: string }[] = [
  { name: "raw UTF-8 in a query", bytes: post([]).replace("?", "?q=ä&"), reason: "invalid_target" },
  { name: "an escape in a field", bytes: post(["User-Agent: \x1b[1m"]), reason: "invalid_header" },
  { name: "a field without a colon", bytes: post(["what is this"]), reason: "invalid_header" },
  { name: "a length that is none", bytes: post(["Content-Length: 1x"]), reason: "invalid_length" },
  {
    name: "a coding after chunked",
    bytes: post(["Transfer-Encoding: chunked, gzip"]),
    reason: "invalid_transfer_encoding",
  },
  {
    name: "an invalid chunk size",
    bytes: post(["Transfer-Encoding: chunked"], "zz\r\n\r\n"),
    reason: "invalid_chunk",
  },
  {
    name: "a future version",
    bytes: "GET /x HTTP/9.9\r\n\r\n",
    reason: "invalid_version",
    method: "GET",
  },
  { name: "no HTTP at all", bytes: "hello\r\n\r\n", reason: "invalid_method", method: "" },
];

describe("Sallyport", () => {
  const standing = useSallyport(undefined, { withoutToken: true });

  it.each(CASES)("logs what was wrong with $name", async ({ bytes, reason, method = "POST" }) => {
    const { gate } = standing();
    const { last } = await exchange(gate, bytes, { responses: Infinity });
    expect(last.status).toBe(400);
    const { id }: { id: number } = JSON.parse(last.body);
    const line = await logLine(gate, { id });
    const path = method === "POST" ? "/public/x" : method === "GET" ? "/x" : "";
    expect(line).toMatchObject({ status: 400, reason, method, path });
    expect(JSON.stringify(line)).not.toContain(SECRET);
    expect(JSON.stringify(line)).not.toContain("\x1b");
  });

  it("does not take a field for a request line, or another request for this one", async () => {
    const { gate } = standing();
    // The second part of a head looks like a request line, and arrives separately.
    const socket = await openSocket(gate);
    let answer = "";
    socket.on("data", (chunk: Buffer) => (answer += chunk.toString("latin1")));
    const begun = Promise.withResolvers<void>();
    socket.write("GET /public/a HTTP/1.1\r\nHost: localhost\r\nX-A: ", () => begun.resolve());
    await begun.promise;
    await until(async () => (await unreadBy(gate, socket)) === 0);
    socket.write(`Basic /${SECRET}\r\nbad\r\n\r\n`);
    await until(() => answer.endsWith("}"));
    const apart: { id: number } = JSON.parse(answer.slice(answer.indexOf("{")));
    expect(await logLine(gate, { id: apart.id })).toMatchObject({ method: "", path: "" });
    socket.destroy();
    const pipelined = await exchange(
      gate,
      request(["GET /public/first HTTP/1.1", H]) + "GET /public/second HTTP/1.1\r\nbad\r\n\r\n",
      { responses: Infinity },
    );
    const { id }: { id: number } = JSON.parse(pipelined.last.body);
    expect(await logLine(gate, { id })).toMatchObject({ reason: "invalid_header", path: "" });
  });

  it("counts all of them as bad_request", async () => {
    const { gate } = standing();
    const { series } = await scrape(gate);
    const reasons = series.filter((name) => name.startsWith("sallyport_requests_rejected_total"));
    expect(reasons.join(" ")).not.toContain("invalid_");
    expect(reasons.join(" ")).toContain('reason="bad_request"');
  });
});
