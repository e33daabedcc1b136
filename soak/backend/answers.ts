import { createHash } from "node:crypto";
import type { IncomingMessage, ServerResponse } from "node:http";
import { setTimeout as delay } from "node:timers/promises";
import type { Echo } from "./echo.ts";
import { patternOf } from "./pattern.ts";

/** Answers `/…/bytes?size=N` with a body of that size, `/…/late?ms=N` after that time, and everything else with an echo. */
export async function answerRightly(
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const { pathname, searchParams } = new URL(request.url ?? "/", "http://backend.invalid");
  response.setHeader("X-Soak-Backend", String(process.pid));
  if (pathname.endsWith("/bytes")) {
    response.end(patternOf(Number(searchParams.get("size"))));
    return;
  }
  const echo = JSON.stringify(await echoOf(request));
  if (pathname.endsWith("/late")) await delay(Number(searchParams.get("ms")));
  response.setHeader("Content-Type", "application/json");
  // Half of the answers have a length, the others are chunked.
  if (echo.length % 2 === 0) response.setHeader("Content-Length", Buffer.byteLength(echo));
  else response.write(echo.slice(0, 1));
  response.end(echo.length % 2 === 0 ? echo : echo.slice(1));
}

/** Sends the head of a valid answer and part of its body, and then closes the connection. */
export function breakOff(response: ServerResponse): void {
  response.writeHead(200, { "Content-Length": "100000", "X-Soak-Backend": String(process.pid) });
  response.write(patternOf(30_000), () => response.destroy());
}

async function echoOf(request: IncomingMessage): Promise<Echo> {
  const digest = createHash("sha256");
  let bytes = 0;
  for await (const chunk of request) {
    const piece: Buffer = Buffer.from(chunk);
    digest.update(piece);
    bytes += piece.length;
  }
  const { headers } = request;
  return {
    method: request.method ?? "",
    url: request.url ?? "",
    subject: wordOf(headers["x-auth-subject"]),
    authorization: wordOf(headers.authorization),
    requestId: wordOf(headers["x-request-id"]),
    bytes,
    sha256: digest.digest("hex"),
  };
}

function wordOf(value: string | string[] | undefined): string {
  return typeof value === "string" ? value : "";
}
