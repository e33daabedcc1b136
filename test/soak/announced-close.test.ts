/**
 * An answer after which the connection ends says so (RFC 9112 §9.6): a client that is not told sends its next request on
 * it, and the request is lost. Found by the soak: an answer that is given while a large body is still on its way.
 */
import { expect, test } from "vitest";
import { startPlainBackend } from "../support/plain-backend.ts";
import { exchange, request } from "../support/raw-client.ts";
import { startSallyport } from "../support/sallyport.ts";

test("a refusal before a large body either keeps the connection or announces its end", async () => {
  await using backend = await startPlainBackend((_request, response) => {
    response.end("here");
  });
  await using gate = await startSallyport({ withoutToken: true, target: backend.url });
  const size = 1_500_000;
  const refused = request(
    ["POST /refused HTTP/1.1", "Host: localhost", `Content-Length: ${size}`],
    "x".repeat(size),
  );
  const next = request(["GET /public/next HTTP/1.1", "Host: localhost"]);
  const { responses } = await exchange(gate, refused + next, { responses: 2 });
  const [first, second] = responses;
  expect(first?.status).toBe(401);
  const announced = first?.header("connection")?.toLowerCase() === "close";
  expect(announced || second?.status === 200, `the next request got ${second?.status}`).toBe(true);
});
