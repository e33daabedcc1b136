/** HTTP/2 in front: what holds for HTTP/1.1 holds for it. */
import { connect } from "node:tls";
import { once } from "node:events";
import { describe, expect, it } from "vitest";
import { connectHttp2 } from "../support/http2-client.ts";
import { useSallyport } from "../support/pair.ts";
import { ALICE } from "../support/sallyport.ts";

describe("HTTP/2", () => {
  const standing = useSallyport(undefined, { config: { server: { http2: true } } });

  it("is agreed on in the handshake", async () => {
    const { port, ca } = standing().gate;
    const where = { host: "127.0.0.1", port, ca, servername: "localhost" };
    const socket = connect({ ...where, ALPNProtocols: ["http/1.1", "h2"] });
    await once(socket, "secureConnect");
    expect(socket.alpnProtocol).toBe("h2");
    socket.destroy();
  });

  it("logs in, and asks with the token", async () => {
    const { gate, backend } = standing();
    await using client = await connectHttp2(gate);
    const login = await client.ask(
      {
        ":method": "POST",
        ":path": "/api/authenticate",
        "content-type": "application/json",
      },
      JSON.stringify(ALICE),
    );
    expect(login.status).toBe(200);
    const { token } = JSON.parse(login.body);
    expect((await client.ask({ ":path": "/secret" })).status).toBe(401);
    const answer = await client.ask({ ":path": "/secret", authorization: `Bearer ${token}` });
    expect(answer.status).toBe(200);
    expect(backend.seen()).toEqual(["GET /secret"]);
  });
});
