/** What clients send beside their certificate, when an authority is taken away: they choose it, and sign some of it themselves. */
import { once } from "node:events";
import { Agent, request as send } from "node:https";
import { expect, it } from "vitest";
import { ask } from "../support/ask.ts";
import { clientAuthority } from "../support/client-certificates.ts";
import { replaceFile } from "../support/edits.ts";
import { startSallyport } from "../support/sallyport.ts";

it("authorities that have certified each other many times delay nobody", async () => {
  const [root, later] = [await clientAuthority("Root"), await clientAuthority("Later")];
  const [left, right] = [await clientAuthority("Left"), await clientAuthority("Right")];
  const alice = await left.certificate();
  const sent = [await root.subordinate("Left", left)];
  // Each leads to each of the other name.
  for (let i = 0; i < 7; i++) {
    const [by, name, keyOf] =
      i % 2 ? ([right, "Left", left] as const) : ([left, "Right", right] as const);
    sent.push(await by.subordinate(name, keyOf));
  }
  const cert = [alice.cert, ...sent.map((each) => each.cert)].join("\n");
  await using gate = await startSallyport({
    withoutToken: true,
    target: "http://127.0.0.1:9",
    config: {
      server: { tls: { clientCertificates: { mode: "optional", caFile: "clients.crt" } } },
      routes: [{ name: "any", path: "/any", auth: "certificate", upstream: "app" }],
    },
    files: { "clients.crt": root.cert },
  });
  const { port, ca } = gate;
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  const get = async (): Promise<number> => {
    const where = { host: "127.0.0.1", servername: "localhost", port, ca, path: "/any" };
    const outgoing = send({ ...where, agent, key: alice.key, cert }).end();
    const [incoming] = await once(outgoing, "response");
    incoming.resume();
    await once(incoming, "end");
    return incoming.statusCode;
  };
  expect(await get()).toBe(502);
  await replaceFile(gate, "clients.crt", later.cert);
  expect((await ask({ port: gate.adminPort }, "/-/reload", { method: "POST" })).status).toBe(200);
  const began = performance.now();
  expect(await get()).toBe(401);
  expect(performance.now() - began).toBeLessThan(500);
  agent.destroy();
}, 60_000);
