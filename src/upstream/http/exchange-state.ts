/**
 * - `waiting`: for a small body or a slot. Nothing has reached the backend.
 * - `sent`: handed to a connection. If the request may be repeated, the state returns to `waiting`.
 * - `answering`: the head of the answer has been written to the client.
 * - `answered`: the complete answer has arrived. The slot is free, even if the client still has to read.
 * - `done`: the client has read the answer or left, or the answer broke off.
 * - `failed`: nothing has been sent to the client; the caller answers.
 */
export type ExchangeState = "waiting" | "sent" | "answering" | "answered" | "done" | "failed";
