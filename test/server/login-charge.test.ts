import { IncomingMessage, ServerResponse } from "node:http";
import { Socket } from "node:net";
import { expect, it } from "vitest";
import { UNMETERED } from "../../src/server/listener/reading/fair-reading.ts";
import { Transfer } from "../../src/core/request/transfer.ts";
import { systemClock } from "../../src/lib/clock.ts";
import { authenticateEndpoint } from "../../src/server/endpoints/authenticate.ts";
import { requestWith } from "../support/permit.ts";

it("charges the client for a login, whatever its result", async () => {
  const charged: Socket[] = [];
  const endpoint = authenticateEndpoint({
    logins: { logIn: () => Promise.reject(new Error("never asked")) },
    observer: { loginFinished: () => undefined },
    clock: systemClock,
    reading: { ...UNMETERED, chargeLogin: (socket) => void charged.push(socket) },
  });
  const socket = new Socket();
  const incoming = new IncomingMessage(socket);
  const call = {
    request: requestWith({ method: "POST" }),
    incoming,
    response: new ServerResponse(incoming),
    identity: undefined,
    transfer: new Transfer(),
  };
  await expect(endpoint.answer(call)).rejects.toThrow();
  expect(charged).toEqual([socket]);
});
