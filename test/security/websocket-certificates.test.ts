/**
 * A false backend. Node's HTTPS agent compares a certificate with the name in the Host header if the target is an
 * address. That header is the client's: someone between the proxy and the backend, with any certificate of the
 * trusted authority, puts its name into Host, and can read the caller's identity and every frame. The certificate is
 * verified for the address of the target, or `tls.serverName`, whatever the client sends.
 */
import { describe, expect, it } from "vitest";
import { ask } from "../support/ask.ts";
import { testCertificates } from "../support/certificates.ts";
import { startSallyport, type Sallyport } from "../support/sallyport.ts";
import { openWebSocket, startWebSocketBackend, UpgradeRefused } from "../support/websocket.ts";

const OTHER = "other.example.com";
const HOSTS = [OTHER, "127.0.0.1", "localhost", "app.example.com"];

/** Returns 101, or the status of the refusal. */
async function statusOf(gate: Sallyport, host: string): Promise<number> {
  try {
    using socket = await openWebSocket(gate, "/chat", {
      host,
      authorization: `Bearer ${gate.token}`,
    });
    socket.send("hello");
    expect(await socket.message()).toBe("hello");
    return 101;
  } catch (error) {
    if (error instanceof UpgradeRefused) return error.status;
    throw error;
  }
}

async function start(target: string, serverName?: string): Promise<Sallyport> {
  const { ca } = await testCertificates();
  const tls = { caFile: "ca.crt", ...(serverName === undefined ? {} : { serverName }) };
  return startSallyport({
    target,
    files: { "ca.crt": ca },
    config: { upstreams: { app: { tls } } },
  });
}

describe("a WebSocket to an https target by address", () => {
  it("never reaches a certificate for the name that the client sends as Host", async () => {
    const { other } = await testCertificates();
    await using backend = await startWebSocketBackend(other);
    await using gate = await start(backend.url);
    for (const host of HOSTS) expect(await statusOf(gate, host), host).toBe(502);
    const asked = await ask(gate, "/", { token: gate.token, headers: { host: OTHER } });
    expect(asked.status).toBe(502);
    expect(backend.upgrades).toHaveLength(0);
  });

  it("reaches a certificate for that address, whatever Host says", async () => {
    const { server } = await testCertificates();
    await using backend = await startWebSocketBackend(server);
    await using gate = await start(backend.url);
    for (const host of HOSTS) expect(await statusOf(gate, host), host).toBe(101);
  });

  it("reaches a certificate for `tls.serverName`, whatever Host says", async () => {
    const { other } = await testCertificates();
    await using backend = await startWebSocketBackend(other);
    await using gate = await start(backend.url, OTHER);
    for (const host of HOSTS) expect(await statusOf(gate, host), host).toBe(101);
  });

  it("does not reach a certificate for that address if `tls.serverName` differs", async () => {
    const { server } = await testCertificates();
    await using backend = await startWebSocketBackend(server);
    await using gate = await start(backend.url, OTHER);
    for (const host of HOSTS) expect(await statusOf(gate, host), host).toBe(502);
  });
});
