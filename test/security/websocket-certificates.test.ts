/**
 * A false backend. Node's HTTPS agent compares a certificate with the name in the Host header if the target is an
 * address. That header is the client's: someone between the proxy and the backend, with any certificate of the
 * trusted authority, puts its name into Host, and can read the caller's identity and every frame. The certificate is
 * verified for the address of the target, or `tls.serverName`, whatever the client sends.
 */
import { describe, expect, it } from "vitest";
import { ask } from "../support/ask.ts";
import { testCertificates } from "../support/certificates.ts";
import { useSharedSallyport } from "../support/shared-sallyport.ts";
import { openWebSocket, startWebSocketBackend, UpgradeRefused } from "../support/websocket.ts";

const OTHER = "other.example.com";
const HOSTS = [OTHER, "127.0.0.1", "localhost", "app.example.com"];

const { ca, other, server } = await testCertificates();
const part = useSharedSallyport({ files: { "ca.crt": ca } });

/** Adds a backend with this certificate, whose name has to be `serverName`, or its address. */
function behind(pair: typeof server, serverName?: string) {
  const made = part(async (stack) => {
    const backend = stack.use(await startWebSocketBackend(pair));
    const tls = { caFile: "ca.crt", ...(serverName === undefined ? {} : { serverName }) };
    return { backend, upstream: { targets: [backend.url], tls } };
  });
  return () => {
    const { backend, gate, path } = made();
    /** Returns 101, or the status of the refusal. */
    async function statusOf(host: string): Promise<number> {
      try {
        using socket = await openWebSocket(gate, path("/chat"), {
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
    return { backend, gate, path, statusOf };
  };
}

describe("a WebSocket to an https target by address", () => {
  const unnamed = behind(other);
  it("never reaches a certificate for the name that the client sends as Host", async () => {
    const { backend, gate, path, statusOf } = unnamed();
    for (const host of HOSTS) expect(await statusOf(host), host).toBe(502);
    const asked = await ask(gate, path("/"), { token: gate.token, headers: { host: OTHER } });
    expect(asked.status).toBe(502);
    expect(backend.upgrades).toHaveLength(0);
  });

  const own = behind(server);
  it("reaches a certificate for that address, whatever Host says", async () => {
    const { statusOf } = own();
    for (const host of HOSTS) expect(await statusOf(host), host).toBe(101);
  });

  const named = behind(other, OTHER);
  it("reaches a certificate for `tls.serverName`, whatever Host says", async () => {
    const { statusOf } = named();
    for (const host of HOSTS) expect(await statusOf(host), host).toBe(101);
  });

  const misnamed = behind(server, OTHER);
  it("does not reach a certificate for that address if `tls.serverName` differs", async () => {
    const { statusOf } = misnamed();
    for (const host of HOSTS) expect(await statusOf(host), host).toBe(502);
  });
});
