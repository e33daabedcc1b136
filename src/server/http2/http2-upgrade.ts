import { randomBytes } from "node:crypto";
import type { Http2Head } from "./http2-head.ts";

const KEY = "sec-websocket-key";
const KEY_BYTES = 16;

/** Whether a request opens a WebSocket on its stream (RFC 8441 §5). */
export function opensWebSocket({ isTunnel, protocol }: Http2Head): boolean {
  return isTunnel && protocol?.toLowerCase() === "websocket";
}

/**
 * Returns the same request in the form of HTTP/1.1: a GET that asks for an upgrade. Its key is generated, since HTTP/2 has
 * none; a key that the client sent anyway has no meaning.
 */
export function asUpgrade(head: Http2Head): Http2Head {
  const fields = head.fields.filter((_, i, all) => all[i - (i % 2)] !== KEY);
  const key = randomBytes(KEY_BYTES).toString("base64");
  fields.push("connection", "Upgrade", "upgrade", "websocket", KEY, key);
  return { ...head, method: "GET", fields };
}
