/**
 * Plain HTTP on the TLS port. OpenSSL takes the first line for an invalid record, the connection is reset, and
 * someone who forgot the s in https:// looks for a firewall; "tls_handshake" in the metric does not help either. As
 * in nginx and Go, the answer is a 400 in plain HTTP that explains it, and the request, including its token, goes
 * nowhere.
 */
import { describe, expect, it } from "vitest";
import { expectRefusal } from "../support/envelope.ts";
import { logLine } from "../support/log-line.ts";
import { useSallyport } from "../support/pair.ts";
import { exchange, request } from "../support/raw-client.ts";
import { scrape } from "../support/scrape.ts";

const ask = (method: string, token: string): string =>
  request([`${method} /public/x HTTP/1.1`, "Host: localhost", `Authorization: Bearer ${token}`]);

describe("Sallyport", () => {
  const standing = useSallyport();
  const rejected = async (reason: string): Promise<number | undefined> =>
    (await scrape(standing().gate)).value(`sallyport_requests_rejected_total{reason="${reason}"}`);

  it.each(["GET", "HEAD", "POST", "PUT"])("answers %s in plain HTTP", async (method) => {
    const { gate, backend } = standing();
    const before = [(await rejected("plain_http")) ?? 0, await rejected("tls_handshake")];
    // Also for HEAD, since nothing of the request was read.
    const answer = await exchange({ port: gate.port }, ask(method, gate.token), {
      responses: Infinity,
    });
    expectRefusal(answer, 400);
    const { id, message }: { id: number; message: string } = JSON.parse(answer.last.body);
    expect(message).toContain("HTTPS");
    expect(await logLine(gate, { id })).toMatchObject({ status: 400, reason: "plain_http" });
    const [plain = 0, handshakes] = before;
    expect([await rejected("plain_http"), await rejected("tls_handshake")]).toEqual([
      plain + 1,
      handshakes,
    ]);
    expect(backend.seen()).toEqual([]);
  });

  it("closes without an answer if the data is neither HTTP nor TLS, and continues to serve", async () => {
    const { gate } = standing();
    const answer = await exchange({ port: gate.port }, "SSH-2.0-OpenSSH_9.9\r\n", {
      responses: Infinity,
    });
    expect(answer.ended).toBe("closed");
    expect(answer.responses).toEqual([]);
    expect((await exchange(gate, ask("GET", gate.token))).last.status).toBe(200);
  });
});
