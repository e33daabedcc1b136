import { subscribe } from "node:diagnostics_channel";
import type { Socket } from "node:net";

/**
 * Tells on which connection a request goes out and whether that connection had served before. undici says it on its
 * diagnostics channel alone, at once after the request's `onRequestStart` and within the same turn of the loop: so the
 * request that has announced itself last is the one that is being written.
 */
export interface SendingRequest {
  sentOn(socket: Socket, reused: boolean): void;
}

const used = new WeakSet<Socket>();
let announced: SendingRequest | undefined;
let listening = false;

/** To be called in `onRequestStart`: `sentOn` follows before this turn of the loop ends. */
export function announceSending(request: SendingRequest): void {
  announced = request;
}

/** Begins to listen; a second call changes nothing. */
export function watchConnectionUse(): void {
  if (listening) return;
  listening = true;
  subscribe("undici:client:sendHeaders", (message) => {
    const request = announced;
    announced = undefined;
    if (request === undefined || !isSending(message)) return;
    request.sentOn(message.socket, used.has(message.socket));
    used.add(message.socket);
  });
}

function isSending(message: unknown): message is { readonly socket: Socket } {
  return typeof message === "object" && message !== null && "socket" in message;
}
