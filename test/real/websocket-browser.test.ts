/** WebSockets from Debian's Chromium, which opens them on its existing HTTP/2 connection (RFC 8441). */
import { describe, expect, it } from "vitest";
import { logLine } from "../support/log-line.ts";
import { missing } from "../support/program.ts";
import { startSallyport } from "../support/sallyport.ts";
import { startWebSocketBackend } from "../support/websocket.ts";
import { startBrowser } from "./browser.ts";

const reason = missing("chromium");
const WINDOW = { width: 800, height: 600, scheme: "light" } as const;

/** Runs in the page: sends a message, and waits for its echo and the closing handshake. */
const script = (url: string, protocols: readonly string[]): string => `new Promise((resolve) => {
  const socket = new WebSocket(${JSON.stringify(url)}, ${JSON.stringify(protocols)});
  let message;
  socket.onopen = () => socket.send("hello from the page");
  socket.onmessage = ({ data }) => { message = data; socket.close(4001); };
  socket.onclose = ({ code }) => resolve(JSON.stringify({ message, code, protocol: socket.protocol }));
})`;

describe.skipIf(reason !== undefined)(`in Chromium ${reason ?? ""}`, () => {
  it.each([
    ["over HTTP/2", true, 200],
    ["over HTTP/1.1", false, 101],
  ])(
    "%s, with the token in the subprotocols",
    async (_name, http2, status) => {
      await using backend = await startWebSocketBackend();
      const routes = [
        { name: "page", path: "/page", auth: "none", upstream: "app" },
        { name: "chat", path: "/chat", upstream: "app", tokenFrom: [{ websocketProtocol: true }] },
      ];
      await using gate = await startSallyport({
        target: backend.url,
        config: { server: { http2 }, routes },
      });
      await using browser = await startBrowser("--ignore-certificate-errors");
      await browser.open(`https://127.0.0.1:${gate.port}/page`, WINDOW);
      const url = `wss://127.0.0.1:${gate.port}/chat`;
      const heard = await browser.evaluate(script(url, ["bearer", gate.token, "v1"]));
      expect(JSON.parse(String(heard))).toEqual({
        message: "hello from the page",
        code: 4001,
        protocol: "v1",
      });
      expect(await logLine(gate, { path: "/chat" })).toMatchObject({
        status,
        protocol: "websocket",
        subject: "alice",
      });
      expect(await logLine(gate, { path: "/page" })).toMatchObject({
        protocol: http2 ? "HTTP/2.0" : "HTTP/1.1",
      });
    },
    60_000,
  );
});
